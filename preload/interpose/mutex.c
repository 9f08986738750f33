/*
 * Mutexes. lock tries first: only a lock that must wait writes a BLOCK record,
 * and trylock succeeds exactly where lock would not wait, with the same results
 * for recursive, error-checking and robust mutexes.
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

EXPORT int pthread_mutex_lock(pthread_mutex_t *m)
{
	if (!real_on())
		return REAL(pthread_mutex_lock)(m);
	int err = REAL(pthread_mutex_trylock)(m);

	if (err == EBUSY) {
		BLOCK(TRC_OP_LOCK, m, kind_of(m));
		err = REAL(pthread_mutex_lock)(m);
	}
	return (int)DONE(TRC_OP_LOCK, m, err, kind_of(m));
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

/* A release that was refused is written a second time, with the error. */
EXPORT int pthread_mutex_unlock(pthread_mutex_t *m)
{
	if (!real_on())
		return REAL(pthread_mutex_unlock)(m);
	DONE(TRC_OP_UNLOCK, m, 0, 0);
	int err = REAL(pthread_mutex_unlock)(m);

	if (__builtin_expect(err, 0))
		DONE(TRC_OP_UNLOCK, m, err, 0);
	return err;
}

EXPORT int pthread_mutex_consistent(pthread_mutex_t *m)
{
	int err = REAL(pthread_mutex_consistent)(m);

	return real_on() ? (int)DONE(TRC_OP_CONSISTENT, m, err, 0) : err;
}
