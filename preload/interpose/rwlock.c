/* Read-write locks and spin locks; the shape is that of mutex.c. */
#include "preload/interpose/real.h"

#include <errno.h>

#define LOCK(name, try, op)                                   \
	EXPORT int name(pthread_rwlock_t *l)                  \
	{                                                     \
		if (!real_on())                               \
			return REAL(name)(l);                 \
		int err = REAL(try)(l);                       \
                                                              \
		if (err == EBUSY || err == EAGAIN) {          \
			BLOCK(op, l, 0);                      \
			err = REAL(name)(l);                  \
		}                                             \
		return (int)DONE(op, l, err, 0);              \
	}

LOCK(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, TRC_OP_RDLOCK)
LOCK(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, TRC_OP_WRLOCK)

#define TRYLOCK(name, op)                                               \
	EXPORT int name(pthread_rwlock_t *l)                            \
	{                                                               \
		int err = REAL(name)(l);                                \
                                                                        \
		return real_on() ? (int)DONE(op, l, err, 0) : err;      \
	}

TRYLOCK(pthread_rwlock_tryrdlock, TRC_OP_TRYRDLOCK)
TRYLOCK(pthread_rwlock_trywrlock, TRC_OP_TRYWRLOCK)

#define TIMEDLOCK(name, op)                                                    \
	EXPORT int name(pthread_rwlock_t *l, const struct timespec *until)     \
	{                                                                      \
		if (!real_on())                                                \
			return REAL(name)(l, until);                           \
		BLOCK(op, l, 0);                                               \
		return (int)DONE(op, l, REAL(name)(l, until), 0);              \
	}

TIMEDLOCK(pthread_rwlock_timedrdlock, TRC_OP_TIMEDRDLOCK)
TIMEDLOCK(pthread_rwlock_timedwrlock, TRC_OP_TIMEDWRLOCK)

#define CLOCKLOCK(name, op)                                                                   \
	EXPORT int name(pthread_rwlock_t *l, clockid_t clock, const struct timespec *until)   \
	{                                                                                     \
		if (!real_on())                                                               \
			return REAL(name)(l, clock, until);                                   \
		BLOCK(op, l, 0);                                                              \
		return (int)DONE(op, l, REAL(name)(l, clock, until), 0);                      \
	}

CLOCKLOCK(pthread_rwlock_clockrdlock, TRC_OP_TIMEDRDLOCK)
CLOCKLOCK(pthread_rwlock_clockwrlock, TRC_OP_TIMEDWRLOCK)

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
	if (!real_on())
		return REAL(pthread_rwlock_unlock)(l);
	DONE(TRC_OP_RWUNLOCK, l, 0, 0);
	int err = REAL(pthread_rwlock_unlock)(l);

	if (__builtin_expect(err, 0))
		DONE(TRC_OP_RWUNLOCK, l, err, 0);
	return err;
}

EXPORT int pthread_spin_lock(pthread_spinlock_t *l)
{
	if (!real_on())
		return REAL(pthread_spin_lock)(l);
	int err = REAL(pthread_spin_trylock)(l);

	if (err == EBUSY) {
		BLOCK(TRC_OP_SPINLOCK, (const void *)l, 0);
		err = REAL(pthread_spin_lock)(l);
	}
	return (int)DONE(TRC_OP_SPINLOCK, (const void *)l, err, 0);
}

EXPORT int pthread_spin_trylock(pthread_spinlock_t *l)
{
	int err = REAL(pthread_spin_trylock)(l);

	return real_on() ? (int)DONE(TRC_OP_SPINTRYLOCK, (const void *)l, err, 0) : err;
}

EXPORT int pthread_spin_unlock(pthread_spinlock_t *l)
{
	if (real_on())
		DONE(TRC_OP_SPINUNLOCK, (const void *)l, 0, 0);
	return REAL(pthread_spin_unlock)(l);
}
