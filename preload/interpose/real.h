/*
 * The functions behind the interposed ones, resolved once in the constructor;
 * the table is made read-only before the program runs.
 *
 * What a wrapper may do is stated in shim.h. In short: own stack, REAL(),
 * shim_event(), system calls; no variables of its own, no thread-locals.
 */
#ifndef CSCHED_PRELOAD_INTERPOSE_REAL_H
#define CSCHED_PRELOAD_INTERPOSE_REAL_H

#include "preload/raw.h"
#include "preload/shim.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define SITE ((uint64_t)__builtin_return_address(0))

/* Declared by libc in no header, or not as functions. */
extern void __assert_fail(const char *, const char *, unsigned, const char *)
	__attribute__((noreturn));
extern void __assert_perror_fail(int, const char *, unsigned, const char *)
	__attribute__((noreturn));
extern sighandler_t bsd_signal(int, sighandler_t);
extern sighandler_t ssignal(int, sighandler_t);

extern int _Unwind_RaiseException(void *exception);

/* R(name): the default version. V(field, name, version): a certain one. */
#define REAL_TABLE(R, V)                                                                \
	R(pthread_create) R(pthread_join) R(pthread_tryjoin_np) R(pthread_timedjoin_np) \
	R(pthread_clockjoin_np) R(pthread_detach) R(pthread_exit) R(pthread_cancel)     \
	R(pthread_setname_np) R(pthread_testcancel)                                           \
	R(pthread_mutex_init) R(pthread_mutex_destroy) R(pthread_mutex_lock)            \
	R(pthread_mutex_trylock) R(pthread_mutex_timedlock) R(pthread_mutex_clocklock)  \
	R(pthread_mutex_unlock) R(pthread_mutex_consistent)                             \
	R(pthread_rwlock_rdlock) R(pthread_rwlock_tryrdlock) R(pthread_rwlock_timedrdlock) \
	R(pthread_rwlock_clockrdlock) R(pthread_rwlock_wrlock)                          \
	R(pthread_rwlock_trywrlock) R(pthread_rwlock_timedwrlock)                       \
	R(pthread_rwlock_clockwrlock) R(pthread_rwlock_unlock)                          \
	R(pthread_spin_lock) R(pthread_spin_trylock) R(pthread_spin_unlock)             \
	V(cond_wait, pthread_cond_wait, "GLIBC_2.3.2")                                  \
	V(cond_timedwait, pthread_cond_timedwait, "GLIBC_2.3.2")                        \
	V(cond_signal, pthread_cond_signal, "GLIBC_2.3.2")                              \
	V(cond_broadcast, pthread_cond_broadcast, "GLIBC_2.3.2")                        \
	V(cond_wait_old, pthread_cond_wait, "GLIBC_2.2.5")                              \
	V(cond_timedwait_old, pthread_cond_timedwait, "GLIBC_2.2.5")                    \
	V(cond_signal_old, pthread_cond_signal, "GLIBC_2.2.5")                          \
	V(cond_broadcast_old, pthread_cond_broadcast, "GLIBC_2.2.5")                    \
	R(pthread_cond_clockwait)                                                       \
	R(pthread_barrier_init) R(pthread_barrier_wait)                                 \
	R(sem_init) R(sem_open) R(sem_wait) R(sem_trywait) R(sem_timedwait)             \
	R(sem_clockwait) R(sem_post) R(sem_close)                                       \
	R(pthread_once) R(call_once)                                                    \
	R(thrd_create) R(thrd_join) R(thrd_detach) R(thrd_exit)                         \
	R(mtx_init) R(mtx_destroy) R(mtx_lock) R(mtx_trylock) R(mtx_timedlock) R(mtx_unlock) \
	R(cnd_wait) R(cnd_timedwait) R(cnd_signal) R(cnd_broadcast)                     \
	R(fork) R(_Fork) R(vfork) R(execve) R(execv) R(execvp) R(execvpe) R(fexecve)    \
	R(execveat) R(posix_spawn) R(posix_spawnp)                                      \
	R(exit) R(_exit) R(_Exit) R(quick_exit) R(abort)                                \
	R(__assert_fail) R(__assert_perror_fail) R(_Unwind_RaiseException)              \
	R(sigaction) R(signal) R(bsd_signal) R(ssignal) R(sysv_signal) R(sigset)        \
	R(sigprocmask) R(pthread_sigmask) R(sigaltstack) R(prctl) R(syscall) R(ptrace)

/* sigset() is deprecated; programs call it all the same. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
struct real_functions {
#define R(name) __typeof__(name) *name;
#define V(field, name, version) __typeof__(name) *field;
	REAL_TABLE(R, V)
#undef R
#undef V
	uint64_t resolved;
	uint64_t on; /* 1: record; 0: only pass on (set-uid, no trace) */
	uint64_t direct; /* 1: on, and plain mutexes are what mutex.c takes them for; else 0 */
};
#pragma GCC diagnostic pop

/* Page-aligned and a whole number of pages: made read-only on its own. */
extern union real_page {
	struct real_functions f;
	char page[4096];
} real_table __attribute__((visibility("hidden")));

void real_resolve(void);
void real_ready(void); /* recording is on; the table becomes read-only */

/* A library's constructor or an allocator may call us before our own constructor ran. */
static inline const struct real_functions *real_now(void)
{
	if (__builtin_expect(!real_table.f.resolved, 0))
		real_resolve();
	return &real_table.f;
}
#define REAL(name) (real_now()->name)

static inline bool real_on(void)
{
	return real_table.f.on;
}

/* The thread's number in what %fs points to, where libc takes it from as well. */
#define REAL_TID_AT "0x2d0"

static inline int real_tid(void)
{
	int tid;

	__asm__ volatile("movl %%fs:" REAL_TID_AT ", %0" : "=r"(tid));
	return tid;
}

/* Operations that are one event: before (releases) or after (acquisitions) the real call. */
static inline long event(unsigned op, unsigned at, const void *object, uint64_t site, long result,
			 uint64_t value)
{
	return shim_event(SHIM_AT(op, at), (uint64_t)object, site, result, SHIM_NO_THREAD, value);
}
/* The same with its result as an int, so that a wrapper can end in it: with a jump, not a call and a return. */
int event_int(unsigned op_at, uint64_t object, uint64_t site, long result, uint64_t thread, uint64_t value)
	__asm__("shim_event") __attribute__((visibility("hidden")));
#define DONE_LAST(op, object, result, value) \
	event_int(SHIM_AT(op, TRC_AT_DONE), (uint64_t)(object), SITE, result, SHIM_NO_THREAD, value)
#define DONE(op, object, result, value) event(op, TRC_AT_DONE, object, SITE, result, value)
#define BLOCK(op, object, value) event(op, TRC_AT_BLOCK, object, SITE, 0, value)
#define BEGIN(op, object, value) event(op, TRC_AT_BEGIN, object, SITE, 0, value)

#endif
