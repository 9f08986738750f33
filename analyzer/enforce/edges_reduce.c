/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What other edges and the threads' own order imply is not enforced a second time. In sections of one lock every
 * thread follows every other: with 64 threads 7,500 edges say what 400 do.
 */
#include "analyzer/enforce/edges_internal.h"

#include <stdlib.h>
#include <string.h>

#define MOST_CLOCKS (32u << 20) /* entries; beyond that nothing is reduced */

/* One row per event of the order: by thread, how many of its events come before this one or are it. */
struct clocks {
	uint32_t *v, *now; /* by event of the order; by thread, where that one is */
	size_t nthreads;
};

struct placed {
	size_t after, before; /* places in the order */
	struct sched_edge edge;
};

/* By where they end; of those that end at one event, the one that begins last comes first: it implies most. */
static int by_place(const void *x, const void *y)
{
	const struct placed *a = x, *b = y;

	if (a->after != b->after)
		return a->after < b->after ? -1 : 1;
	if (a->edge.after.thread != b->edge.after.thread)
		return a->edge.after.thread < b->edge.after.thread ? -1 : 1;
	return a->before == b->before ? 0 : a->before > b->before ? -1 : 1;
}

static struct placed *placed_edges(const struct edges_work *w)
{
	struct placed *p = xcalloc(w->out->v.n + 1, sizeof *p);

	for (size_t i = 0; i < w->out->v.n; i++)
		p[i] = (struct placed){ edges_place_of(w, w->out->v.v[i].after),
					edges_place_of(w, w->out->v.v[i].before), w->out->v.v[i] };
	qsort(p, w->out->v.n, sizeof *p, by_place);
	return p;
}

/* Can somebody wait there, and be waited for? Else nothing follows from it. */
static bool has_place(const struct edges_work *w, struct sched_ref r)
{
	const struct sym_event *e = order_event(w->t, r);

	return e->pc && e->occurrence;
}

/* Keeps the edge unless its target's thread knows of its source by then. */
static void judge(struct edges_work *w, struct clocks *c, const struct placed *p)
{
	uint32_t *target = c->now + p->edge.after.thread * c->nthreads;
	const uint32_t *source = c->v + p->before * c->nthreads;

	if (target[p->edge.before.thread] > p->edge.before.index)
		return;
	w->out->v.v[w->out->v.n++] = p->edge;
	for (size_t i = 0; i < c->nthreads && has_place(w, p->edge.before) && has_place(w, p->edge.after); i++)
		target[i] = target[i] > source[i] ? target[i] : source[i];
}

void edges_reduce(struct edges_work *w)
{
	struct clocks c = { .nthreads = w->t->nthreads };
	size_t n = w->out->v.n, next = 0;

	if (!n || (uint64_t)w->until * c.nthreads > MOST_CLOCKS)
		return;
	struct placed *p = placed_edges(w);
	c.v = xcalloc(w->until * c.nthreads + 1, sizeof *c.v);
	c.now = xcalloc(c.nthreads * c.nthreads + 1, sizeof *c.now);
	w->out->v.n = 0;
	for (size_t i = 0; i < w->until; i++) {
		struct sched_ref r = w->order->refs[i];
		uint32_t *mine = c.now + r.thread * c.nthreads;

		while (next < n && p[next].after == i)
			judge(w, &c, &p[next++]);
		mine[r.thread] = r.index + 1;
		memcpy(c.v + i * c.nthreads, mine, c.nthreads * sizeof *mine);
	}
	/* Who blocks for ever is in no order, and comes last. */
	while (next < n)
		judge(w, &c, &p[next++]);
	free(p);
	free(c.v);
	free(c.now);
}
