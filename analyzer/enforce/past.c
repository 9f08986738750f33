/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The window of an explanation may begin in the middle of the run: which worker had which piece of work by
 * then was decided before. Here the synchronisation of the run is put before that of the window, as one
 * trace with nothing else in it, and the order of its handovers is what has to be enforced.
 */
#include "analyzer/enforce/edges_internal.h"

/* The wait a thread is in: the release that began it. */
struct wait {
	uint64_t cond, pc, occurrence;
	uint32_t release; /* SYM_NONE: it is in none */
};

struct past {
	struct sym_trace *t;
	struct wait *waits;      /* by thread */
	VEC(struct sched_ref) order;
	size_t boundary;         /* so much of the order lies before the window */
};

static uint32_t object_at(struct past *p, uint64_t address, enum sym_object_kind kind, int64_t count)
{
	for (uint32_t i = 0; i < p->t->nobjects; i++)
		if (p->t->objects[i].address == address)
			return i;
	return sym_add_object(p->t, &(struct sym_object){ .name = (char *)"", .kind = kind, .address = address,
							   .count = count, .owner = SYM_NONE });
}

static void append(struct past *p, uint32_t thread, const struct sym_event *e)
{
	struct sched_ref r = { thread, sym_add_event(p->t, thread, e) };

	vec_push(&p->order, r);
}

/* The lock behind a wait comes with the wake-up. */
static void end_wait(struct past *p, uint32_t thread, const struct sym_event *lock)
{
	struct wait *w = &p->waits[thread];
	struct sym_event e;

	if (w->release == SYM_NONE || lock->op != SYM_LOCK || w->pc != lock->pc || w->occurrence != lock->occurrence)
		return;
	sym_event_init(&e, SYM_WAIT);
	e.target = object_at(p, w->cond, SYM_COND, 0);
	e.link = w->release;
	e.pc = w->pc;
	e.occurrence = w->occurrence;
	append(p, thread, &e);
	w->release = SYM_NONE;
}

static void take(struct past *p, uint32_t thread, struct sym_event *e, uint64_t cond)
{
	end_wait(p, thread, e);
	append(p, thread, e);
	if (e->op == SYM_UNLOCK && cond)
		p->waits[thread] = (struct wait){ cond, e->pc, e->occurrence,
						  (uint32_t)p->t->threads[thread].nevents - 1 };
}

static void take_past(struct past *p, const struct ext_result *r)
{
	for (size_t i = 0; i < r->past.n; i++) {
		const struct ext_past *x = &r->past.v[i];
		struct sym_event e;

		sym_event_init(&e, x->op);
		e.target = object_at(p, x->object, x->kind, 0);
		e.result = x->result;
		e.pc = x->pc;
		e.occurrence = x->occurrence;
		take(p, x->thread, &e, x->cond);
	}
	p->boundary = p->order.n;
}

/* The condition that the wait is for whose release this is; 0: it is none. */
static uint64_t cond_of(const struct sym_trace *t, struct sched_ref r)
{
	const struct sym_thread *th = &t->threads[r.thread];

	for (uint32_t i = r.index + 1; i < th->nevents && i < r.index + 3; i++)
		if (th->events[i].op == SYM_WAIT && th->events[i].link == r.index)
			return t->objects[th->events[i].target].address;
	return 0;
}

static void take_window(struct past *p, const struct sym_trace *t, const struct sched_order *order, size_t until)
{
	for (size_t i = 0; i < order->n && i < until; i++) {
		struct sched_ref r = order->refs[i];
		struct sym_event e = *order_event(t, r);

		if (e.op < SYM_LOCK || e.op > SYM_ONCE_END || e.op == SYM_WAIT || e.target == SYM_NONE)
			continue;
		const struct sym_object *o = &t->objects[e.target];
		uint64_t cond = e.op == SYM_UNLOCK ? cond_of(t, r) : 0;
		e.target = object_at(p, o->address, o->kind, o->count);
		e.link = e.stack = e.variable = SYM_NONE;
		take(p, r.thread, &e, cond);
	}
}

static bool acquires(const struct sym_event *e)
{
	return e->op == SYM_LOCK || e->op == SYM_RDLOCK || e->op == SYM_SEMWAIT ||
	       e->op == SYM_TRYLOCK || e->op == SYM_TRYRDLOCK;
}

/*
 * Whoever takes a lock behind somebody else waits for its release; at semaphores they come in the
 * same order. In the window, too: what was written before it has no event there that could be ordered.
 */
static void handovers(struct edges_work *w)
{
	const struct sym_trace *t = w->t;
	struct sched_ref *last = xcalloc(t->nobjects * t->nthreads + 1, sizeof *last);

	for (size_t i = 0; i < t->nobjects * t->nthreads; i++)
		last[i].index = SYM_NONE;
	for (size_t i = 0; i < w->until; i++) {
		struct sched_ref r = w->order->refs[i];
		const struct sym_event *e = order_event(t, r);
		/* Several may have been reading; of anything else the last one says it all. */
		bool shared = t->objects[e->target].kind == SYM_RWLOCK;
		struct sched_ref *of = &last[e->target * t->nthreads];

		for (uint32_t k = 0; acquires(e) && k < (shared ? t->nthreads : 1); k++)
			if (of[k].index != SYM_NONE)
				edges_push(w, of[k], r);
		if (e->op == SYM_UNLOCK || (e->op == SYM_SEMWAIT && e->result))
			of[shared ? r.thread : 0] = r;
	}
	free(last);
}

static struct past begin(const struct ext_result *r)
{
	struct past p = { .t = sym_trace_new(), .waits = xcalloc(r->trace->nthreads + 1, sizeof *p.waits) };

	for (size_t i = 0; i < r->trace->nthreads; i++) {
		sym_add_thread(p.t, r->trace->threads[i].id, NULL);
		p.waits[i].release = SYM_NONE;
	}
	take_past(&p, r);
	return p;
}

static struct sym_trace *end(struct past *p)
{
	vec_free(&p->order);
	free(p->waits);
	return p->t;
}

struct sym_trace *edges_past_trace(const struct ext_result *r)
{
	struct past p = begin(r);

	return end(&p);
}

struct sym_trace *edges_of_past(const struct ext_result *r, const struct sched_order *order, size_t until,
				struct edges *out)
{
	struct past p = begin(r);

	if (p.boundary)
		take_window(&p, r->trace, order, until);
	struct sched_order all = { .refs = p.order.v, .n = p.order.n };
	struct edges_work w = { .t = p.t, .order = &all, .until = all.n, .out = out };
	edges_begin(&w);
	handovers(&w);
	for (size_t i = 0; i < p.boundary; i++)
		edges_barrier(&w, all.refs[i]);
	edges_wakes(&w);
	edges_reduce(&w);
	edges_end(&w);
	return end(&p);
}
