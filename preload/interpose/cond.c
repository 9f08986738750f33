/*
 * Condition variables, in both of glibc's versions: programs linked before 2003
 * use the old structure, and the real functions must be the matching ones.
 *
 * Signal and broadcast are written before the real call. Nothing here needs
 * undoing when a wait is cancelled: the unwinder passes these frames by, and the
 * next event of the thread shows that it no longer waits.
 */
#include "preload/interpose/real.h"

#define VERSIONED(name, symbol, version) __asm__(".symver " #name ", " symbol version ", remove")

#define WAIT(name, real)                                                          \
	EXPORT int name(pthread_cond_t *c, pthread_mutex_t *m)                    \
	{                                                                         \
		if (!real_on())                                                   \
			return REAL(real)(c, m);                                  \
		BLOCK(TRC_OP_WAIT, c, (uint64_t)m);                               \
		return (int)DONE(TRC_OP_WAIT, c, REAL(real)(c, m), (uint64_t)m);  \
	}

#define TIMEDWAIT(name, real)                                                                 \
	EXPORT int name(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)  \
	{                                                                                     \
		if (!real_on())                                                               \
			return REAL(real)(c, m, until);                                       \
		BLOCK(TRC_OP_TIMEDWAIT, c, (uint64_t)m);                                      \
		return (int)DONE(TRC_OP_TIMEDWAIT, c, REAL(real)(c, m, until), (uint64_t)m);  \
	}

#define WAKE(name, real, op)                       \
	EXPORT int name(pthread_cond_t *c)         \
	{                                          \
		if (real_on())                     \
			DONE(op, c, 0, 0);         \
		return REAL(real)(c);              \
	}

WAIT(shim_cond_wait, cond_wait)
WAIT(shim_cond_wait_old, cond_wait_old)
TIMEDWAIT(shim_cond_timedwait, cond_timedwait)
TIMEDWAIT(shim_cond_timedwait_old, cond_timedwait_old)
WAKE(shim_cond_signal, cond_signal, TRC_OP_SIGNAL)
WAKE(shim_cond_signal_old, cond_signal_old, TRC_OP_SIGNAL)
WAKE(shim_cond_broadcast, cond_broadcast, TRC_OP_BROADCAST)
WAKE(shim_cond_broadcast_old, cond_broadcast_old, TRC_OP_BROADCAST)

VERSIONED(shim_cond_wait, "pthread_cond_wait", "@@GLIBC_2.3.2");
VERSIONED(shim_cond_wait_old, "pthread_cond_wait", "@GLIBC_2.2.5");
VERSIONED(shim_cond_timedwait, "pthread_cond_timedwait", "@@GLIBC_2.3.2");
VERSIONED(shim_cond_timedwait_old, "pthread_cond_timedwait", "@GLIBC_2.2.5");
VERSIONED(shim_cond_signal, "pthread_cond_signal", "@@GLIBC_2.3.2");
VERSIONED(shim_cond_signal_old, "pthread_cond_signal", "@GLIBC_2.2.5");
VERSIONED(shim_cond_broadcast, "pthread_cond_broadcast", "@@GLIBC_2.3.2");
VERSIONED(shim_cond_broadcast_old, "pthread_cond_broadcast", "@GLIBC_2.2.5");

EXPORT int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
				  const struct timespec *until)
{
	if (!real_on())
		return REAL(pthread_cond_clockwait)(c, m, clock, until);
	BLOCK(TRC_OP_TIMEDWAIT, c, (uint64_t)m);
	int err = REAL(pthread_cond_clockwait)(c, m, clock, until);

	return (int)DONE(TRC_OP_TIMEDWAIT, c, err, (uint64_t)m);
}
