/* SPDX-License-Identifier: GPL-2.0-or-later */
/* States of a trace: what each event needs, and what it does. */
#include "analyzer/explore/search_internal.h"

#include <string.h>

static uint64_t *var_word(const struct search *s, uint64_t *st, uint32_t v)
{
	return &st[s->vars_at + v];
}

static uint64_t *object_word(const struct search *s, uint64_t *st, uint32_t o)
{
	return &st[s->objects_at + 2 * o];
}

const struct xpl_event *xpl_state_next(const struct search *s, const uint64_t *st, uint32_t t)
{
	uint32_t at = POSITION(st[t]);

	if (!(st[t] & ALIVE) || st[t] & STOPPED)
		return NULL;
	if (at < s->t->threads[t].events.n)
		return xpl_at(s->t, t, at);
	return s->t->threads[t].waits ? &s->t->threads[t].pending : NULL;
}

bool xpl_state_is_pending(const struct search *s, const struct xpl_event *e)
{
	return e == &s->t->threads[e->thread].pending;
}

static bool is_free(const uint64_t *o, const struct xpl_object *obj, uint32_t t, bool shared)
{
	uint64_t owner = o[0] >> 32; /* thread + 1 */

	if (shared)
		return !owner;
	return (!owner && !o[1]) || (owner == t + 1 && obj->recursive);
}

enum can xpl_state_can(const struct search *s, uint64_t *st, const struct xpl_event *e, uint64_t *value)
{
	uint64_t *o = e->target != XPL_NONE && !xpl_is_access(e) ? object_word(s, st, e->target) : NULL;
	const struct xpl_object *obj = o ? &s->t->objects.v[e->target] : NULL;
	bool can;

	switch (e->op) {
	case XPL_READ:
	case XPL_RMW:
		*value = *var_word(s, st, e->target) & e->mask;
		return *value == e->value ? CAN : OTHERWISE;
	case XPL_LOCK:
		return is_free(o, obj, e->thread, e->shared) ? CAN : CANNOT;
	case XPL_TRY:
		*value = is_free(o, obj, e->thread, e->shared);
		return (bool)*value == (bool)e->result ? CAN : OTHERWISE;
	case XPL_WAIT_OUT:
		can = is_free(object_word(s, st, e->mutex), &s->t->objects.v[e->mutex], e->thread, false);
		return can && (!e->result || o[1] > LATE(st[e->thread])) ? CAN : CANNOT;
	case XPL_SEM_WAIT:
		return (int64_t)o[0] > 0 ? CAN : CANNOT;
	case XPL_SEM_TRY:
		*value = (int64_t)o[0] > 0;
		return (bool)*value == (bool)e->result ? CAN : OTHERWISE;
	case XPL_BAR_OUT:
		return obj->count <= 0 || (int64_t)o[0] >= obj->count * e->result ? CAN : CANNOT;
	case XPL_ONCE_RUN:
		return o[0] == 0 ? CAN : CANNOT;
	case XPL_ONCE_END:
		return e->result || o[0] == 2 ? CAN : CANNOT;
	case XPL_JOIN:
		return s->t->threads[e->peer].ended &&
				       POSITION(st[e->peer]) == s->t->threads[e->peer].events.n ?
			       CAN : CANNOT;
	default:
		return CAN;
	}
}

static void acquire(uint64_t *o, uint32_t t, bool shared)
{
	if (shared)
		o[1]++;
	else
		o[0] = (uint64_t)(t + 1) << 32 | ((uint32_t)o[0] + 1);
}

static void release(uint64_t *o)
{
	if ((uint32_t)o[0] > 1)
		o[0]--;
	else if (o[0])
		o[0] = 0;
	else if (o[1])
		o[1]--;
}

/* ---- conditions: a wake-up is for one of those that wait when it comes, never for who begins to wait later ---- */

static bool waits_for(const struct search *s, const uint64_t *st, uint32_t t, uint32_t cond)
{
	uint32_t at = POSITION(st[t]);

	if (!at || at > s->t->threads[t].events.n)
		return false;
	const struct xpl_event *e = xpl_at(s->t, t, at - 1);
	return e->op == XPL_WAIT_IN && e->target == cond;
}

static void drop_wake_up(const struct search *s, uint64_t *st, uint32_t cond, uint64_t which)
{
	object_word(s, st, cond)[1]--;
	for (uint32_t t = 0; t < s->t->nthreads; t++)
		if (LATE(st[t]) > which && waits_for(s, st, t, cond))
			st[t] -= LATE_BY_ONE;
}

/* One has gone without being woken: a wake-up that was for it alone is lost. */
static void drop_surplus(const struct search *s, uint64_t *st, uint32_t cond)
{
	for (uint64_t k = 0; k < object_word(s, st, cond)[1];) {
		uint64_t takers = 0;

		for (uint32_t t = 0; t < s->t->nthreads; t++)
			takers += LATE(st[t]) <= k && waits_for(s, st, t, cond);
		if (takers > k)
			k++;
		else
			drop_wake_up(s, st, cond, k);
	}
}

static void wake_all(const struct search *s, uint64_t *st, uint32_t cond)
{
	uint64_t *o = object_word(s, st, cond);

	o[1] = o[0];
	for (uint32_t t = 0; t < s->t->nthreads; t++)
		if (waits_for(s, st, t, cond))
			st[t] %= LATE_BY_ONE;
}

