/* Twenty threads that share a lock, a counter of atomics and floating-point work: many places for a debugger to stand. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define THREADS 20

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int tickets;
static double sum;
static int turns[THREADS];
static pthread_barrier_t all;

static void *worker(void *arg)
{
	int me = (int)(long)arg;
	double own = me;

	pthread_barrier_wait(&all);
	for (int i = 0; i < 15; i++) {
		own = own * 1.25 + atomic_fetch_add(&tickets, 1);
		pthread_mutex_lock(&lock);
		sum += own;
		turns[me]++;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];

	pthread_barrier_init(&all, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, worker, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	printf("%d\n", tickets);
	return sum < 0;
}
