/*
 * Calls every interposed operation a known number of times; prints what a
 * program can see of the results. tests/program/sync_api knows the counts.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static const struct timespec past = { 1, 0 };
static const struct timespec far = { 1l << 40, 0 };
static sem_t gate;

static void *nothing(void *arg)
{
	return arg;
}

static void mutexes(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t plain, rec, chk;

	pthread_mutex_init(&plain, NULL);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&rec, &attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&chk, &attr);
	printf("mutex %d", pthread_mutex_lock(&plain));
	printf(" %d", pthread_mutex_trylock(&plain));
	printf(" %d", pthread_mutex_timedlock(&plain, &past));
	printf(" %d", pthread_mutex_clocklock(&plain, CLOCK_MONOTONIC, &past));
	printf(" %d", pthread_mutex_unlock(&plain));
	printf(" recursive %d", pthread_mutex_lock(&rec));
	printf(" %d", pthread_mutex_lock(&rec));
	printf(" %d", pthread_mutex_unlock(&rec));
	printf(" %d", pthread_mutex_unlock(&rec));
	printf(" checked %d", pthread_mutex_lock(&chk));
	printf(" %d", pthread_mutex_lock(&chk));
	printf(" %d", pthread_mutex_unlock(&chk));
	printf(" %d\n", pthread_mutex_unlock(&chk));
	pthread_mutex_destroy(&plain);
	pthread_mutex_destroy(&rec);
	pthread_mutex_destroy(&chk);
}

static pthread_mutex_t robust;

static void *die_holding(void *arg)
{
	pthread_mutex_lock(&robust);
	return arg;
}

static void robust_mutex(void)
{
	pthread_mutexattr_t attr;
	pthread_t th;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &attr);
	pthread_create(&th, NULL, die_holding, NULL);
	pthread_join(th, NULL);
	printf("robust %d", pthread_mutex_lock(&robust));
	printf(" %d", pthread_mutex_consistent(&robust));
	printf(" %d\n", pthread_mutex_unlock(&robust));
}

static void rwlocks(void)
{
	pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;

	printf("rwlock %d", pthread_rwlock_rdlock(&l));
	printf(" %d", pthread_rwlock_tryrdlock(&l));
	printf(" %d", pthread_rwlock_trywrlock(&l));
	printf(" %d", pthread_rwlock_timedwrlock(&l, &past));
	printf(" %d", pthread_rwlock_clockwrlock(&l, CLOCK_MONOTONIC, &past));
	printf(" %d", pthread_rwlock_unlock(&l));
	printf(" %d", pthread_rwlock_unlock(&l));
	printf(" %d", pthread_rwlock_wrlock(&l));
	printf(" %d", pthread_rwlock_unlock(&l));
	printf(" %d", pthread_rwlock_timedrdlock(&l, &far));
	printf(" %d", pthread_rwlock_clockrdlock(&l, CLOCK_MONOTONIC, &far));
	printf(" %d", pthread_rwlock_unlock(&l));
	printf(" %d\n", pthread_rwlock_unlock(&l));
}

static void spinlocks(void)
{
	pthread_spinlock_t l;

	pthread_spin_init(&l, 0);
	printf("spin %d", pthread_spin_lock(&l));
	printf(" %d", pthread_spin_trylock(&l));
	printf(" %d\n", pthread_spin_unlock(&l));
}

static pthread_mutex_t cm = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cc = PTHREAD_COND_INITIALIZER;
static int turn;

/* One wait each, because the mutex is held from before the other thread exists. */
static void *signaller(void *arg)
{
	pthread_mutex_lock(&cm);
	turn++;
	pthread_cond_signal(&cc);
	pthread_mutex_unlock(&cm);
	return arg;
}

/* The condition variable of the first glibc for this machine, as old programs use it. */
extern int old_wait(pthread_cond_t *, pthread_mutex_t *);
extern int old_timedwait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
extern int old_signal(pthread_cond_t *);
extern int old_broadcast(pthread_cond_t *);
__asm__(".symver old_wait, pthread_cond_wait@GLIBC_2.2.5");
__asm__(".symver old_timedwait, pthread_cond_timedwait@GLIBC_2.2.5");
__asm__(".symver old_signal, pthread_cond_signal@GLIBC_2.2.5");
__asm__(".symver old_broadcast, pthread_cond_broadcast@GLIBC_2.2.5");
static pthread_cond_t old_cond; /* all zero is what its initializer was */

static void *old_signaller(void *arg)
{
	pthread_mutex_lock(&cm);
	turn++;
	old_signal(&old_cond);
	pthread_mutex_unlock(&cm);
	return arg;
}

static void conds(void)
{
	pthread_t th;

	pthread_mutex_lock(&cm);
	pthread_create(&th, NULL, signaller, NULL);
	while (turn < 1)
		pthread_cond_wait(&cc, &cm);
	pthread_join(th, NULL);
	printf("cond %d", pthread_cond_timedwait(&cc, &cm, &past));
	printf(" %d", pthread_cond_clockwait(&cc, &cm, CLOCK_MONOTONIC, &past));
	printf(" %d", pthread_cond_broadcast(&cc));
	pthread_create(&th, NULL, old_signaller, NULL);
	while (turn < 2)
		old_wait(&old_cond, &cm);
	pthread_join(th, NULL);
	printf(" old %d", old_timedwait(&old_cond, &cm, &past));
	printf(" %d\n", old_broadcast(&old_cond));
	pthread_mutex_unlock(&cm);
}

static pthread_barrier_t bar;

