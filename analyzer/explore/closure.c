/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every combination of values that reads can see. An executed trace stands for all orders in which
 * each read sees the same. Where in one of those a read would see something else, there is a *way out*:
 * the histories of all threads in that state, with the read of the other value. When no executed trace
 * extends it, it is executed, and that gives a trace of a new class. When every way out of every trace
 * is extended by another, all have been seen: take any execution, and the longest of its beginnings
 * that a trace stands for; its next event is a way out of that trace, so another stands for more.
 */
#include "analyzer/explore/drive.h"

#include <string.h>

#define MAX_STATES 1000000u /* of one trace */
#define MAX_WAYS 200000u    /* waiting to be executed */

struct way {
	struct mach_step *steps;
	size_t nsteps;
	uint32_t trace;
	uint32_t *position;
	uint32_t thread;
	uint64_t history; /* of the thread, with what the read would see; 0: a deadlock */
	struct xpl_event target; /* the read, with that value */
	bool onward;      /* see struct xpl_order */
};

struct class {
	uint32_t nthreads;
	uint32_t *length;
	uint64_t **histories; /* by thread and event */
};

struct xpl_closure {
	VEC(struct class) classes;
	VEC(struct way) ways;   /* a stack: the latest first */
	uint64_t *known;        /* hashes of ways out that were seen */
	size_t nknown, cap;
	uint32_t next;          /* trace whose ways out were not looked for yet */
};

struct xpl_closure *xpl_closure_new(void)
{
	return xcalloc(1, sizeof(struct xpl_closure));
}

static void way_free(struct way *w)
{
	free(w->steps);
	free(w->position);
}

void xpl_closure_free(struct xpl_closure *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->classes.n; i++) {
		for (uint32_t t = 0; t < c->classes.v[i].nthreads; t++)
			free(c->classes.v[i].histories[t]);
		free(c->classes.v[i].histories);
		free(c->classes.v[i].length);
	}
	for (size_t i = 0; i < c->ways.n; i++)
		way_free(&c->ways.v[i]);
	vec_free(&c->classes);
	vec_free(&c->ways);
	free(c->known);
	free(c);
}

void xpl_closure_add(struct xpl_closure *c, const struct xpl_trace *t)
{
	struct class k = { .nthreads = t->nthreads };

	k.length = xcalloc(t->nthreads + 1, sizeof *k.length);
	k.histories = xcalloc(t->nthreads + 1, sizeof *k.histories);
	for (uint32_t i = 0; i < t->nthreads; i++) {
		size_t n = t->threads[i].events.n;

		k.length[i] = (uint32_t)n;
		k.histories[i] = xmalloc((n + 1) * sizeof **k.histories);
		for (size_t e = 0; e < n; e++)
			k.histories[i][e] = xpl_at(t, i, (uint32_t)e)->history;
	}
	vec_push(&c->classes, k);
}

bool xpl_closure_same(const struct xpl_closure *c, const struct xpl_trace *t)
{
	for (size_t i = 0; i < c->classes.n; i++) {
		const struct class *k = &c->classes.v[i];
		bool same = true;

		for (uint32_t th = 0; th < t->nthreads && same; th++) {
			uint32_t n = (uint32_t)t->threads[th].events.n;

			same = k->length[th] == n && (!n || k->histories[th][n - 1] == xpl_at(t, th, n - 1)->history);
		}
		if (same)
			return true;
	}
	return false;
}

/* Does the class begin like this? The thread's own history has `history' behind its position. */
static bool extends(const struct class *k, const struct xpl_trace *t, const uint32_t *position,
		    uint32_t thread, uint64_t history)
{
	for (uint32_t i = 0; i < t->nthreads; i++) {
		uint32_t n = position[i];

		if (i == thread && (k->length[i] <= n || k->histories[i][n] != history))
			return false;
		if (n && (k->length[i] < n || k->histories[i][n - 1] != xpl_at(t, i, n - 1)->history))
			return false;
	}
	return true;
}

bool xpl_closure_has(struct xpl_closure *c, const struct xpl_trace *t, const uint32_t *position,
		     uint32_t thread, uint64_t history)
{
	for (size_t i = c->classes.n; i-- > 0;)
		if (extends(&c->classes.v[i], t, position, thread, history))
			return true;
	return false;
}

/* ---- looking for ways out ---- */

struct looking {
	struct xpl_drive *d;
	struct xpl_closure *c;
	const struct xpl_trace *t;
	uint32_t trace;
	bool full;
};

