/*
 * Mutexes. lock tries first: only a lock that must wait writes a BLOCK record,
 * and trylock succeeds exactly where lock would not wait, with the same results
 * for recursive, error-checking and robust mutexes.
 *
 * Plain mutexes that need no waiting are locked and unlocked right here, as libc does it
 * (real_direct() in real.c makes sure that it does): what libc's functions look at on the way
 * are accesses to order, and branches to record, for nothing.
 */
#include "preload/interpose/real.h"

#include <errno.h>

static uint64_t kind_of(const pthread_mutex_t *m)
{
	return (uint64_t)(unsigned)m->__data.__kind;
}

EXPORT int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	int err = REAL(pthread_mutex_init)(m, attr);

	if (real_on())
		DONE(TRC_OP_MUTEX_INIT, m, err, err ? 0 : kind_of(m));
	return err;
}

EXPORT int pthread_mutex_destroy(pthread_mutex_t *m)
{
	if (real_on())
		DONE(TRC_OP_MUTEX_DESTROY, m, 0, 0);
	return REAL(pthread_mutex_destroy)(m);
}

/* Recording, and a mutex of the default kind: no other flag, no other type. Both in one branch. */
static inline bool is_direct(const pthread_mutex_t *m)
{
	uint64_t direct = real_table.f.direct;

	__asm__("" : "+r"(direct)); /* loaded, not compared in place: copied into fragments of any module, see emit_far_possible() */
	return kind_of(m) + 1 == direct;
}

static inline bool change(pthread_mutex_t *m, int from, int to)
{
	return __atomic_compare_exchange_n(&m->__data.__lock, &from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

/* False: somebody else holds it. */
static inline bool lock_direct(pthread_mutex_t *m)
{
	if (!change(m, 0, 1))
		return false;
	m->__data.__owner = real_tid();
	m->__data.__nusers++;
	return true;
}

/* False: somebody waits for it, or it is not locked; nothing has changed. */
static inline bool unlock_direct(pthread_mutex_t *m)
{
	int owner = m->__data.__owner;

	m->__data.__nusers--;
	m->__data.__owner = 0;
	if (__builtin_expect(change(m, 1, 0), 1))
		return true;
	m->__data.__owner = owner;
	m->__data.__nusers++;
	return false;
}

/* Out of line, so that the usual case need not save registers. */
static __attribute__((noinline)) int lock_anyhow(pthread_mutex_t *m, uint64_t site)
{
	if (!real_on())
		return REAL(pthread_mutex_lock)(m);
	int err = REAL(pthread_mutex_trylock)(m);

	if (err == EBUSY) {
		event(TRC_OP_LOCK, TRC_AT_BLOCK, m, site, 0, kind_of(m));
		err = REAL(pthread_mutex_lock)(m);
	}
	return (int)event(TRC_OP_LOCK, TRC_AT_DONE, m, site, err, kind_of(m));
}

static __attribute__((noinline)) int lock_waiting(pthread_mutex_t *m, uint64_t site)
{
	event(TRC_OP_LOCK, TRC_AT_BLOCK, m, site, 0, 0);
	return (int)event(TRC_OP_LOCK, TRC_AT_DONE, m, site, REAL(pthread_mutex_lock)(m), 0);
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *m)
{
	if (__builtin_expect(!is_direct(m), 0))
		return lock_anyhow(m, SITE);
	if (__builtin_expect(!lock_direct(m), 0))
		return lock_waiting(m, SITE);
	return DONE_LAST(TRC_OP_LOCK, m, 0, 0);
}

EXPORT int pthread_mutex_trylock(pthread_mutex_t *m)
{
	int err = REAL(pthread_mutex_trylock)(m);

	return real_on() ? (int)DONE(TRC_OP_TRYLOCK, m, err, kind_of(m)) : err;
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *until)
{
	if (!real_on())
		return REAL(pthread_mutex_timedlock)(m, until);
	int err = REAL(pthread_mutex_trylock)(m);

	if (err == EBUSY) {
		BLOCK(TRC_OP_TIMEDLOCK, m, kind_of(m));
		err = REAL(pthread_mutex_timedlock)(m, until);
	}
	return (int)DONE(TRC_OP_TIMEDLOCK, m, err, kind_of(m));
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock,
				   const struct timespec *until)
{
	if (!real_on())
		return REAL(pthread_mutex_clocklock)(m, clock, until);
	BLOCK(TRC_OP_TIMEDLOCK, m, kind_of(m));
	int err = REAL(pthread_mutex_clocklock)(m, clock, until);

	return (int)DONE(TRC_OP_TIMEDLOCK, m, err, kind_of(m));
}

/* SITE is the caller's: these are reached by a jump, the last thing that is done there. */
static __attribute__((noinline)) int unlock_refused(pthread_mutex_t *m, int err)
{
	return real_on() ? (int)DONE(TRC_OP_UNLOCK, m, err, 0) : err;
}

static __attribute__((noinline)) int unlock_anyhow(pthread_mutex_t *m)
{
	int err;

	if (real_on())
		DONE(TRC_OP_UNLOCK, m, 0, 0);
	err = REAL(pthread_mutex_unlock)(m);
	return __builtin_expect(err, 0) ? unlock_refused(m, err) : 0;
}

/*
 * A release that was refused is written a second time, with the error. Only then is SITE looked at
 * again: to the analyzer the release has happened when the return address is popped. That must be one
 * instruction, whether somebody waits for the mutex or not, for that is another in another order:
 * hence the barrier, behind which there is one way out.
 */
EXPORT int pthread_mutex_unlock(pthread_mutex_t *m)
{
	int err = 0;

	if (__builtin_expect(!is_direct(m), 0))
		return unlock_anyhow(m);
	DONE(TRC_OP_UNLOCK, m, 0, 0);
	if (__builtin_expect(!unlock_direct(m), 0)) {
		err = REAL(pthread_mutex_unlock)(m);
		if (__builtin_expect(err, 0))
			return unlock_refused(m, err);
	}
	__asm__ volatile("" : "+a"(err));
	return err;
}

EXPORT int pthread_mutex_consistent(pthread_mutex_t *m)
{
	int err = REAL(pthread_mutex_consistent)(m);

	return real_on() ? (int)DONE(TRC_OP_CONSISTENT, m, err, 0) : err;
}
