/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A search and a drive give up when they are told to, and call nothing impossible then. */
#include "analyzer/explore/drive.h"
#include "tests/lib/check.h"

#define THREADS 3u
#define WRITES 200u

/* Threads that write what nobody reads: very many states. */
static struct xpl_trace *wide(void)
{
	struct xpl_trace *t = xpl_trace_new(THREADS);

	vec_push(&t->vars, (struct xpl_var){ .word = 8, .mask = UINT64_MAX });
	for (uint32_t i = 0; i < THREADS; i++) {
		t->threads[i].from_start = true;
		for (uint32_t k = 0; k < WRITES; k++)
			xpl_trace_add(t, &(struct xpl_event){ .op = XPL_WRITE, .program = true, .thread = i, .mutex = XPL_NONE,
							      .peer = XPL_NONE, .mask = UINT64_MAX, .nth = k + 1,
							      .wvalue = i * WRITES + k + 1, .pc = 100 + i,
							      .place = 100 + i });
	}
	return t;
}

static unsigned asked;

static bool at_the_third(void *arg)
{
	(void)arg;
	return ++asked == 3;
}

static void test_search(void)
{
	struct xpl_trace *t = wide();
	const struct xpl_ways all = { 0 };
	struct xpl_path path = { .stop = at_the_third };

	CHECK(xpl_search_ways(t, &all, 1000000, &path) == XPL_STOPPED, "a search gives up when it is told to");
	CHECK(asked == 3, "it asks again and again");
	CHECK(path.states < 100000, "often enough");
	xpl_path_free(&path);
	struct xpl_path whole = { 0 };
	CHECK(xpl_search_ways(t, &all, 50000, &whole) == XPL_TOO_LARGE, "one that nobody stops comes to its limit");
	xpl_path_free(&whole);
	xpl_trace_free(t);
}

static err_t never(void *arg, const struct xpl_order *order, struct xpl_seen *out)
{
	(void)arg;
	(void)order;
	(void)out;
	return err_new(ERR_INTERNAL, "nothing is to be executed");
}

static void test_drive(void)
{
	const struct xpl_executor exec = { .run = never };
	const struct xpl_drive_options o = { .strategy = XPL_MCR, .progress = at_the_third };
	struct xpl_drive d;

	asked = 0;
	xpl_drive_new(&d, &o, &exec);
	err_t e = xpl_drive_go(&d, wide());
	CHECK(!e, "a drive that is stopped in a search ends well");
	err_free(e);
	CHECK(d.stopped && d.late && !d.exhausted && !d.too_large, "and does not say that nothing is left");
	bool proved = false;
	for (size_t i = 0; i < d.known.n; i++)
		proved |= d.known.v[i].status == XPL_INFEASIBLE;
	CHECK(d.known.n && !proved, "or that anything is impossible");
	xpl_drive_free(&d);
}

int main(void)
{
	test_search();
	test_drive();
	CHECK_END();
}