/* False: it was seen before. */
static bool note_way(struct xpl_closure *c, uint64_t h)
{
	h |= !h;
	if (2 * (c->nknown + 1) > c->cap) {
		uint64_t *old = c->known;
		size_t n = c->cap;

		c->cap = n ? 2 * n : 1024;
		c->known = xcalloc(c->cap, sizeof *c->known);
		for (size_t i = 0; i < n; i++)
			for (size_t k = old[i] & (c->cap - 1); old[i]; k = (k + 1) & (c->cap - 1))
				if (!c->known[k]) {
					c->known[k] = old[i];
					break;
				}
		free(old);
	}
	size_t k = h & (c->cap - 1);
	while (c->known[k] && c->known[k] != h)
		k = (k + 1) & (c->cap - 1);
	if (c->known[k])
		return false;
	c->known[k] = h;
	c->nknown++;
	return true;
}

static uint64_t state_hash(const struct xpl_trace *t, const uint32_t *position, uint32_t thread, uint64_t history)
{
	uint64_t h = xpl_mix(history, thread);

	for (uint32_t i = 0; i < t->nthreads; i++)
		h = xpl_mix(h, position[i] ? xpl_at(t, i, position[i] - 1)->history : i);
	return h;
}

/* The event with what it would see. */
static struct xpl_event event_with(const struct xpl_way_out *w)
{
	struct xpl_event e = *w->event;

	if (xpl_is_access(&e))
		e.value = w->value;
	else if (e.op == XPL_TRY || e.op == XPL_SEM_TRY)
		e.result = (int32_t)w->value;
	return e;
}

static uint64_t history_with(const struct xpl_trace *t, uint32_t thread, uint32_t at, struct xpl_event e)
{
	struct xpl_trace *one = xpl_trace_new(t->nthreads);
	uint64_t h;

	/* As if it had been observed: a trace of its own gives the hash of the last link. */
	if (at) {
		vec_push(&one->events, *xpl_at(t, thread, at - 1));
		vec_push(&one->threads[thread].events, 0);
	}
	xpl_trace_add(one, &e);
	h = one->events.v[one->events.n - 1].history;
	xpl_trace_free(one);
	return h;
}

static void push(struct looking *l, const struct xpl_path *path, const uint32_t *position, uint32_t thread,
		 uint64_t history, const struct xpl_event *target)
{
	struct way w = { .trace = l->trace, .thread = thread, .history = history };

	xpl_steps_of(l->t, path, &w.steps, &w.nsteps);
	if (target) {
		w.target = *target;
		if (position[thread] == l->t->threads[thread].events.n && target->place) {
			w.steps = xrealloc(w.steps, (w.nsteps + 1) * sizeof *w.steps);
			w.steps[w.nsteps++] = (struct mach_step){ thread, target->place, target->inside, target->nth };
		}
	}
	w.position = xmalloc((l->t->nthreads + 1) * sizeof *w.position);
	memcpy(w.position, position, l->t->nthreads * sizeof *w.position);
	vec_push(&l->c->ways, w);
	l->d->ways++;
	l->full |= l->c->ways.n >= MAX_WAYS;
}

/* Of the first trace's ways out a shard takes its own; what they lead to is all its own. */
static bool is_mine(const struct looking *l, const uint32_t *position, const struct xpl_event *e)
{
	uint64_t part = e ? xpl_mix(e->thread, e->nth) ^ (e->place & XPL_IN_PAGE) : 1;

	for (uint32_t i = 0; i < l->t->nthreads; i++)
		part = xpl_mix(part, position[i]);
	return l->trace || xpl_is_mine(l->d, part);
}

static bool on_way(void *arg, const struct xpl_way_out *w)
{
	struct looking *l = arg;
	struct xpl_event target = event_with(w);
	uint64_t history = history_with(l->t, w->thread, w->position[w->thread], target);

	if (!note_way(l->c, state_hash(l->t, w->position, w->thread, history)) ||
	    xpl_closure_has(l->c, l->t, w->position, w->thread, history) || !is_mine(l, w->position, w->event))
		return false;
	push(l, w->path, w->position, w->thread, history, &target);
	return l->full || (l->d->o->deadline > 0 && !(l->d->ways & 63) && xpl_drive_over(l->d));
}

/* Its last step is this thread's at a place it does not have, so that it goes on until it ends or waits. */
static void push_onward(struct looking *l, const struct xpl_path *path, const uint32_t *position, uint32_t thread,
			uint64_t place)
{
	push(l, path, position, XPL_NONE, 0, NULL);
	struct way *w = &l->c->ways.v[l->c->ways.n - 1];
	w->steps = xrealloc(w->steps, (w->nsteps + 1) * sizeof *w->steps);
	w->steps[w->nsteps++] = (struct mach_step){ thread, place, 0, 1 };
	w->onward = true;
}

