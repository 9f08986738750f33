/*
 * C11 threads. glibc's implement them over the same objects as pthreads but
 * without calling the interposed functions, so they are interposed themselves.
 */
#include "preload/interpose/real.h"
#include "preload/interpose/start.h"

#include <errno.h>

/* thrd_* results as the errno values the trace uses. */
static int as_errno(int result)
{
	switch (result) {
	case thrd_success: return 0;
	case thrd_busy: return EBUSY;
	case thrd_timedout: return ETIMEDOUT;
	case thrd_nomem: return ENOMEM;
	default: return EINVAL;
	}
}

static int thread_main(void *arg)
{
	struct start s;
	int ret;

	start_begin(arg, &s);
	pthread_cleanup_push(start_end, (void *)s.routine);
	ret = ((int (*)(void *))s.routine)(s.arg);
	pthread_cleanup_pop(1);
	return ret;
}

EXPORT int thrd_create(thrd_t *th, thrd_start_t routine, void *arg)
{
	struct start *s = real_on() ? start_new() : NULL;

	if (!s)
		return REAL(thrd_create)(th, routine, arg);
	s->routine = (void (*)(void))routine;
	s->arg = arg;
	shim_event(SHIM_AT(TRC_OP_CREATE, TRC_AT_BEGIN), 0, SITE, 0, 0, (uint64_t)s);
	int ret = REAL(thrd_create)(th, thread_main, s);

	shim_event(SHIM_AT(TRC_OP_CREATE, TRC_AT_DONE), ret ? 0 : (uint64_t)*th, SITE,
		   as_errno(ret), SHIM_NO_THREAD, (uint64_t)s);
	if (ret)
		start_free(s);
	return ret;
}

EXPORT int thrd_join(thrd_t th, int *res)
{
	if (!real_on())
		return REAL(thrd_join)(th, res);
	BLOCK(TRC_OP_JOIN, (const void *)th, 0);
	int ret = REAL(thrd_join)(th, res);

	DONE(TRC_OP_JOIN, (const void *)th, as_errno(ret), 0);
	return ret;
}

EXPORT int thrd_detach(thrd_t th)
{
	if (real_on())
		DONE(TRC_OP_DETACH, (const void *)th, 0, 0);
	return REAL(thrd_detach)(th);
}

EXPORT void thrd_exit(int res)
{
	if (real_on())
		event(TRC_OP_EXIT, TRC_AT_DONE, (const void *)thrd_current(), SITE, 0, 0);
	REAL(thrd_exit)(res);
	__builtin_unreachable();
}

static uint64_t kind_of(const mtx_t *m)
{
	return (uint64_t)(unsigned)((const pthread_mutex_t *)m)->__data.__kind;
}

EXPORT int mtx_init(mtx_t *m, int type)
{
	int ret = REAL(mtx_init)(m, type);

	if (real_on())
		DONE(TRC_OP_MUTEX_INIT, m, as_errno(ret), ret ? 0 : kind_of(m));
	return ret;
}

EXPORT void mtx_destroy(mtx_t *m)
{
	if (real_on())
		DONE(TRC_OP_MUTEX_DESTROY, m, 0, 0);
	REAL(mtx_destroy)(m);
}

EXPORT int mtx_lock(mtx_t *m)
{
	if (!real_on())
		return REAL(mtx_lock)(m);
	int ret = REAL(mtx_trylock)(m);

	if (ret == thrd_busy) {
		BLOCK(TRC_OP_LOCK, m, kind_of(m));
		ret = REAL(mtx_lock)(m);
	}
	DONE(TRC_OP_LOCK, m, as_errno(ret), kind_of(m));
	return ret;
}

EXPORT int mtx_trylock(mtx_t *m)
{
	int ret = REAL(mtx_trylock)(m);

	if (real_on())
		DONE(TRC_OP_TRYLOCK, m, as_errno(ret), kind_of(m));
	return ret;
}

EXPORT int mtx_timedlock(mtx_t *m, const struct timespec *until)
{
	if (!real_on())
		return REAL(mtx_timedlock)(m, until);
	BLOCK(TRC_OP_TIMEDLOCK, m, kind_of(m));
	int ret = REAL(mtx_timedlock)(m, until);

	DONE(TRC_OP_TIMEDLOCK, m, as_errno(ret), kind_of(m));
	return ret;
}

EXPORT int mtx_unlock(mtx_t *m)
{
	if (!real_on())
		return REAL(mtx_unlock)(m);
	DONE(TRC_OP_UNLOCK, m, 0, 0);
	int ret = REAL(mtx_unlock)(m);

	if (__builtin_expect(ret, 0))
		DONE(TRC_OP_UNLOCK, m, as_errno(ret), 0);
	return ret;
}

EXPORT int cnd_wait(cnd_t *c, mtx_t *m)
{
	if (!real_on())
		return REAL(cnd_wait)(c, m);
	BLOCK(TRC_OP_WAIT, c, (uint64_t)m);
	int ret = REAL(cnd_wait)(c, m);

	DONE(TRC_OP_WAIT, c, as_errno(ret), (uint64_t)m);
	return ret;
}

EXPORT int cnd_timedwait(cnd_t *c, mtx_t *m, const struct timespec *until)
{
	if (!real_on())
		return REAL(cnd_timedwait)(c, m, until);
	BLOCK(TRC_OP_TIMEDWAIT, c, (uint64_t)m);
	int ret = REAL(cnd_timedwait)(c, m, until);

	DONE(TRC_OP_TIMEDWAIT, c, as_errno(ret), (uint64_t)m);
	return ret;
}

EXPORT int cnd_signal(cnd_t *c)
{
	if (real_on())
		DONE(TRC_OP_SIGNAL, c, 0, 0);
	return REAL(cnd_signal)(c);
}

EXPORT int cnd_broadcast(cnd_t *c)
{
	if (real_on())
		DONE(TRC_OP_BROADCAST, c, 0, 0);
	return REAL(cnd_broadcast)(c);
}
