/*
 * Deadlocks, and things that look like one for a moment. The order is forced by
 * the program itself, so each run does the same.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER,
		       d = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t bar;
static sem_t s, s2;
static int ready;

static void *take_b_a(void *arg)
{
	pthread_mutex_lock(&b);
	pthread_barrier_wait(&bar);
	pthread_mutex_lock(&a);
	return arg;
}

/* T0 has a and wants b, T0.1 has b and wants a; T0.2 is an onlooker that runs. */
static void *onlooker(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void abba(void)
{
	pthread_t th;

	pthread_barrier_init(&bar, NULL, 2);
	pthread_mutex_lock(&a);
	pthread_create(&th, NULL, take_b_a, NULL);
	pthread_create(&th, NULL, onlooker, NULL);
	pthread_barrier_wait(&bar);
	pthread_mutex_lock(&b);
}

static pthread_mutex_t *ring[3] = { &a, &b, &d };

static void *ring_member(void *arg)
{
	long i = (long)arg;

	pthread_mutex_lock(ring[i]);
	pthread_barrier_wait(&bar);
	pthread_mutex_lock(ring[(i + 1) % 3]);
	return NULL;
}

static void three(void)
{
	pthread_t th[3];

	pthread_barrier_init(&bar, NULL, 3);
	for (long i = 0; i < 3; i++)
		pthread_create(&th[i], NULL, ring_member, (void *)i);
	for (int i = 0; i < 3; i++)
		pthread_join(th[i], NULL);
}

static void *write_then_lock(void *arg)
{
	pthread_rwlock_wrlock(&rw);
	pthread_barrier_wait(&bar);
	pthread_mutex_lock(&a);
	return arg;
}

static void mixed(void)
{
	pthread_t th;

	pthread_barrier_init(&bar, NULL, 2);
	pthread_mutex_lock(&a);
	pthread_create(&th, NULL, write_then_lock, NULL);
	pthread_barrier_wait(&bar);
	pthread_rwlock_rdlock(&rw);
}

/* A reader that wants to become the writer waits for itself. */
static void upgrade(void)
{
	pthread_t th;

	pthread_create(&th, NULL, onlooker, NULL);
	pthread_rwlock_rdlock(&rw);
	pthread_rwlock_wrlock(&rw);
}

static void *join_holder(void *arg)
{
	pthread_mutex_lock(&a);
	return arg;
}

/* Joins a thread that waits for a mutex the joiner holds. */
static void join_held(void)
{
	pthread_t th;

	pthread_mutex_lock(&a);
	pthread_create(&th, NULL, join_holder, NULL);
	pthread_join(th, NULL);
}

static void *joins(void *arg)
{
	return (void *)(long)pthread_join(*(pthread_t *)arg, NULL);
}

static void join_each_other(void)
{
	pthread_t me = pthread_self(), th;

	pthread_create(&th, NULL, joins, &me);
	pthread_join(th, NULL);
}

static void *waits(void *arg)
{
	sem_wait(&s);
	return arg;
}

static void all_asleep(void)
{
	pthread_t th;

	sem_init(&s, 0, 0);
	pthread_create(&th, NULL, waits, NULL);
	pthread_mutex_lock(&a);
	while (!ready)
		pthread_cond_wait(&c, &a);
}

static void barrier_short(void)
{
	pthread_barrier_init(&bar, NULL, 2);
	pthread_barrier_wait(&bar);
}

static void *leaves(void *arg)
{
	usleep(200000); /* the others are blocked by then */
	return arg;
}

/* The only one who could still have done something ends, and nobody waits for that. */
static void last_leaves(void)
{
	pthread_t waiter, other;

	sem_init(&s, 0, 0);
	pthread_create(&other, NULL, leaves, NULL);
	pthread_create(&waiter, NULL, waits, NULL);
	pthread_join(waiter, NULL);
}

/* ---- not deadlocks ---- */

static void post_late(void *arg)
{
	usleep(200000);
	sem_post(arg);
}

static void *leaves_late(void *arg)
{
	pthread_key_t key;

	pthread_key_create(&key, post_late);
	pthread_setspecific(key, &s);
	return arg;
}

/* A thread's last words wake the others. */
static void last_words(void)
{
	pthread_t waiter, other;

	sem_init(&s, 0, 0);
	pthread_create(&waiter, NULL, waits, NULL);
	pthread_create(&other, NULL, leaves_late, NULL);
	pthread_join(waiter, NULL);
	pthread_join(other, NULL);
}

static void on_alarm(int sig)
{
	(void)sig;
	sem_post(&s);
}

/* The only thread sleeps until its own signal handler wakes it. */
static void woken_by_handler(void)
{
	sem_init(&s, 0, 0);
	signal(SIGALRM, on_alarm);
	ualarm(200000, 0);
	while (sem_wait(&s))
		;
}

/* Nobody posts: the handler that would have is taken back, and what else ends a process is ignored or left alone. */
static void handler_gone(void)
{
	sem_init(&s, 0, 0);
	signal(SIGALRM, on_alarm);
	signal(SIGALRM, SIG_DFL);
	signal(SIGUSR1, on_alarm);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sem_wait(&s);
}

static void *ping(void *arg)
{
	for (int i = 0; i < 20000; i++) {
		sem_wait(&s);
		sem_post(&s2);
	}
	return arg;
}

/* All threads seem blocked many thousand times. */
static void pingpong(void)
{
	pthread_t th;

	sem_init(&s, 0, 0);
	sem_init(&s2, 0, 0);
	pthread_create(&th, NULL, ping, NULL);
	for (int i = 0; i < 20000; i++) {
		sem_post(&s);
		sem_wait(&s2);
	}
	pthread_join(th, NULL);
}

static void *rounds(void *arg)
{
	for (int i = 0; i < 3000; i++) {
		pthread_barrier_wait(&bar);
		pthread_mutex_lock(&a);
		ready++;
		pthread_mutex_unlock(&a);
	}
	return arg;
}

static void many_barriers(void)
{
	pthread_t th[3];

	pthread_barrier_init(&bar, NULL, 3);
	for (int i = 0; i < 3; i++)
		pthread_create(&th[i], NULL, rounds, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(th[i], NULL);
}

static void *consumer(void *arg)
{
	pthread_mutex_lock(&a);
	for (int i = 0; i < 5000; i++) {
		while (!ready)
			pthread_cond_wait(&c, &a);
		ready = 0;
		pthread_cond_broadcast(&c);
	}
	pthread_mutex_unlock(&a);
	return arg;
}

static void handover(void)
{
	pthread_t th;

	pthread_create(&th, NULL, consumer, NULL);
	pthread_mutex_lock(&a);
	for (int i = 0; i < 5000; i++) {
		while (ready)
			pthread_cond_wait(&c, &a);
		ready = 1;
		pthread_cond_broadcast(&c);
	}
	pthread_mutex_unlock(&a);
	pthread_join(th, NULL);
}

static void *checked(void *arg)
{
	pthread_mutexattr_t at;
	pthread_mutex_t m;

	pthread_mutexattr_init(&at);
	pthread_mutexattr_settype(&at, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&m, &at);
	pthread_mutex_lock(&m);
	printf("again: %d\n", pthread_mutex_lock(&m));
	return arg;
}

static void refused(void)
{
	printf("join myself: %d\n", pthread_join(pthread_self(), NULL));
	checked(NULL);
	pthread_rwlock_wrlock(&rw);
	printf("read inside write: %d\n", pthread_rwlock_rdlock(&rw));
}

static const struct {
	const char *name;
	void (*fn)(void);
} cases[] = {
	{ "abba", abba }, { "three", three }, { "mixed", mixed }, { "join-held", join_held },
	{ "join-each-other", join_each_other }, { "upgrade", upgrade },
	{ "last-leaves", last_leaves }, { "last-words", last_words },
	{ "all-asleep", all_asleep }, { "barrier-short", barrier_short },
	{ "handler-gone", handler_gone },
	{ "woken-by-handler", woken_by_handler }, { "pingpong", pingpong },
	{ "many-barriers", many_barriers }, { "handover", handover }, { "refused", refused },
};

int main(int argc, char **argv)
{
	for (unsigned i = 0; argc > 1 && i < sizeof cases / sizeof cases[0]; i++)
		if (!strcmp(argv[1], cases[i].name))
			cases[i].fn();
	puts("done");
	return 0;
}
