/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which failing order it was, as a number: two executions have the same when, of all that came before the failure and could matter to
 * it, conflicting accesses and the operations on each object came in the same order, whatever came between, wherever
 * modules and heap lie. What could matter is what the failing thread did before, and what that depends on.
 */
#include "analyzer/explore/drive.h"

struct so_far {
	uint64_t last;    /* the last write; of an object, all operations */
	uint64_t readers; /* since then: a sum, as their order is no matter */
};

/* From the end to the beginning: what is needed later of ... */
struct needs {
	bool *thread, *object;
	bool *access, *write; /* ... a variable */
};

static bool is_needed(const struct needs *n, const struct xpl_event *e)
{
	if (n->thread[e->thread])
		return true;
	if (e->op == XPL_FORK)
		return n->thread[e->peer];
	if (e->target == XPL_NONE)
		return false;
	if (!xpl_is_access(e))
		return n->object[e->target];
	return e->op == XPL_READ ? n->write[e->target] : n->access[e->target];
}

static void need(struct needs *n, const struct xpl_event *e)
{
	n->thread[e->thread] = true;
	if (e->op == XPL_JOIN)
		n->thread[e->peer] = true;
	if (e->target == XPL_NONE)
		return;
	if (xpl_is_access(e)) {
		n->access[e->target] = true;
		n->write[e->target] |= e->op != XPL_READ;
	} else {
		n->object[e->target] = true;
	}
}

static bool *find_needed(const struct xpl_trace *t, uint32_t fails)
{
	bool *needed = xcalloc(t->events.n + 1, sizeof *needed);
	struct needs n = { xcalloc(t->nthreads + 1, 1), xcalloc(t->objects.n + 1, 1), xcalloc(t->vars.n + 1, 1), xcalloc(t->vars.n + 1, 1) };

	for (uint32_t i = 0; i < t->nthreads; i++)
		n.thread[i] = fails == XPL_NONE || i == fails;
	for (size_t i = t->events.n; i-- > 0;) {
		needed[i] = is_needed(&n, &t->events.v[i]);
		if (needed[i])
			need(&n, &t->events.v[i]);
	}
	free(n.thread);
	free(n.object);
	free(n.access);
	free(n.write);
	return needed;
}

uint64_t xpl_trace_print(const struct xpl_trace *t, uint32_t fails, const uint32_t *names)
{
	struct so_far *vars = xcalloc(t->vars.n + 1, sizeof *vars), *objects = xcalloc(t->objects.n + 1, sizeof *objects);
	bool *needed = find_needed(t, fails);
	uint64_t sum = 1;

	for (size_t i = 0; i < t->events.n; i++) {
		const struct xpl_event *e = &t->events.v[i];
		/* Who, at which place, the how-manieth time. */
		uint64_t name = xpl_mix(xpl_mix((names ? names[e->thread] : e->thread) + 1, e->op),
					xpl_mix((e->place ? e->place : e->pc) & XPL_IN_PAGE, e->nth));

		if (e->target == XPL_NONE || !needed[i])
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
	free(needed);
	return sum;
}
