/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which order it was, as a number: two executions have the same when their conflicting accesses and their operations on each
 * object came in the same order, whatever came between, wherever modules and heap lie.
 */
#include "analyzer/explore/drive.h"

/* Who of which place, the how-manieth time. */
static uint64_t name_of(const struct xpl_event *e)
{
	return xpl_mix(xpl_mix(e->thread + 1, e->op), xpl_mix((e->place ? e->place : e->pc) & XPL_IN_PAGE, e->nth));
}

struct so_far {
	uint64_t last;    /* the last write; of an object, all operations */
	uint64_t readers; /* since then: a sum, as their order is no matter */
};

uint64_t xpl_trace_print(const struct xpl_trace *t)
{
	struct so_far *vars = xcalloc(t->vars.n + 1, sizeof *vars), *objects = xcalloc(t->objects.n + 1, sizeof *objects);
	uint64_t sum = t->events.n;

	for (size_t i = 0; i < t->events.n; i++) {
		const struct xpl_event *e = &t->events.v[i];
		uint64_t name = name_of(e);

		if (e->target == XPL_NONE)
			continue;
		struct so_far *s = xpl_is_access(e) ? &vars[e->target] : &objects[e->target];
		if (e->op == XPL_READ) {
			sum += xpl_mix(name, s->last);
			s->readers += name;
			continue;
		}
		sum += xpl_mix(xpl_mix(name, s->last), s->readers);
		s->last = xpl_is_access(e) ? name : xpl_mix(s->last, name);
		s->readers = 0;
	}
	free(vars);
	free(objects);
	return sum;
}
