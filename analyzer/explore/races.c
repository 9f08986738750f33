/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which pairs race (vector clocks over the operations of a trace), and what happens when they are turned round. */
#include "analyzer/explore/races.h"

#include <string.h>

#define MAX_TRACES 50u     /* that are looked at */
#define MAX_ACCESSES 2000u /* of one variable in one trace: pairs are their square */
#define MAX_RACES 200u
#define MAX_STATES 100000u /* to find an order of a pair */

const char *const xpl_race_words[XPL_RACE_OUTCOMES] = {
	[XPL_RACE_FAILS] = "fails",
	[XPL_RACE_DIFFERS] = "ends differently",
	[XPL_RACE_SAME] = "ends the same",
	[XPL_RACE_NOT_EXECUTED] = "could not be executed",
};

struct clocks {
	const struct xpl_trace *t;
	uint32_t n;
	uint32_t *of_event; /* by event and thread */
	uint32_t *thread, *object, *var;
};

static void join(uint32_t *to, const uint32_t *from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = from[i] > to[i] ? from[i] : to[i];
}

static bool takes(const struct xpl_event *e)
{
	switch (e->op) {
	case XPL_LOCK:
	case XPL_WAIT_OUT:
	case XPL_SEM_WAIT:
	case XPL_BAR_OUT:
	case XPL_ONCE_END:
		return true;
	case XPL_TRY:
	case XPL_SEM_TRY:
		return e->result != 0;
	default:
		return false;
	}
}

static bool gives(const struct xpl_event *e)
{
	return e->op == XPL_UNLOCK || e->op == XPL_WAIT_IN || e->op == XPL_SIGNAL || e->op == XPL_BROADCAST ||
	       e->op == XPL_SEM_POST || e->op == XPL_BAR_IN || e->op == XPL_ONCE_END;
}

static void clocks_new(struct clocks *c, const struct xpl_trace *t)
{
	uint32_t n = t->nthreads;

	*c = (struct clocks){ .t = t, .n = n };
	c->of_event = xcalloc(t->events.n * n + 1, sizeof *c->of_event);
	c->thread = xcalloc((size_t)n * n + 1, sizeof *c->thread);
	c->object = xcalloc(t->objects.n * n + 1, sizeof *c->object);
	c->var = xcalloc(t->vars.n * n + 1, sizeof *c->var);
	for (size_t i = 0; i < t->events.n; i++) {
		const struct xpl_event *e = &t->events.v[i];
		uint32_t *mine = &c->thread[(size_t)e->thread * n];
		uint32_t *object = xpl_is_access(e) || e->target == XPL_NONE ? NULL : &c->object[(size_t)e->target * n];
		uint32_t *mutex = e->mutex == XPL_NONE || xpl_is_access(e) ? NULL : &c->object[(size_t)e->mutex * n];

		mine[e->thread] = e->index + 1;
		if (e->op == XPL_JOIN)
			join(mine, &c->thread[(size_t)e->peer * n], n);
		if (object && takes(e))
			join(mine, object, n);
		if (mutex && e->op == XPL_WAIT_OUT)
			join(mine, mutex, n);
		/* An atomic update orders those that come to it. */
		if (e->op == XPL_RMW) {
			join(mine, &c->var[(size_t)e->target * n], n);
			join(&c->var[(size_t)e->target * n], mine, n);
		}
		memcpy(&c->of_event[i * n], mine, n * sizeof *mine);
		if (object && gives(e))
			join(object, mine, n);
		if (mutex && e->op == XPL_WAIT_IN)
			join(mutex, mine, n);
		if (e->op == XPL_FORK)
			join(&c->thread[(size_t)e->peer * n], mine, n);
	}
}

static void clocks_free(struct clocks *c)
{
	free(c->of_event);
	free(c->thread);
	free(c->object);
	free(c->var);
}

/* b comes later in the trace. */
static bool ordered(const struct clocks *c, uint32_t a, uint32_t b)
{
	const struct xpl_event *x = &c->t->events.v[a];

	return c->of_event[(size_t)b * c->n + x->thread] > x->index;
}

