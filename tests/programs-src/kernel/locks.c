#include "k.h"
#include <threads.h>
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t bar;
static pthread_spinlock_t sp;
static long counter, serial;
static void *w(void *a)
{
	for (int i = 0; i < 50; i++) {
		if ((i + (long)a) % 3) {
			pthread_rwlock_rdlock(&rw);
			pthread_rwlock_unlock(&rw);
		} else {
			pthread_rwlock_wrlock(&rw);
			counter++;
			pthread_rwlock_unlock(&rw);
		}
		pthread_spin_lock(&sp);
		counter += 2;
		pthread_spin_unlock(&sp);
		if (pthread_barrier_wait(&bar) == PTHREAD_BARRIER_SERIAL_THREAD)
			serial++;
		pthread_barrier_wait(&bar);
	}
	return 0;
}
static pthread_mutex_t pi;
static pthread_mutex_t em;
static void *tryer(void *a)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 1000000;
	if (t.tv_nsec >= 1000000000)
		t.tv_sec++, t.tv_nsec -= 1000000000;
	SAY("timed %s", ername(pthread_mutex_timedlock(a, &t)));
	SAY("try %s", ername(pthread_mutex_trylock(a)));
	SAY("unlock other's %s", ername(pthread_mutex_unlock(a)));
	SAY("clocklock %s",
	    ername(pthread_mutex_clocklock(a, CLOCK_MONOTONIC, &(struct timespec){0, 1})));
	return 0;
}
int main(void)
{
	pthread_t t[3];
	pthread_barrier_init(&bar, 0, 3);
	pthread_spin_init(&sp, 0);
	for (long i = 0; i < 3; i++)
		pthread_create(&t[i], 0, w, (void *)i);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	SAY("%ld %ld", counter >= 300 && counter <= 351, serial);
	pthread_mutexattr_t a;
	for (int k = 0; k < 3; k++) {
		pthread_mutexattr_init(&a);
		pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK);
		R(pthread_mutexattr_setprotocol(&a, k));
		if (k == 2)
			pthread_mutexattr_setprioceiling(&a, 1);
		R(pthread_mutex_init(&em, &a));
		int r = pthread_mutex_lock(&em);
		SAY("%s", ername(r));
		if (r)
			continue;
		SAY("%s", ername(pthread_mutex_lock(&em)));
		pthread_create(t, 0, tryer, &em);
		pthread_join(*t, 0);
		SAY("%s", ername(pthread_mutex_unlock(&em)));
		SAY("%s", ername(pthread_mutex_unlock(&em)));
		pthread_mutex_destroy(&em);
	}
	pthread_rwlock_wrlock(&rw);
	SAY("%s %s %s", ername(pthread_rwlock_tryrdlock(&rw)), ername(pthread_rwlock_rdlock(&rw)),
	    ername(pthread_rwlock_timedwrlock(&rw, &(struct timespec){1, 0})));
	pthread_rwlock_unlock(&rw);
	sem_t s;
	sem_init(&s, 0, 2);
	int v;
	/* One after the other: the arguments of one call have no order, and the last of these waits if it is not the first. */
	SAY("%d", sem_wait(&s));
	SAY("%d", sem_trywait(&s));
	SAY("%d", sem_trywait(&s));
	R(sem_timedwait(&s, &(struct timespec){1, 0}));
	sem_getvalue(&s, &v);
	SAY("%d", v);
	pthread_cond_t c;
	pthread_condattr_t ca;
	pthread_condattr_init(&ca);
	pthread_condattr_setclock(&ca, CLOCK_MONOTONIC);
	pthread_cond_init(&c, &ca);
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&m);
	SAY("%s", ername(pthread_cond_timedwait(&c, &m, &(struct timespec){1, 0})));
	mtx_t mt;
	mtx_init(&mt, mtx_recursive | mtx_timed);
	SAY("%d %d %d", mtx_lock(&mt), mtx_lock(&mt), mtx_timedlock(&mt, &(struct timespec){1, 0}));
	sem_t *ns = sem_open("/csched-kernel-s", O_CREAT, 0600, 1);
	sem_unlink("/csched-kernel-s");
	if (ns != SEM_FAILED) {
		SAY("%d", sem_wait(ns));
		SAY("%d", sem_trywait(ns));
	}
	pthread_attr_t at;
	pthread_getattr_np(pthread_self(), &at);
	size_t gs;
	pthread_attr_getguardsize(&at, &gs);
	SAY("%zu", gs * 0);
	pthread_t dt;
	pthread_attr_init(&at);
	pthread_attr_setdetachstate(&at, PTHREAD_CREATE_DETACHED);
	SAY("%s", ername(pthread_attr_setstacksize(&at, 100)));
	pthread_attr_setstacksize(&at, 1 << 17);
	SAY("%s", ername(pthread_create(&dt, &at, (void *(*)(void *))sem_post, &s)));
	sem_wait(&s);
	usleep(1000);
	SAY("%s", ername(pthread_kill(pthread_self(), 0)));
	SAY("%s", ername(pthread_join(pthread_self(), 0)));
	char nm[16];
	pthread_setname_np(pthread_self(), "named");
	pthread_getname_np(pthread_self(), nm, 16);
	SAY("%s", nm);
	return 0;
}