/* The event's thread, whose position is behind it already, goes on: of the wake-ups that are for it the oldest is used up. */
static void end_wait(const struct search *s, uint64_t *st, const struct xpl_event *e)
{
	uint64_t late = LATE(st[e->thread]);

	st[e->thread] %= LATE_BY_ONE;
	object_word(s, st, e->target)[0]--;
	if (e->result && object_word(s, st, e->target)[1] > late)
		drop_wake_up(s, st, e->target, late);
	else
		drop_surplus(s, st, e->target);
	acquire(object_word(s, st, e->mutex), e->thread, false);
}

void xpl_state_go(const struct search *s, uint64_t *st, const struct xpl_event *e)
{
	uint64_t *o = e->target != XPL_NONE && !xpl_is_access(e) ? object_word(s, st, e->target) : NULL;
	uint64_t *v = xpl_is_access(e) ? var_word(s, st, e->target) : NULL;

	st[e->thread]++;
	switch (e->op) {
	case XPL_WRITE:
	case XPL_RMW:
		*v = (*v & ~e->mask) | (e->wvalue & e->mask);
		break;
	case XPL_LOCK:
		acquire(o, e->thread, e->shared);
		break;
	case XPL_TRY:
		if (e->result)
			acquire(o, e->thread, e->shared);
		break;
	case XPL_UNLOCK:
		release(o);
		break;
	case XPL_WAIT_IN:
		release(object_word(s, st, e->mutex));
		o[0]++;
		st[e->thread] += o[1] * LATE_BY_ONE;
		break;
	case XPL_WAIT_OUT:
		end_wait(s, st, e);
		break;
	case XPL_SIGNAL:
		o[1] += o[1] < o[0];
		break;
	case XPL_BROADCAST:
		wake_all(s, st, e->target);
		break;
	case XPL_SEM_WAIT:
		o[0]--;
		break;
	case XPL_SEM_TRY:
		o[0] -= e->result ? 1 : 0;
		break;
	case XPL_SEM_POST:
	case XPL_BAR_IN:
		o[0]++;
		break;
	case XPL_ONCE_RUN:
		o[0] = 1;
		break;
	case XPL_ONCE_END:
		o[0] = 2;
		break;
	case XPL_FORK:
		st[e->peer] |= ALIVE;
		break;
	default:
		break;
	}
}

void xpl_state_start(struct search *s, uint64_t *st)
{
	const struct xpl_trace *t = s->t;

	memset(st, 0, s->words * sizeof *st);
	for (uint32_t i = 0; i < t->nthreads; i++)
		st[i] = t->threads[i].from_start ? ALIVE : 0;
	for (uint32_t i = 0; i < t->vars.n; i++)
		*var_word(s, st, i) = t->vars.v[i].init;
	for (uint32_t i = 0; i < t->objects.n; i++) {
		const struct xpl_object *o = &t->objects.v[i];
		uint64_t *w = object_word(s, st, i);

		if (o->kind == XPL_MUTEX && o->owner != XPL_NONE)
			acquire(w, o->owner, false);
		else if (o->kind == XPL_SEM || o->kind == XPL_ONCE)
			w[0] = (uint64_t)o->count;
	}
}

/* ---- hashes ---- */

/* A sum of such numbers must not cancel out where positions change by one: splitmix64's last steps. */
static uint64_t word_hash(size_t i, uint64_t word)
{
	uint64_t z = xpl_mix(i + 1, word) + 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Of a state: over its words in any order, so that a step changes it by the words that it changes. */
uint64_t xpl_state_hash(const struct search *s, const uint64_t *st)
{
	uint64_t h = 0;

	for (size_t i = 0; i < s->words; i++)
		h += word_hash(i, st[i]);
	return h;
}

/* What a step changed in these words: the event's thread, its target, its mutex or the thread that it makes, who waits for its condition. */
uint64_t xpl_state_change(const struct search *s, const uint64_t *st, const uint64_t *next, const struct xpl_event *e)
{
	size_t at[6] = { e->thread }, n = 1;
	uint64_t h = 0;

	if (xpl_is_access(e))
		at[n++] = s->vars_at + e->target;
	else if (e->target != XPL_NONE)
		at[n++] = s->objects_at + 2 * (size_t)e->target, at[n++] = s->objects_at + 2 * (size_t)e->target + 1;
	if (!xpl_is_access(e) && e->mutex != XPL_NONE)
		at[n++] = s->objects_at + 2 * (size_t)e->mutex, at[n++] = s->objects_at + 2 * (size_t)e->mutex + 1;
	if (e->op == XPL_FORK)
		at[n++] = e->peer;
	for (size_t i = 0; i < n; i++)
		if (st[at[i]] != next[at[i]])
			h += word_hash(at[i], next[at[i]]) - word_hash(at[i], st[at[i]]);
	/* Who waits for the condition besides. */
	for (uint32_t t = 0; t < s->t->nthreads && (e->op == XPL_WAIT_OUT || e->op == XPL_BROADCAST); t++)
		if (t != e->thread && st[t] != next[t])
			h += word_hash(t, next[t]) - word_hash(t, st[t]);
	return h;
}
