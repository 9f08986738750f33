/*
 * One join too few. main waits for all workers but the last, and adds up what it may not have written yet. Every part is
 * written by one thread alone: no lock would help.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define WORKERS 3
#define STEPS 200

static long part[WORKERS];

static void *worker(void *arg)
{
	long *mine = arg, sum = 0;

	for (int i = 0; i < STEPS; i++)
		sum += i;
	*mine = sum;	/* @write */
	return NULL;
}

int main(void)
{
	pthread_t t[WORKERS];
	long sum = 0;

	for (int i = 0; i < WORKERS; i++)
		pthread_create(&t[i], NULL, worker, &part[i]);
	for (int i = 0; i + 1 < WORKERS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < WORKERS; i++)
		sum += part[i];	/* @read */
	assert(sum == WORKERS * (STEPS * (STEPS - 1L) / 2));	/* @assert */
	printf("%ld\n", sum);
	return 0;
}