static bool conflict(const struct xpl_event *a, const struct xpl_event *b)
{
	return a->thread != b->thread && (xpl_writes(a) || xpl_writes(b)) && a->mask & b->mask && a->place && b->place &&
	       !(a->op == XPL_RMW && b->op == XPL_RMW);
}

static struct xpl_race_end end_of(const struct xpl_event *e)
{
	return (struct xpl_race_end){ e->pc, e->thread, xpl_reads(e), xpl_writes(e) };
}

static void note(struct xpl_races *r, const struct xpl_trace *t, uint32_t trace, uint32_t a, uint32_t b)
{
	const struct xpl_event *x = &t->events.v[a], *y = &t->events.v[b];

	for (size_t i = 0; i < r->v.n; i++) {
		struct xpl_race *k = &r->v.v[i];

		if ((k->first.pc == x->pc && k->second.pc == y->pc) || (k->first.pc == y->pc && k->second.pc == x->pc)) {
			k->pairs++;
			return;
		}
	}
	if (r->v.n >= MAX_RACES) {
		r->more = true;
		return;
	}
	vec_push(&r->v, (struct xpl_race){ .first = end_of(x), .second = end_of(y), .pairs = 1,
					   .address = t->vars.v[x->target].word + (uint64_t)__builtin_ctzll(x->mask) / 8,
					   .trace = trace, .events = { a, b }, .outcome = XPL_RACE_NOT_EXECUTED });
}

static void find_in(struct xpl_races *r, const struct xpl_trace *t, uint32_t trace)
{
	VEC(uint32_t) *of_var = xcalloc(t->vars.n + 1, sizeof *of_var);
	struct clocks c;

	clocks_new(&c, t);
	for (size_t i = 0; i < t->events.n; i++)
		if (xpl_is_access(&t->events.v[i]))
			vec_push(&of_var[t->events.v[i].target], (uint32_t)i);
	for (size_t v = 0; v < t->vars.n; v++) {
		size_t n = of_var[v].n < MAX_ACCESSES ? of_var[v].n : MAX_ACCESSES;

		r->more |= n < of_var[v].n;
		for (size_t i = 0; i < n; i++)
			for (size_t k = i + 1; k < n; k++)
				if (conflict(&t->events.v[of_var[v].v[i]], &t->events.v[of_var[v].v[k]]) &&
				    !ordered(&c, of_var[v].v[i], of_var[v].v[k]))
					note(r, t, trace, of_var[v].v[i], of_var[v].v[k]);
		vec_free(&of_var[v]);
	}
	free(of_var);
	clocks_free(&c);
}

/* ---- both orders ---- */

static size_t where(const struct xpl_trace *t, const struct xpl_event *e)
{
	for (size_t i = 0; i < t->events.n; i++) {
		const struct xpl_event *x = &t->events.v[i];

		if (x->thread == e->thread && x->place == e->place && x->nth == e->nth && x->op == e->op &&
		    x->inside == e->inside)
			return i;
	}
	return SIZE_MAX;
}

/* False: there is no such order, or the machine did not come through it. */
static err_t run_order(struct xpl_drive *d, const struct xpl_executor *exec, struct xpl_races *r, uint32_t trace,
		       uint32_t first, uint32_t second, struct xpl_seen *seen, bool *done)
{
	const struct xpl_trace *t = d->traces.v[trace];
	struct xpl_path path = { .stop = xpl_drive_stops, .stop_arg = d };
	struct xpl_order order = { 0 };
	err_t e = NULL;

	*done = false;
	if (xpl_search_order(t, first, second, MAX_STATES, &path) == XPL_FOUND) {
		xpl_steps_of(t, &path, &order.steps, &order.n);
		e = exec->run(exec->arg, &order, seen);
		r->orders++;
		if (!e && seen->trace) {
			size_t a = where(seen->trace, &t->events.v[first]), b = where(seen->trace, &t->events.v[second]);

			*done = a < b && b != SIZE_MAX && seen->tried.end != MACH_TRIED_LEFT;
			/* What comes after a crash is not seen any more. */
			*done |= a != SIZE_MAX && seen->tried.end == MACH_TRIED_FAILED;
		}
		free(order.steps);
	}
	xpl_path_free(&path);
	return e;
}

