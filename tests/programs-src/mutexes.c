/*
 * What a mutex looks like inside, at every stage: whoever locks it must leave in it what libc's own
 * functions find there later. With -DCOUNT -shared: a library that stands before libc and counts.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef COUNT
#include <dlfcn.h>
static int count;

int pthread_mutex_trylock(pthread_mutex_t *m)
{
	count++;
	return ((int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_trylock"))(m);
}

int pthread_mutex_lock(pthread_mutex_t *m)
{
	count++;
	return ((int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock"))(m);
}

__attribute__((destructor)) static void say(void)
{
	if (getenv("SAY_COUNT"))
		dprintf(1, "counted: %s\n", count ? "yes" : "no");
}
#else

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int stage, nlines;

static void show(const char *what, pthread_mutex_t *x)
{
	int owner = x->__data.__owner;

	printf("%-24s lock %d owner %s users %u kind %d\n", what, x->__data.__lock,
	       !owner ? "nobody" : owner == gettid() ? "me" : "other", x->__data.__nusers, x->__data.__kind);
	nlines++;
}

static void *waits(void *arg)
{
	pthread_mutex_lock(&m);
	show("after waiting", &m);
	while (stage < 1)
		pthread_cond_wait(&c, &m);
	show("after the condition", &m);
	stage = 2;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	return arg;
}

static void *adds(void *arg)
{
	for (int i = 0; i < 3000; i++) {
		pthread_mutex_lock(&m);
		stage++;
		pthread_mutex_unlock(&m);
	}
	return arg;
}

static void kinds(void)
{
	static const int types[] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				     PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP };
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	for (unsigned i = 0; i < 4; i++) {
		pthread_mutex_t x;

		pthread_mutexattr_settype(&a, types[i]);
		pthread_mutex_init(&x, &a);
		printf("lock %d\n", pthread_mutex_lock(&x));
		show("of a kind", &x);
		if (i == 1 || i == 2)
			printf("again %d\n", pthread_mutex_lock(&x));
		printf("try %d\n", pthread_mutex_trylock(&x));
		while (x.__data.__lock)
			printf("unlock %d\n", pthread_mutex_unlock(&x));
		if (i == 2)
			printf("too often %d\n", pthread_mutex_unlock(&x));
		show("unlocked", &x);
		printf("destroy %d\n", pthread_mutex_destroy(&x));
	}
}

int main(void)
{
	pthread_t t, u;

	pthread_mutex_lock(&m);
	show("locked", &m);
	printf("try %d destroy %d\n", pthread_mutex_trylock(&m), pthread_mutex_destroy(&m));
	pthread_create(&t, 0, waits, 0);
	while (__atomic_load_n(&m.__data.__lock, __ATOMIC_ACQUIRE) != 2)
		sched_yield();
	show("waited for", &m);
	pthread_mutex_unlock(&m);
	for (int n = 0; !n; pthread_mutex_unlock(&m)) {
		pthread_mutex_lock(&m);
		n = nlines >= 3;
		if (n) {
			stage = 1;
			pthread_cond_broadcast(&c);
			while (stage < 2)
				pthread_cond_wait(&c, &m);
		}
	}
	pthread_join(t, 0);
	show("unlocked", &m);
	kinds();
	stage = 0;
	pthread_create(&t, 0, adds, 0);
	pthread_create(&u, 0, adds, 0);
	pthread_join(t, 0);
	pthread_join(u, 0);
	printf("added %d\n", stage);
	show("after all", &m);
	fflush(stdout);
	if (!fork()) {
		pthread_mutex_lock(&m);
		show("in a child", &m);
		pthread_mutex_unlock(&m);
		show("in a child", &m);
		fflush(stdout);
		_exit(0);
	}
	wait(0);
	return 0;
}
#endif
