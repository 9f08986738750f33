/*
 * A barrier of the wrong size. It counts main, too, and main only joins: the workers wait for one more for ever.
 */
#include <pthread.h>
#include <stdio.h>

#define WORKERS 3

static pthread_barrier_t phase;
static long part[WORKERS];

static void *worker(void *arg)
{
	long *mine = arg;

	for (int i = 0; i < 1000; i++)
		*mine += i;
	pthread_barrier_wait(&phase);	/* @wait */
	return NULL;
}

int main(void)
{
	pthread_t t[WORKERS];
	long sum = 0;

	pthread_barrier_init(&phase, NULL, WORKERS + 1);
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&t[i], NULL, worker, &part[i]);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);	/* @join */
	for (int i = 0; i < WORKERS; i++)
		sum += part[i];
	printf("%ld\n", sum);
	return 0;
}
