/*
 * Semaphores. They report errors in errno, which the program must find as the
 * real function alone would have left it.
 */
#include "preload/interpose/real.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

EXPORT int sem_init(sem_t *s, int shared, unsigned value)
{
	int ret = REAL(sem_init)(s, shared, value);

	if (real_on())
		DONE(TRC_OP_SEM_INIT, s, ret ? errno : 0, value);
	return ret;
}

EXPORT sem_t *sem_open(const char *name, int flags, ...)
{
	mode_t mode = 0;
	unsigned value = 0;

	if (flags & O_CREAT) {
		va_list ap;

		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		value = va_arg(ap, unsigned);
		va_end(ap);
	}
	sem_t *s = REAL(sem_open)(name, flags, mode, value);

	if (real_on())
		DONE(TRC_OP_SEM_OPEN, s, s == SEM_FAILED ? errno : 0, value);
	return s;
}

EXPORT int sem_wait(sem_t *s)
{
	if (!real_on())
		return REAL(sem_wait)(s);
	/* The real one begins with this; trywait does not. */
	REAL(pthread_testcancel)();
	int before = errno, ret = REAL(sem_trywait)(s);

	if (ret && errno == EAGAIN) {
		errno = before;
		BLOCK(TRC_OP_SEM_WAIT, s, 0);
		ret = REAL(sem_wait)(s);
	}
	DONE(TRC_OP_SEM_WAIT, s, ret ? errno : 0, 0);
	return ret;
}

EXPORT int sem_trywait(sem_t *s)
{
	int ret = REAL(sem_trywait)(s);

	if (real_on())
		DONE(TRC_OP_SEM_TRYWAIT, s, ret ? errno : 0, 0);
	return ret;
}

EXPORT int sem_timedwait(sem_t *s, const struct timespec *until)
{
	if (!real_on())
		return REAL(sem_timedwait)(s, until);
	BLOCK(TRC_OP_SEM_TIMEDWAIT, s, 0);
	int ret = REAL(sem_timedwait)(s, until);

	DONE(TRC_OP_SEM_TIMEDWAIT, s, ret ? errno : 0, 0);
	return ret;
}

EXPORT int sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *until)
{
	if (!real_on())
		return REAL(sem_clockwait)(s, clock, until);
	BLOCK(TRC_OP_SEM_TIMEDWAIT, s, 0);
	int ret = REAL(sem_clockwait)(s, clock, until);

	DONE(TRC_OP_SEM_TIMEDWAIT, s, ret ? errno : 0, 0);
	return ret;
}

EXPORT int sem_post(sem_t *s)
{
	if (!real_on())
		return REAL(sem_post)(s);
	DONE(TRC_OP_SEM_POST, s, 0, 0);
	int ret = REAL(sem_post)(s);

	if (__builtin_expect(ret, 0))
		DONE(TRC_OP_SEM_POST, s, errno, 0);
	return ret;
}
