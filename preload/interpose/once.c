/*
 * One-time initialisation. The initialiser is not wrapped: it may throw or be
 * cancelled, and then the unwinder passes this frame by, leaving a BLOCK without
 * a DONE, which is what happened.
 */
#include "preload/interpose/real.h"

#define ONCE_DONE 2 /* glibc's mark in pthread_once_t and once_flag */

EXPORT int pthread_once(pthread_once_t *once, void (*init)(void))
{
	if (!real_on())
		return REAL(pthread_once)(once, init);
	if (!(__atomic_load_n(once, __ATOMIC_ACQUIRE) & ONCE_DONE))
		BLOCK(TRC_OP_ONCE, once, (uint64_t)init);
	int err = REAL(pthread_once)(once, init);

	return (int)DONE(TRC_OP_ONCE, once, err, (uint64_t)init);
}

EXPORT void call_once(once_flag *once, void (*init)(void))
{
	if (!real_on()) {
		REAL(call_once)(once, init);
		return;
	}
	if (!(__atomic_load_n((const int *)once, __ATOMIC_ACQUIRE) & ONCE_DONE))
		BLOCK(TRC_OP_ONCE, once, (uint64_t)init);
	REAL(call_once)(once, init);
	DONE(TRC_OP_ONCE, once, 0, (uint64_t)init);
}
