/*
 * libc's functions that look before they try, from two threads at once: how often
 * each of them got through is decided by races inside libc, and printed.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

#define ROUNDS 300

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static pthread_once_t once[ROUNDS];
static sem_t sem;
static int turns, inits; /* under the spinlock; by one thread each */
static int beats;        /* under the guard */

static void init(void)
{
	inits++;
}

/* Long enough for the other one to come by. */
static void hold(void)
{
	for (volatile int k = 0; k < 200; k++)
		;
}

static void tries(int got[6])
{
	if (!pthread_mutex_trylock(&mutex)) {
		got[0]++;
		hold();
		pthread_mutex_unlock(&mutex);
	}
	if (!pthread_rwlock_trywrlock(&rwlock)) {
		got[1]++;
		hold();
		pthread_rwlock_unlock(&rwlock);
	}
	if (!pthread_rwlock_tryrdlock(&rwlock)) {
		got[2]++;
		hold();
		pthread_rwlock_unlock(&rwlock);
	}
	if (!pthread_spin_trylock(&spin)) {
		got[3]++;
		hold();
		pthread_spin_unlock(&spin);
	}
	if (!sem_trywait(&sem)) {
		got[4]++;
		hold();
		sem_post(&sem);
	}
}

/* Until the other one beats, or for a tenth of a millisecond: it may have ended. */
static void await_beat(int got[6])
{
	struct timespec soon;
	int now = beats;

	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_nsec += 100000;
	if (soon.tv_nsec >= 1000000000) {
		soon.tv_nsec -= 1000000000;
		soon.tv_sec++;
	}
	while (beats == now)
		if (pthread_cond_timedwait(&cond, &guard, &soon))
			return;
	got[5]++;
}

static void *run(void *arg)
{
	int *got = arg;

	for (int i = 0; i < ROUNDS; i++) {
		tries(got);
		pthread_once(&once[i], init);
		pthread_spin_lock(&spin);
		turns++;
		hold();
		pthread_spin_unlock(&spin);
		pthread_mutex_lock(&guard);
		beats++;
		pthread_cond_signal(&cond);
		if (i % 8 == 0)
			await_beat(got);
		pthread_mutex_unlock(&guard);
		if (i % 16 == 0)
			pthread_barrier_wait(&barrier);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[2];
	int got[2][6] = { { 0 } };

	pthread_spin_init(&spin, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	sem_init(&sem, 0, 1);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, run, got[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	printf("%s", turns == 2 * ROUNDS && inits == ROUNDS ? "good:" : "bad:");
	for (int i = 0; i < 12; i++)
		printf(" %d", got[i / 6][i % 6]);
	printf("\n");
	return 0;
}
