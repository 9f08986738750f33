/*
 * Fewer context switches: Algorithm 1 of the Symbiosis paper. A segment is a
 * run of events of one thread. The next segment of the same thread is moved
 * up to it, or the previous one down to it; the result is executed, and kept
 * when it still fails. A total order needs no solver. That is done from the
 * order as it was and from the two regroup.h makes of it; the best one stays.
 *
 * Time stamps and the values read are left aside unless asked for (enum sched_keeps): they bind
 * the run that was recorded, this is another one that fails in the same way.
 */
#include "analyzer/order/regroup.h"
#include "analyzer/schedule/work.h"

#include <string.h>

struct reduction {
	struct work *w;
	struct order_check *c, *start; /* start: before the stretch */
	uint32_t *cur, *tmp;
	size_t n;
};

static uint32_t thread(const struct reduction *r, size_t k)
{
	return r->w->v->ev[r->cur[k]].e->thread;
}

/* Every read sees what it saw before the reduction. */
static bool same_values(const struct reduction *r)
{
	const struct sched_order *was = &r->w->a->recorded;

	return !memcmp(order_check_values(r->c), was->values, was->nvalues * sizeof *was->values);
}

static bool still_fails(struct reduction *r)
{
	order_check_restore(r->c, r->start);
	for (size_t k = 0; k < r->n; k++)
		if (order_check_step(r->c, r->tmp[k]) != ORDER_OK)
			return false;
	return order_check_late(r->c) == ORDER_OK && order_check_fails(r->c) &&
	       (r->w->keeps < SCHED_KEEPS_VALUES || same_values(r));
}

/* Exchange the neighbouring stretches [a, b) and [b, e). */
static bool swap_stretches(struct reduction *r, size_t a, size_t b, size_t e)
{
	memcpy(r->tmp, r->cur, r->n * sizeof *r->tmp);
	memcpy(r->tmp + a, r->cur + b, (e - b) * sizeof *r->tmp);
	memcpy(r->tmp + a + (e - b), r->cur + a, (b - a) * sizeof *r->tmp);
	if (!still_fails(r))
		return false;
	memcpy(r->cur, r->tmp, r->n * sizeof *r->tmp);
	return true;
}

static size_t segment_end(const struct reduction *r, size_t k)
{
	uint32_t t = thread(r, k);

	while (k < r->n && thread(r, k) == t)
		k++;
	return k;
}

static size_t segment_start(const struct reduction *r, size_t k)
{
	uint32_t t = thread(r, k);

	while (k > 0 && thread(r, k - 1) == t)
		k--;
	return k;
}

static void move_up(struct reduction *r)
{
	for (size_t k = 0; k < r->n; k++) {
		size_t next = k + 1;

		if (next >= r->n || thread(r, next) == thread(r, k))
			continue;
		while (next < r->n && thread(r, next) != thread(r, k))
			next++;
		if (next < r->n)
			swap_stretches(r, k + 1, next, segment_end(r, next));
		if (work_stopped(r->w))
			return;
	}
}

static void move_down(struct reduction *r)
{
	for (size_t k = r->n; k-- > 1;) {
		size_t prev = k;

		if (thread(r, k - 1) == thread(r, k))
			continue;
		while (prev > 0 && thread(r, prev - 1) != thread(r, k))
			prev--;
		if (prev > 0)
			swap_stretches(r, segment_start(r, prev - 1), prev, k);
		if (work_stopped(r->w))
			return;
	}
}

static void move_segments(struct reduction *r)
{
	size_t before;

	do {
		before = order_switches(r->w->v, r->cur, r->n);
		move_up(r);
		move_down(r);
	} while (order_switches(r->w->v, r->cur, r->n) < before && !work_stopped(r->w));
}

/* From what depends on what in r->cur; it stays as it is when that gives nothing better. */
static void try_regrouped(struct reduction *r, bool backwards)
{
	uint32_t *was = xcalloc(r->n + 1, sizeof *was);
	size_t before = order_switches(r->w->v, r->cur, r->n);

	memcpy(was, r->cur, r->n * sizeof *was);
	if (order_regroup(r->w->v, was, r->n, backwards, r->tmp) && still_fails(r)) {
		memcpy(r->cur, r->tmp, r->n * sizeof *r->cur);
		move_segments(r);
		if (order_switches(r->w->v, r->cur, r->n) >= before)
			memcpy(r->cur, was, r->n * sizeof *was);
	}
	free(was);
}

void reduce_switches(struct work *w)
{
	size_t from = w->n > REDUCE_EVENTS ? w->n - REDUCE_EVENTS : 0, before;
	struct reduction r = { .w = w, .n = w->n - from };

	r.c = order_check_new(w->keeps >= SCHED_KEEPS_TIMES ? w->v : w->timeless, ORDER_EXACT, w->init, w->syms);
	for (size_t k = 0; k < from; k++)
		order_check_step(r.c, w->order[k]);
	r.start = order_check_save(r.c);
	r.cur = w->order + from;
	r.tmp = xcalloc(r.n + 1, sizeof *r.tmp);
	move_segments(&r);
	do {
		before = order_switches(w->v, r.cur, r.n);
		try_regrouped(&r, false);
		try_regrouped(&r, true);
	} while (order_switches(w->v, r.cur, r.n) < before && !work_stopped(w));
	order_check_free(r.start);
	order_check_free(r.c);
	free(r.tmp);
}
