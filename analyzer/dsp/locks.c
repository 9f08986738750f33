#include "analyzer/dsp/internal.h"

#include <string.h>

bool dsp_acquires(const struct sym_event *e)
{
	switch (e->op) {
	case SYM_LOCK:
	case SYM_RDLOCK:
		return true;
	case SYM_TRYLOCK:
	case SYM_TRYRDLOCK:
		return e->result == 1;
	default:
		return false;
	}
}

bool dsp_releases(const struct sym_event *e)
{
	return e->op == SYM_UNLOCK || e->op == SYM_SEMPOST;
}

/* A semaphore of one, which everybody gives back who has taken it, and nobody else. */
static bool is_used_as_lock(const struct sym_trace *t, uint32_t object)
{
	bool given = false;

	if (t->objects[object].kind != SYM_SEM)
		return true;
	for (uint32_t i = 0; i < t->nthreads; i++) {
		bool has = false;

		for (uint32_t k = 0; k < t->threads[i].nevents; k++) {
			const struct sym_event *e = &t->threads[i].events[k];

			if (e->target != object || (e->op != SYM_SEMWAIT && e->op != SYM_SEMPOST) ||
			    (e->op == SYM_SEMWAIT && e->result != 1))
				continue;
			if (has == (e->op == SYM_SEMWAIT))
				return false;
			has = !has;
			given |= !has;
		}
	}
	return given && t->objects[object].count <= 1;
}

static void drop_counters(const struct sym_trace *t, dsp_held_locks *held)
{
	size_t n = 0;

	for (size_t i = 0; i < held->n; i++)
		if (is_used_as_lock(t, held->v[i].object))
			held->v[n++] = held->v[i];
	held->n = n;
}

/* Recursive locks stand in the list once per acquisition; the last one goes first. */
static void release(dsp_held_locks *held, uint32_t object)
{
	for (size_t i = held->n; i-- > 0;) {
		if (held->v[i].object != object)
			continue;
		for (; i + 1 < held->n; i++)
			held->v[i] = held->v[i + 1];
		held->n--;
		return;
	}
}

void dsp_locks_held(const struct sym_trace *t, uint32_t thread, uint32_t index,
		    dsp_held_locks *held)
{
	const struct sym_thread *th = &t->threads[thread];

	held->n = 0;
	for (size_t i = 0; i < t->nobjects; i++)
		if (t->objects[i].owner == thread)
			vec_push(held, (struct dsp_held){ (uint32_t)i, SYM_NONE });
	for (uint32_t i = 0; i < index && i < th->nevents; i++) {
		const struct sym_event *e = &th->events[i];

		if (dsp_acquires(e) || (e->op == SYM_SEMWAIT && e->result == 1))
			vec_push(held, (struct dsp_held){ e->target, i });
		else if (dsp_releases(e))
			release(held, e->target);
	}
	drop_counters(t, held);
}

/* A lock that is held at both ends (throughout: since the same event), and is not held by the other. */
static uint32_t held_without(const dsp_held_locks *first, const dsp_held_locks *last,
			     const dsp_held_locks *other, bool throughout)
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

static bool is_held(const dsp_held_locks *held, uint32_t object)
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
static void locks_of_each(const dsp_held_locks *first, const dsp_held_locks *last, const dsp_held_locks *other,
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

bool dsp_is_for_reading(const struct sym_trace *t, uint32_t thread, const struct dsp_held *held)
{
	const struct sym_event *e = held->since == SYM_NONE ? NULL : &t->threads[thread].events[held->since];

	return e && (e->op == SYM_RDLOCK || e->op == SYM_TRYRDLOCK);
}

static bool is_read_locked(const struct sym_trace *t, uint32_t thread, const dsp_held_locks *held, uint32_t object)
{
	for (size_t i = 0; i < held->n; i++)
		if (held->v[i].object == object && dsp_is_for_reading(t, thread, &held->v[i]))
			return true;
	return false;
}

void dsp_region_locks(const struct sym_trace *t, struct dsp_region *r)
{
	dsp_held_locks first = { 0 }, last = { 0 }, other = { 0 };

	dsp_locks_held(t, r->thread, r->first, &first);
	dsp_locks_held(t, r->end.thread, r->end.index, &last);
	dsp_locks_held(t, r->intruder.thread, r->intruder.index, &other);
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

		if (dsp_releases(e) && e->target == r->common_lock)
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
	const struct sym_event *e = dsp_event_at(t, want);
	dsp_held_locks held = { 0 };
	size_t found = SIZE_MAX;

	if (!e || (!dsp_acquires(e) && e->op != SYM_SEMWAIT))
		return SIZE_MAX;
	for (size_t k = 0; k < f->nblocked && found == SIZE_MAX; k++) {
		if (f->blocked[k].thread >= t->nthreads)
			continue;
		dsp_locks_held(t, f->blocked[k].thread, f->blocked[k].event, &held);
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

uint32_t dsp_fork_towards(const struct sym_trace *t, uint32_t parent, uint32_t child)
{
	/* At most nthreads steps up: a damaged trace may hold a ring of forks. */
	for (size_t steps = 0; steps < t->nthreads; steps++) {
		bool moved = false;

		for (uint32_t p = 0; p < t->nthreads && !moved; p++) {
			for (uint32_t i = 0; i < t->threads[p].nevents; i++) {
				const struct sym_event *e = &t->threads[p].events[i];

				if (e->op != SYM_FORK || e->peer != child)
					continue;
				if (p == parent)
					return i;
				child = p;
				moved = true;
				break;
			}
		}
		if (!moved)
			break;
	}
	return SYM_NONE;
}

/* "T0.2.1" descends from "T0.2" and from "T0". */
static bool is_named_after(const struct sym_trace *t, uint32_t parent, uint32_t child)
{
	const char *p = t->threads[parent].id, *c = t->threads[child].id;
	size_t n = strlen(p);

	return !strncmp(c, p, n) && c[n] == '.';
}

bool dsp_made_before(const struct sym_trace *t, uint32_t parent, uint32_t child, uint32_t before)
{
	uint32_t fork = dsp_fork_towards(t, parent, child);

	/* A window reaches to the end of what its threads did: what it lacks lies before it. */
	return fork != SYM_NONE ? fork < before : is_named_after(t, parent, child);
}

bool dsp_related(const struct sym_trace *t, uint32_t a, uint32_t b)
{
	return dsp_made_before(t, a, b, SYM_NONE) || dsp_made_before(t, b, a, SYM_NONE);
}
