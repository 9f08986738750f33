/* Is what a thread waits for out of reach? */
#include "preload/control/enforce.h"

#include "preload/deadlock.h"

static const struct shim_thread *named(const char *id)
{
	for (unsigned i = 0, n = shim_nslots(); i < n; i++) {
		const struct shim_thread *t = shim_slot(i);

		if (t->life != SHIM_FREE && enf_same(t->id, id))
			return t;
	}
	return NULL;
}

/* Who has given up is on its way, though it may not have come to run since. */
static bool is_open(const struct enf_edge *e)
{
	return !__atomic_load_n(&e->done, __ATOMIC_ACQUIRE) && !__atomic_load_n(&e->given_up, __ATOMIC_ACQUIRE);
}

/*
 * Whom t waits for, to reach an event, to get a lock or to see a thread's end; NULL: nobody, or nobody known.
 */
static const struct shim_thread *waits_for(const struct enf_schedule *s, const struct shim_thread *t)
{
	const struct enf_edge *e = t->index < CTL_THREADS ? __atomic_load_n(&s->held[t->index], __ATOMIC_ACQUIRE) : NULL;

	if (e)
		return is_open(e) ? named(e->source.thread) : NULL;
	return __atomic_load_n(&t->blocked_op, __ATOMIC_ACQUIRE) ? deadlock_owner(t) : NULL;
}

bool enf_goes_round(const struct enf_schedule *s, const struct shim_thread *me)
{
	const struct shim_thread *t = waits_for(s, me);

	for (unsigned i = 0; t && i < CTL_THREADS; i++, t = waits_for(s, t))
		if (t == me)
			return true;
	return false;
}
