/* Barriers. */
#include "preload/interpose/real.h"

EXPORT int pthread_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *attr,
				unsigned count)
{
	int err = REAL(pthread_barrier_init)(b, attr, count);

	return real_on() ? (int)DONE(TRC_OP_BARRIER_INIT, b, err, count) : err;
}

/* Whether it will wait is known only inside, and arriving is a release: BLOCK always. */
EXPORT int pthread_barrier_wait(pthread_barrier_t *b)
{
	if (!real_on())
		return REAL(pthread_barrier_wait)(b);
	BLOCK(TRC_OP_BARRIER, b, 0);
	return (int)DONE(TRC_OP_BARRIER, b, REAL(pthread_barrier_wait)(b), 0);
}
