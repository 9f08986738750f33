/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Behind the end, with keep_going: other orders that fail. When nothing is left each combination of values was seen once, but
 * writes that nobody reads, and locks, may come in more orders than one. From each failing order those are tried in which one pair
 * of conflicting accesses, or of acquisitions, is turned round; one that fails and is no other's is gone on from.
 */
#include "analyzer/explore/drive.h"

#define VARY_STATES 20000u /* to find an order of a pair: milliseconds */
#define VARY_ORDERS 2000u  /* executions: seconds */

struct varying {
	struct xpl_drive *d;
	VEC(struct xpl_trace *) own; /* those that are not the drive's */
	uint64_t tried;
};

static bool may_turn(const struct xpl_event *a, const struct xpl_event *b)
{
	if (a->thread == b->thread || a->target == XPL_NONE || a->target != b->target)
		return false;
	if (xpl_is_access(a) != xpl_is_access(b))
		return false;
	if (!xpl_is_access(a))
		return a->op == XPL_LOCK && b->op == XPL_LOCK && !(a->shared && b->shared);
	return (xpl_writes(a) || xpl_writes(b)) && a->mask & b->mask;
}

static err_t turn(struct varying *v, const struct xpl_trace *t, uint32_t first, uint32_t second)
{
	struct xpl_drive *d = v->d;
	struct xpl_path path = { .stop = xpl_drive_stops, .stop_arg = d };
	struct xpl_order order = { 0 };
	struct xpl_seen seen = { 0 };
	err_t e = NULL;

	if (xpl_search_order(t, second, first, VARY_STATES, &path) == XPL_FOUND) {
		xpl_steps_of(t, &path, &order.steps, &order.n);
		e = d->exec->run(d->exec->arg, &order, &seen);
		v->tried++;
		if (!e && seen.trace && xpl_drive_varied(d, &seen)) {
			vec_push(&v->own, seen.trace);
			seen.trace = NULL;
		}
		free(order.steps);
		xpl_seen_free(&seen);
	}
	xpl_path_free(&path);
	return e;
}

static err_t vary(struct varying *v, const struct xpl_trace *t)
{
	for (uint32_t b = 1; b < t->events.n; b++) {
		/* The last before it of each other thread: what lies before those comes with them. */
		for (uint32_t a = b, left = t->nthreads; a-- > 0 && left;) {
			if (!may_turn(&t->events.v[a], &t->events.v[b]))
				continue;
			left--;
			if (v->tried >= VARY_ORDERS || xpl_drive_over(v->d) || xpl_drive_stops(v->d))
				return NULL;
			TRY(turn(v, t, a, b));
		}
	}
	return NULL;
}

err_t xpl_drive_vary(struct xpl_drive *d)
{
	struct varying v = { .d = d };
	err_t e = NULL;

	for (size_t i = 0; i < d->failing_traces.n && !e; i++)
		e = vary(&v, d->traces.v[d->failing_traces.v[i]]);
	for (size_t i = 0; i < v.own.n && !e; i++)
		e = vary(&v, v.own.v[i]);
	for (size_t i = 0; i < v.own.n; i++)
		xpl_trace_free(v.own.v[i]);
	vec_free(&v.own);
	return e;
}
