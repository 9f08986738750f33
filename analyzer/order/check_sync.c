/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locks, condition variables, semaphores, barriers, once, join: as the checker sees them. */
#include "analyzer/order/check_internal.h"

static struct share *find_share(struct order_check *c, uint32_t object, uint32_t thread)
{
	for (size_t i = 0; i < c->shares.n; i++)
		if (c->shares.v[i].object == object && c->shares.v[i].thread == thread)
			return &c->shares.v[i];
	return NULL;
}

static bool is_shared(const struct order_check *c, uint32_t object)
{
	for (size_t i = 0; i < c->shares.n; i++)
		if (c->shares.v[i].object == object)
			return true;
	return false;
}

static bool lock_free_for(const struct order_check *c, const struct sym_event *e)
{
	const struct order_check_object *o = &c->object[e->target];

	if (order_shared(e))
		return o->owner == SYM_NONE;
	if (o->owner == e->thread)
		return c->v->t->objects[e->target].recursive;
	return o->owner == SYM_NONE && !is_shared(c, e->target);
}

static bool acquire(struct order_check *c, const struct sym_event *e)
{
	struct order_check_object *o = &c->object[e->target];
	struct share *s;

	if (!lock_free_for(c, e))
		return false;
	if (!order_shared(e)) {
		o->owner = e->thread;
		o->depth++;
	} else if ((s = find_share(c, e->target, e->thread))) {
		s->count++;
	} else {
		vec_push(&c->shares, (struct share){ e->target, e->thread, 1 });
	}
	return true;
}

static void release(struct order_check *c, uint32_t object, uint32_t thread)
{
	struct order_check_object *o = &c->object[object];
	struct share *s = find_share(c, object, thread);

	if (o->owner == thread) {
		if (--o->depth == 0)
			o->owner = SYM_NONE;
	} else if (s && --s->count == 0) {
		*s = c->shares.v[--c->shares.n];
	}
}

void order_release_all(struct order_check *c, uint32_t thread)
{
	for (size_t i = 0; i < c->v->t->nobjects; i++) {
		if (c->object[i].owner == thread) {
			c->object[i].owner = SYM_NONE;
			c->object[i].depth = 0;
		}
	}
	for (size_t i = c->shares.n; i-- > 0;)
		if (c->shares.v[i].thread == thread)
			c->shares.v[i] = c->shares.v[--c->shares.n];
	for (uint32_t i = c->v->first[thread]; i < c->v->first[thread + 1]; i++) {
		const struct sym_event *e = c->v->ev[i].e;

		if (!order_check_executed(c, i) || (e->op != SYM_SEMWAIT && e->op != SYM_SEMPOST) || !c->v->lent[e->target])
			continue;
		if (e->op == SYM_SEMPOST)
			c->object[e->target].count--;
		else if (e->result)
			c->object[e->target].count++;
	}
}

/* Tokens matter only to those who wait now; without waiters they are lost. */
static void stop_waiting(struct order_check *c, uint32_t cond)
{
	if (--c->waiting[cond])
		return;
	for (size_t i = c->tokens.n; i-- > 0;)
		if (c->tokens.v[i].cond == cond)
			c->tokens.v[i] = c->tokens.v[--c->tokens.n];
}

static struct token *first_token(struct order_check *c, uint32_t cond, uint64_t since)
{
	struct token *best = NULL;

	for (size_t i = 0; i < c->tokens.n; i++) {
		struct token *k = &c->tokens.v[i];

		if (k->cond == cond && k->when > since && (!best || k->when < best->when))
			best = k;
	}
	return best;
}

/*
 * Every wake-up needs a signal of its own or a broadcast. Taking the earliest
 * signal that fits leaves the later ones, which suit every waiter that an
 * earlier one suits: so this finds an assignment whenever there is one.
 */
static bool wake(struct order_check *c, const struct sym_event *e)
{
	uint64_t since = c->wait_since[e->thread];

	if (e->result == 1 && c->broadcast[e->target] <= since) {
		struct token *k = first_token(c, e->target, since);

		if (!k)
			return false;
		*k = c->tokens.v[--c->tokens.n];
	}
	for (size_t i = c->log.n; i-- > 0;) {
		if (c->log.v[i].end == UINT64_MAX && c->log.v[i].thread == e->thread) {
			c->log.v[i].end = c->now;
			break;
		}
	}
	stop_waiting(c, e->target);
	return true;
}

static void begin_wait(struct order_check *c, uint32_t i)
{
	uint32_t wait = c->v->ev[i].wait;

	if (wait == SYM_NONE)
		return;
	uint32_t cond = c->v->ev[wait].e->target, thread = c->v->ev[i].e->thread;

	c->waiting[cond]++;
	c->wait_since[thread] = c->now;
	if (c->logged[cond])
		vec_push(&c->log, (struct cond_log){ cond, c->now, UINT64_MAX, thread });
}

static void signal_step(struct order_check *c, const struct sym_event *e)
{
	if (c->waiting[e->target])
		vec_push(&c->tokens, (struct token){ e->target, c->now });
	if (c->logged[e->target])
		vec_push(&c->log, (struct cond_log){ e->target, c->now, 0, e->thread });
}

