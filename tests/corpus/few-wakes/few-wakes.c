/*
 * Too few wake-ups. Every worker waits for its turn on the semaphore; the starter posts once too few. Which worker is
 * left over depends on the order, that one is does not.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#define WORKERS 3

static sem_t start;
static int done[WORKERS];

static void *worker(void *arg)
{
	int *mine = arg;

	sem_wait(&start);	/* @wait */
	*mine = 1;
	return NULL;
}

int main(void)
{
	pthread_t t[WORKERS];
	int sum = 0;

	sem_init(&start, 0, 0);
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&t[i], NULL, worker, &done[i]);
	for (int i = 1; i < WORKERS; i++)
		sem_post(&start);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < WORKERS; i++)
		sum += done[i];
	printf("%d done\n", sum);
	return 0;
}