/* Like any failing order it is confirmed on the real program, where there is one. */
static bool fails(struct xpl_drive *d, const struct xpl_seen *s)
{
	bool stop = false;

	if (s->tried.end != MACH_TRIED_FAILED && s->tried.end != MACH_TRIED_STUCK)
		return false;
	return !d->o->failed ||
	       d->o->failed(d->o->arg, s, s->tried.end == MACH_TRIED_STUCK ? XPL_BAD_DEADLOCK : XPL_BAD_FAILED, &stop);
}

/* The machine alone says that it fails: what the real program does then is not known. */
static bool is_doubtful(const struct xpl_seen *s, bool failed)
{
	return !failed && (s->tried.end == MACH_TRIED_FAILED || s->tried.end == MACH_TRIED_STUCK);
}

static bool same_end(const struct xpl_seen *a, const struct xpl_seen *b)
{
	return a->tried.end == b->tried.end && a->tried.status == b->tried.status && a->output_len == b->output_len &&
	       (!a->output_len || !memcmp(a->output, b->output, a->output_len));
}

static err_t judge(struct xpl_drive *d, const struct xpl_executor *exec, struct xpl_races *r, struct xpl_race *k)
{
	struct xpl_seen as = { 0 }, turned = { 0 };
	bool one = false, two = false;
	err_t e = run_order(d, exec, r, k->trace, k->events[0], k->events[1], &as, &one);

	if (!e)
		e = run_order(d, exec, r, k->trace, k->events[1], k->events[0], &turned, &two);
	if (!e && (one || two)) {
		bool bad = one && fails(d, &as), worse = two && fails(d, &turned);
		const struct xpl_seen *told = two && (!one || worse || !bad) ? &turned : &as;

		one &= !is_doubtful(&as, bad);
		two &= !is_doubtful(&turned, worse);
		k->outcome = bad || worse ? XPL_RACE_FAILS : !one || !two ? XPL_RACE_NOT_EXECUTED :
			     same_end(&as, &turned) ? XPL_RACE_SAME : XPL_RACE_DIFFERS;
		k->decides = one && two && bad != worse;
		k->why = told->tried.why ? xstrdup(told->tried.why) : NULL;
	}
	xpl_seen_free(&as);
	xpl_seen_free(&turned);
	return e;
}

static int worst_first(const void *a, const void *b)
{
	const struct xpl_race *x = a, *y = b;

	if (x->outcome != y->outcome)
		return x->outcome < y->outcome ? -1 : 1;
	if (x->decides != y->decides)
		return x->decides ? -1 : 1;
	return x->events[0] != y->events[0] ? (x->events[0] > y->events[0]) - (x->events[0] < y->events[0]) :
	       x->first.pc != y->first.pc ? (x->first.pc > y->first.pc) - (x->first.pc < y->first.pc) :
					    (x->second.pc > y->second.pc) - (x->second.pc < y->second.pc);
}

err_t xpl_races_find(struct xpl_drive *d, const struct xpl_executor *exec, struct xpl_races *out)
{
	for (uint32_t i = 0; i < d->traces.n && i < MAX_TRACES && !xpl_drive_stops(d); i++)
		find_in(out, d->traces.v[i], i);
	for (size_t i = 0; i < out->v.n && !xpl_drive_stops(d); i++)
		TRY(judge(d, exec, out, &out->v.v[i]));
	if (out->v.n)
		qsort(out->v.v, out->v.n, sizeof *out->v.v, worst_first);
	return NULL;
}

void xpl_races_free(struct xpl_races *r)
{
	for (size_t i = 0; i < r->v.n; i++)
		free(r->v.v[i].why);
	vec_free(&r->v);
}