/* The waiter that can take this signal and wakes up first; it is then used up. */
static bool taken_by_another(struct order_check *c, bool *used, uint32_t cond, uint64_t when)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < c->log.n; i++) {
		const struct cond_log *w = &c->log.v[i];

		if (w->cond != cond || !w->end || w->end == UINT64_MAX || used[i])
			continue;
		if (w->begin < when && when < w->end && w->begin > c->broadcast[cond] &&
		    (best == SIZE_MAX || w->end < c->log.v[best].end))
			best = i;
	}
	if (best == SIZE_MAX)
		return false;
	used[best] = true;
	return true;
}

/*
 * A signal wakes somebody who waits. The pending waiter is stuck only if each
 * signal since he began can have gone to another. That those others' wake-ups
 * all have a signal was seen as they happened; one assignment that does both
 * then exists (Mendelsohn and Dulmage).
 */
static bool wakes_up(struct order_check *c, const struct sym_event *e)
{
	uint64_t since = c->wait_since[e->thread];
	bool *used, stuck = true;

	if (c->broadcast[e->target] > since)
		return true;
	used = xcalloc(c->log.n + 1, sizeof *used);
	for (size_t i = 0; i < c->log.n && stuck; i++) {
		const struct cond_log *s = &c->log.v[i];

		if (s->cond == e->target && !s->end && s->begin > since)
			stuck = taken_by_another(c, used, e->target, s->begin);
	}
	free(used);
	return !stuck;
}

static bool barrier_open(const struct order_check *c, const struct sym_event *e)
{
	int64_t size = c->v->t->objects[e->target].count;

	return c->object[e->target].count >= (c->round[e->thread] + 1) * size;
}

/* Whoever waits for the initialiser may enter once it has begun. */
static bool once_begin(struct order_check *c, const struct sym_event *e)
{
	struct order_check_object *o = &c->object[e->target];

	if (e->result != 1)
		return o->count > 0;
	if (o->count)
		return false;
	o->count = 1;
	o->owner = e->thread;
	return true;
}

static bool once_end(struct order_check *c, const struct sym_event *e)
{
	struct order_check_object *o = &c->object[e->target];

	if (o->owner == e->thread && o->count == 1)
		o->count = 2;
	return o->count == 2;
}

static bool joinable(const struct order_check *c, const struct sym_event *e)
{
	const struct order_view *v = c->v;
	uint32_t last = v->first[e->peer + 1];

	if (last == v->first[e->peer])
		return true;
	/* A join that never returned does not return because the recording ended. */
	if (v->ev[v->first[e->thread] + e->index].pending && v->ev[last - 1].e->op != SYM_EXIT)
		return false;
	return order_check_executed(c, last - 1);
}

bool order_sync_step(struct order_check *c, uint32_t i)
{
	const struct sym_event *e = c->v->ev[i].e;
	struct order_check_object *o = e->target != SYM_NONE ? &c->object[e->target] : NULL;

	switch (e->op) {
	case SYM_LOCK: case SYM_RDLOCK:
		return acquire(c, e);
	case SYM_TRYLOCK: case SYM_TRYRDLOCK:
		if (e->result)
			return acquire(c, e);
		return o->owner != SYM_NONE || (e->op == SYM_TRYLOCK && is_shared(c, e->target));
	case SYM_UNLOCK:
		release(c, e->target, e->thread);
		begin_wait(c, i);
		return true;
	case SYM_WAIT:
		return wake(c, e);
	case SYM_SIGNAL:
		signal_step(c, e);
		return true;
	case SYM_BROADCAST:
		c->broadcast[e->target] = c->now;
		return true;
	case SYM_SEMWAIT:
		if (!e->result)
			return o->count == 0;
		if (o->count <= 0)
			return false;
		o->count--;
		return true;
	case SYM_SEMPOST:
		o->count++;
		return true;
	case SYM_BARRIER_ENTER:
		c->round[e->thread] = o->count++ / c->v->t->objects[e->target].count;
		return true;
	case SYM_BARRIER_LEAVE:
		return barrier_open(c, e);
	case SYM_ONCE_BEGIN:
		return once_begin(c, e);
	case SYM_ONCE_END:
		return once_end(c, e);
	case SYM_JOIN:
		return joinable(c, e);
	default:
		return true;
	}
}

bool order_sync_ready(struct order_check *c, uint32_t i)
{
	const struct sym_event *e = c->v->ev[i].e;
	bool all;

	switch (e->op) {
	case SYM_LOCK: case SYM_RDLOCK: case SYM_TRYLOCK: case SYM_TRYRDLOCK:
		return lock_free_for(c, e) == (e->result != 0);
	case SYM_WAIT:
		if (c->v->ev[i].pending)
			return wakes_up(c, e);
		return e->result != 1 || order_check_tokens(c, e->target, e->thread, &all) || all;
	case SYM_SEMWAIT:
		return (c->object[e->target].count > 0) == (e->result != 0);
	case SYM_BARRIER_LEAVE:
		return barrier_open(c, e);
	case SYM_ONCE_BEGIN:
		return (c->object[e->target].count > 0) == (e->result != 1);
	case SYM_ONCE_END:
		return c->object[e->target].count == 2 || c->object[e->target].owner == e->thread;
	case SYM_JOIN:
		return joinable(c, e);
	default:
		return true;
	}
}
