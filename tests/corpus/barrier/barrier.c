/*
 * Barrier misuse. After each round all threads read the common sum and one of
 * them clears it for the next round; a second barrier between reading and
 * clearing is missing.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define THREADS 3
#define ROUNDS 4

static pthread_barrier_t barrier;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sum;
static int seen[THREADS];
static unsigned history;

/* What the round's sum adds to the history of the run. */
static void summarise(int now)
{
	unsigned long power = history + now;

	for (int i = 0; i < 300000; i++) {
		power = power * power % 1000003;
		power = power * now % 999983;
		power = power * power % 1000033 + 2;
	}
	history = power;
}

static void *worker(void *arg)
{
	int me = (int)(long)arg;

	for (int round = 1; round <= ROUNDS; round++) {
		int last, now;

		pthread_mutex_lock(&lock);			/* @lock */
		sum += round * (me + 1);			/* @add */
		pthread_mutex_unlock(&lock);			/* @unlock */
		last = pthread_barrier_wait(&barrier);		/* @barrier */
		now = sum;					/* @read */
		assert(now == round * 6);			/* @use */
		seen[me] += now;
		if (last == PTHREAD_BARRIER_SERIAL_THREAD) {
			summarise(now);
			sum = 0;				/* @clear */
		}
		pthread_barrier_wait(&barrier);			/* @barrier */
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, worker, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("seen %d %d %d, history %08x\n", seen[0], seen[1], seen[2], history);
	pthread_barrier_destroy(&barrier);
	return 0;
}
