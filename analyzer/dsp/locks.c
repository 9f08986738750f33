/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which locks a region lacks, and who waits for whom in a deadlock. */
#include "analyzer/dsp/internal.h"

#include <string.h>

/* A lock that is held at both ends (throughout: since the same event), and is not held by the other. */
static uint32_t held_without(const order_held_locks *first, const order_held_locks *last,
			     const order_held_locks *other, bool throughout)
{
	for (size_t i = 0; i < first->n; i++)
		for (size_t k = 0; k < last->n; k++) {
			bool held = false;

			if (first->v[i].object != last->v[k].object ||
			    (throughout && first->v[i].since != last->v[k].since))
				continue;
			for (size_t o = 0; o < other->n; o++)
				held |= other->v[o].object == first->v[i].object;
			if (!held)
				return first->v[i].object;
		}
	return SYM_NONE;
}

static bool is_held(const order_held_locks *held, uint32_t object)
{
	for (size_t i = 0; i < held->n; i++)
		if (held->v[i].object == object)
			return true;
	return false;
}

/*
 * Things that have a lock each: it is held at the one and at the other, never both, and who got in between goes
 * by the same rule. Where one lock is held at both ends that is the one to keep.
 */
static void locks_of_each(const order_held_locks *first, const order_held_locks *last, const order_held_locks *other,
			  struct dsp_region *r)
{
	uint32_t a = first->n == 1 ? first->v[0].object : SYM_NONE;
	uint32_t b = last->n == 1 ? last->v[0].object : SYM_NONE;

	r->first_lock = r->last_lock = SYM_NONE;
	if (r->var != SYM_NONE || a == SYM_NONE || b == SYM_NONE || a == b ||
	    (!is_held(other, a) && !is_held(other, b)))
		return;
	r->first_lock = a;
	r->last_lock = b;
}

static bool is_read_locked(const struct sym_trace *t, uint32_t thread, const order_held_locks *held, uint32_t object)
{
	for (size_t i = 0; i < held->n; i++)
		if (held->v[i].object == object && order_is_for_reading(t, thread, &held->v[i]))
			return true;
	return false;
}

void dsp_region_locks(const struct sym_trace *t, struct dsp_region *r)
{
	order_held_locks first = { 0 }, last = { 0 }, other = { 0 };

	order_locks_held(t, r->thread, r->first, &first);
	order_locks_held(t, r->end.thread, r->end.index, &last);
	order_locks_held(t, r->intruder.thread, r->intruder.index, &other);
	r->common_lock = r->other_lock = r->own_lock = r->both_lock = r->shared_lock = r->release = SYM_NONE;
	for (size_t o = 0; o < other.n; o++) {
		uint32_t lock = other.v[o].object;
		bool at_first = false, at_last = false;

		for (size_t i = 0; i < first.n; i++)
			at_first |= first.v[i].object == lock;
		for (size_t i = 0; i < last.n; i++)
			at_last |= last.v[i].object == lock;
		if (at_first && at_last)
			r->common_lock = lock;
		else
			r->other_lock = lock;
	}
	for (uint32_t i = r->last == SYM_NONE ? (uint32_t)t->threads[r->thread].nevents : r->last;
	     r->common_lock != SYM_NONE && i-- > r->first;) {
		const struct sym_event *e = &t->threads[r->thread].events[i];

		if (order_releases(e) && e->target == r->common_lock)
			r->release = i;
	}
	/* For reading it does not help to keep it. */
	if (r->common_lock != SYM_NONE && is_read_locked(t, r->thread, &first, r->common_lock) &&
	    is_read_locked(t, r->end.thread, &last, r->common_lock) &&
	    is_read_locked(t, r->intruder.thread, &other, r->common_lock)) {
		r->shared_lock = r->common_lock;
		r->release = SYM_NONE;
	}
	/* Held throughout: then the intruder cannot have been in between under it, unless both only read. */
	if (r->release == SYM_NONE)
		r->common_lock = SYM_NONE;
	locks_of_each(&first, &last, &other, r);
	if (r->common_lock == SYM_NONE)
		r->own_lock = held_without(&first, &last, &other, true);
	if (r->common_lock == SYM_NONE && r->own_lock == SYM_NONE)
		r->both_lock = held_without(&first, &last, &other, false);
	vec_free(&first);
	vec_free(&last);
	vec_free(&other);
}

/* Nobody gives back what this waits for, and who took the last of it waits, too: SIZE_MAX: not so. */
static size_t taker(const struct sym_trace *t, const struct sym_event *want, uint32_t *since)
{
	size_t found = SIZE_MAX;

	for (uint32_t i = 0; i < t->nthreads; i++)
		for (uint32_t k = 0; k < t->threads[i].nevents; k++)
			if (t->threads[i].events[k].op == SYM_SEMPOST && t->threads[i].events[k].target == want->target)
				return SIZE_MAX;
	for (size_t k = 0; k < t->failure.nblocked; k++) {
		const struct sym_blocked *b = &t->failure.blocked[k];

		for (uint32_t i = 0; b->thread < t->nthreads && b->thread != want->thread && i < b->event; i++) {
			const struct sym_event *e = &t->threads[b->thread].events[i];

			if (e->op != SYM_SEMWAIT || e->target != want->target || !e->result)
				continue;
			found = k;
			*since = i;
		}
	}
	return found;
}

size_t dsp_blocker(const struct sym_trace *t, size_t i, uint32_t *since)
{
	const struct sym_failure *f = &t->failure;
	const struct sched_ref want = { f->blocked[i].thread, f->blocked[i].event };
	const struct sym_event *e = order_event_at(t, want);
	order_held_locks held = { 0 };
	size_t found = SIZE_MAX;

	if (!e || (!order_acquires(e) && e->op != SYM_SEMWAIT))
		return SIZE_MAX;
	for (size_t k = 0; k < f->nblocked && found == SIZE_MAX; k++) {
		if (f->blocked[k].thread >= t->nthreads)
			continue;
		order_locks_held(t, f->blocked[k].thread, f->blocked[k].event, &held);
		for (size_t h = 0; h < held.n; h++) {
			if (held.v[h].object != e->target)
				continue;
			found = k;
			*since = held.v[h].since;
		}
	}
	vec_free(&held);
	return found == SIZE_MAX && e->op == SYM_SEMWAIT ? taker(t, e, since) : found;
}