static void *at_barrier(void *arg)
{
	pthread_barrier_wait(&bar);
	return arg;
}

static void barriers(void)
{
	pthread_t th[2];

	pthread_barrier_init(&bar, NULL, 3);
	for (int i = 0; i < 2; i++)
		pthread_create(&th[i], NULL, at_barrier, NULL);
	pthread_barrier_wait(&bar);
	for (int i = 0; i < 2; i++)
		pthread_join(th[i], NULL);
}

static void sems(void)
{
	char name[32];
	sem_t s, *named;

	snprintf(name, sizeof name, "/csched-api-%d", (int)getpid());
	sem_init(&s, 0, 1);
	errno = 0;
	printf("sem %d", sem_wait(&s));
	printf(" errno %d", errno);
	printf(" %d", sem_trywait(&s));
	printf(" errno %d", errno);
	printf(" %d", sem_timedwait(&s, &past));
	printf(" errno %d", errno);
	printf(" %d", sem_clockwait(&s, CLOCK_MONOTONIC, &past));
	printf(" %d", sem_post(&s));
	named = sem_open(name, O_CREAT, 0600, 1);
	printf(" named %d", named != SEM_FAILED);
	printf(" %d", sem_wait(named));
	printf(" %d\n", sem_close(named));
	sem_unlink(name);
	errno = 0;
	printf("sem_open %d", sem_open("/csched-api-not-there", 0) == SEM_FAILED);
	printf(" errno %d\n", errno);
}

static void *poster(void *arg)
{
	errno = 7;
	sem_wait(&gate);
	printf("errno after a wait that slept: %d\n", errno);
	return arg;
}

static void sleeping_sem(void)
{
	pthread_t th;

	sem_init(&gate, 0, 0);
	pthread_create(&th, NULL, poster, NULL);
	sem_post(&gate);
	pthread_join(th, NULL);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static once_flag once11 = ONCE_FLAG_INIT;

static void init(void)
{
	puts("once");
}

static void onces(void)
{
	pthread_once(&once, init);
	pthread_once(&once, init);
	call_once(&once11, init);
	call_once(&once11, init);
}

static mtx_t m11;
static cnd_t c11;
static int ready11;

static int thread11(void *arg)
{
	mtx_lock(&m11);
	ready11 = 1;
	cnd_signal(&c11);
	cnd_broadcast(&c11);
	mtx_unlock(&m11);
	thrd_exit(arg ? 5 : 6);
}

static void c11s(void)
{
	thrd_t th;
	int res = 0;

	mtx_init(&m11, mtx_timed);
	cnd_init(&c11);
	mtx_lock(&m11);
	printf("c11 %d", mtx_trylock(&m11) == thrd_busy);
	printf(" %d", mtx_timedlock(&m11, &past) == thrd_timedout);
	thrd_create(&th, thread11, &m11);
	while (!ready11)
		cnd_wait(&c11, &m11);
	printf(" %d", cnd_timedwait(&c11, &m11, &past) == thrd_timedout);
	mtx_unlock(&m11);
	thrd_join(th, &res);
	printf(" %d\n", res);
	thrd_create(&th, thread11, &m11);
	thrd_detach(th);
	mtx_lock(&m11);
	mtx_unlock(&m11);
}

static pthread_mutex_t never_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void unlock_it(void *m)
{
	printf("cleanup unlocks: %d\n", pthread_mutex_unlock(m));
}

static void *cancelled(void *arg)
{
	pthread_mutex_lock(&never_mutex);
	pthread_cleanup_push(unlock_it, &never_mutex);
	sem_post(&gate);
	for (;;)
		pthread_cond_wait(&never, &never_mutex);
	pthread_cleanup_pop(0);
	return arg;
}

static void *exits(void *arg)
{
	pthread_setname_np(pthread_self(), "exiter");
	pthread_exit(arg);
}

static void *named_by_prctl(void *arg)
{
	prctl(PR_SET_NAME, "by-prctl");
	return arg;
}

static int alive;

static void *says_alive(void *arg)
{
	__atomic_store_n(&alive, 1, __ATOMIC_RELEASE);
	return arg;
}

static void threads(void)
{
	pthread_t th;
	void *ret = NULL;

	pthread_create(&th, NULL, exits, &once);
	while (pthread_tryjoin_np(th, &ret) == EBUSY)
		sched_yield();
	printf("exit %d", ret == &once);
	pthread_create(&th, NULL, named_by_prctl, NULL);
	printf(" %d", pthread_timedjoin_np(th, NULL, &far));
	pthread_create(&th, NULL, nothing, NULL);
	printf(" %d", pthread_clockjoin_np(th, NULL, CLOCK_MONOTONIC, &far));
	pthread_create(&th, NULL, says_alive, NULL);
	printf(" %d", pthread_detach(th));
	/* Nobody joins it: the process must not end before it began. */
	while (!__atomic_load_n(&alive, __ATOMIC_ACQUIRE))
		sched_yield();
	printf(" %d\n", pthread_join(pthread_self(), NULL));
	sem_init(&gate, 0, 0);
	pthread_create(&th, NULL, cancelled, NULL);
	sem_wait(&gate);
	pthread_cancel(th);
	pthread_join(th, &ret);
	printf("cancelled %d\n", ret == PTHREAD_CANCELED);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	mutexes();
	robust_mutex();
	rwlocks();
	spinlocks();
	conds();
	barriers();
	sems();
	sleeping_sem();
	onces();
	c11s();
	threads();
	return 7;
}
