/*
 * Threads. A new thread starts in thread_main(), which says who it is before
 * and that it is done after the program's own function. What it needs to know
 * travels in a slot of a ring: the heap may be the very thing whose lock is held
 * by whoever creates a thread (allocators do), and which slot a thread gets
 * depends only on how many were created before, not on when others started: so
 * the run can be executed in another order offline.
 */
#include "preload/interpose/real.h"
#include "preload/interpose/start.h"
#include "preload/silence.h"

#include <stdarg.h>
#include <sys/mman.h>

#define NSLOTS 4096

/* Pages of its own: wrappers change it, so it belongs into snapshots. */
static struct ring {
	struct start slots[NSLOTS];
	unsigned next;
} ring __attribute__((aligned(4096)));

void start_memory(uint64_t *start, uint64_t *end)
{
	*start = (uint64_t)&ring;
	*end = (uint64_t)(&ring + 1);
}

/* A slot that is still taken (thousands of threads not started yet): a page instead. */
struct start *start_new(void)
{
	unsigned i = __atomic_fetch_add(&ring.next, 1, __ATOMIC_RELAXED) % NSLOTS;

	if (!__atomic_load_n(&ring.slots[i].routine, __ATOMIC_ACQUIRE))
		return &ring.slots[i];
	return raw_map(RAW_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void start_free(struct start *s)
{
	if (s >= ring.slots && s < ring.slots + NSLOTS)
		__atomic_store_n(&s->routine, NULL, __ATOMIC_RELEASE);
	else
		raw(SYS_munmap, s, RAW_PAGE);
}

void start_begin(struct start *s, struct start *copy)
{
	*copy = *s;
	shim_event(SHIM_AT(TRC_OP_THREAD_MAIN, TRC_AT_BEGIN), (uint64_t)pthread_self(),
		   (uint64_t)copy->routine, 0, SHIM_NO_THREAD, (uint64_t)s);
	start_free(s);
}

void start_end(void *site)
{
	event(TRC_OP_EXIT, TRC_AT_DONE, (const void *)pthread_self(), (uint64_t)site, 0, 0);
}

/* Cancellation and pthread_exit() unwind to here: the cleanup says good-bye then. */
static void *thread_main(void *arg)
{
	struct start s;
	void *ret;

	start_begin(arg, &s);
	pthread_cleanup_push(start_end, (void *)s.routine);
	ret = ((void *(*)(void *))s.routine)(s.arg);
	pthread_cleanup_pop(1);
	return ret;
}

EXPORT int pthread_create(pthread_t *th, const pthread_attr_t *attr, void *(*routine)(void *),
			  void *arg)
{
	struct start *s = real_on() ? start_new() : NULL;
	int detached = PTHREAD_CREATE_JOINABLE;

	if (!s)
		return REAL(pthread_create)(th, attr, routine, arg);
	s->routine = (void (*)(void))routine;
	s->arg = arg;
	if (attr)
		pthread_attr_getdetachstate(attr, &detached);
	shim_event(SHIM_AT(TRC_OP_CREATE, TRC_AT_BEGIN), 0, SITE, 0,
		   detached == PTHREAD_CREATE_DETACHED, (uint64_t)s);
	int err = REAL(pthread_create)(th, attr, thread_main, s);

	shim_event(SHIM_AT(TRC_OP_CREATE, TRC_AT_DONE), err ? 0 : (uint64_t)*th, SITE, err,
		   SHIM_NO_THREAD, (uint64_t)s);
	if (err)
		start_free(s);
	return err;
}

EXPORT int pthread_join(pthread_t th, void **ret)
{
	if (!real_on())
		return REAL(pthread_join)(th, ret);
	BLOCK(TRC_OP_JOIN, (const void *)th, 0);
	return (int)DONE(TRC_OP_JOIN, (const void *)th, REAL(pthread_join)(th, ret), 0);
}

EXPORT int pthread_tryjoin_np(pthread_t th, void **ret)
{
	int err = REAL(pthread_tryjoin_np)(th, ret);

	return real_on() ? (int)DONE(TRC_OP_TRYJOIN, (const void *)th, err, 0) : err;
}

EXPORT int pthread_timedjoin_np(pthread_t th, void **ret, const struct timespec *until)
{
	if (!real_on())
		return REAL(pthread_timedjoin_np)(th, ret, until);
	BLOCK(TRC_OP_TIMEDJOIN, (const void *)th, 0);
	int err = REAL(pthread_timedjoin_np)(th, ret, until);

	return (int)DONE(TRC_OP_TIMEDJOIN, (const void *)th, err, 0);
}

EXPORT int pthread_clockjoin_np(pthread_t th, void **ret, clockid_t clock,
				const struct timespec *until)
{
	if (!real_on())
		return REAL(pthread_clockjoin_np)(th, ret, clock, until);
	BLOCK(TRC_OP_TIMEDJOIN, (const void *)th, 0);
	int err = REAL(pthread_clockjoin_np)(th, ret, clock, until);

	return (int)DONE(TRC_OP_TIMEDJOIN, (const void *)th, err, 0);
}

/* Before the real call: afterwards the value may belong to another thread. */
EXPORT int pthread_detach(pthread_t th)
{
	if (real_on())
		DONE(TRC_OP_DETACH, (const void *)th, 0, 0);
	return REAL(pthread_detach)(th);
}

EXPORT int pthread_cancel(pthread_t th)
{
	if (real_on())
		DONE(TRC_OP_CANCEL, (const void *)th, 0, 0);
	return REAL(pthread_cancel)(th);
}

EXPORT void pthread_exit(void *ret)
{
	if (real_on())
		event(TRC_OP_EXIT, TRC_AT_DONE, (const void *)pthread_self(), SITE, 0, 0);
	REAL(pthread_exit)(ret);
	__builtin_unreachable();
}

static void named(pthread_t th, const char *name)
{
	if (real_on())
		shim_event(SHIM_AT(TRC_OP_NONE, TRC_AT_BEGIN), (uint64_t)th, 0, 0, strlen(name),
			   (uint64_t)name);
}

EXPORT int pthread_setname_np(pthread_t th, const char *name)
{
	int err = REAL(pthread_setname_np)(th, name);

	if (!err)
		named(th, name);
	return err;
}

EXPORT int prctl(int option, ...)
{
	unsigned long arg[4];
	va_list ap;

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		arg[i] = va_arg(ap, unsigned long);
	va_end(ap);
	silence_sync(SYS_prctl, (unsigned)option, arg[0], arg[1]);
	int ret = REAL(prctl)(option, arg[0], arg[1], arg[2], arg[3]);

	if (!ret && option == PR_SET_NAME)
		named(pthread_self(), (const char *)arg[0]);
	return ret;
}