static bool on_deadlock(void *arg, const uint32_t *position, const struct xpl_path *path, const struct xpl_event *first)
{
	struct looking *l = arg;

	/* One order for each such pair of places: the lock is of one kind or the other. */
	if (first) {
		if (note_way(l->c, xpl_mix(xpl_mix(first->pc, first->thread), first->target)))
			push_onward(l, path, position, first->thread, UINT64_MAX);
		return l->full;
	}

	/* An execution that ended there is one already. */
	bool here = true;
	for (uint32_t i = 0; i < l->t->nthreads && here; i++)
		here = position[i] == l->t->threads[i].events.n;
	if (!here && is_mine(l, position, NULL) && note_way(l->c, state_hash(l->t, position, XPL_NONE, 1)))
		push(l, path, position, XPL_NONE, 0, NULL);
	return l->full;
}

/* What nobody reads any more is a part of the final state all the same. */
static bool on_last(void *arg, const uint32_t *position, uint64_t memory, const struct xpl_path *path)
{
	struct looking *l = arg;

	if (note_way(l->c, state_hash(l->t, position, XPL_NONE, memory)) && is_mine(l, position, NULL))
		push(l, path, position, XPL_NONE, 0, NULL);
	return l->full;
}

/*
 * Threads that the end of the process cut off, where no other execution shows how they go on: each is let go on before that. One that
 * waited gets no further then either, and that is known too.
 */
static void look_at_cut_off(struct looking *l)
{
	const struct xpl_trace *t = l->t;
	struct xpl_path all = { 0 };
	uint32_t *position = xcalloc(t->nthreads + 1, sizeof *position);

	for (uint32_t i = 0; i < t->events.n; i++)
		vec_push(&all.events, i);
	for (uint32_t i = 0; i < t->nthreads; i++)
		position[i] = (uint32_t)t->threads[i].events.n;
	for (uint32_t i = 0; i < t->nthreads && !t->cut; i++) {
		const struct xpl_thread *th = &t->threads[i];

		if (i != t->exits && t->exits != XPL_NONE && xpl_is_born(t, i) && !th->ended && !th->waits &&
		    !xpl_drive_next(l->d, t, i) && note_way(l->c, state_hash(t, position, i, 1)))
			push_onward(l, &all, position, i, UINT64_MAX);
	}
	free(position);
	vec_free(&all.events);
}

static void look(struct xpl_drive *d, uint32_t trace)
{
	struct looking l = { d, d->closure, d->traces.v[trace], trace, false };
	bool finals = d->o->strategy == XPL_MCR;
	const struct xpl_ways ways = { &l, on_way, on_deadlock, finals ? on_last : NULL };
	struct xpl_path path = { .stop = xpl_drive_stops, .stop_arg = d };

	if (finals) {
		uint32_t *all = xcalloc(l.t->nthreads + 1, sizeof *all);

		for (uint32_t i = 0; i < l.t->nthreads; i++)
			all[i] = (uint32_t)l.t->threads[i].events.n;
		note_way(l.c, state_hash(l.t, all, XPL_NONE, xpl_search_memory(l.t)));
		free(all);
	}

	enum xpl_found how = xpl_search_ways(l.t, &ways, MAX_STATES, &path);
	d->too_large += how == XPL_TOO_LARGE || l.full;
	d->states += path.states;
	look_at_cut_off(&l);
	xpl_path_free(&path);
}

/* The latest way out that no execution has taken since it was found; false: there is none. */
static bool next_way(struct xpl_closure *c, struct xpl_drive *d, struct xpl_order *o)
{
	while (c->ways.n) {
		struct way w = c->ways.v[--c->ways.n];

		if (!w.history || !xpl_closure_has(c, d->traces.v[w.trace], w.position, w.thread, w.history)) {
			*o = (struct xpl_order){ .steps = w.steps, .n = w.nsteps, .expects = w.history, .expect = w.target,
						    .onward = w.onward };
			w.steps = NULL;
			way_free(&w);
			return true;
		}
		way_free(&w);
	}
	return false;
}

err_t xpl_closure_step(struct xpl_drive *d, bool *done)
{
	struct xpl_closure *c = d->closure;
	size_t room = xpl_drive_room(d);
	xpl_orders orders = { 0 };

	while (orders.n < room && !xpl_drive_over(d)) {
		struct xpl_order o;

		if (next_way(c, d, &o)) {
			d->constraints++;
			vec_push(&orders, o);
		} else if (orders.n) {
			break;
		} else if (c->next < d->traces.n) {
			look(d, c->next++);
		} else {
			*done = true;
			break;
		}
	}
	return orders.n ? xpl_drive_try_all(d, &orders) : NULL;
}
