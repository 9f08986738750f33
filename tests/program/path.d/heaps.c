/*
 * What malloc does without a lock: free raises the size from which on blocks are mapped
 * (and with it the one at which heaps shrink) while the other threads compare with it.
 * Workers begin together, allocate blocks of several sizes above the first threshold,
 * and free one that another worker has allocated.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS 6
#define ROUNDS 8
#define BLOCKS 3

static const size_t sizes[BLOCKS] = { 400000, 400136, 262148 };
static void *_Atomic given[WORKERS];
static pthread_barrier_t together;

static void *worker(void *arg)
{
	int me = (int)(long)arg;

	pthread_barrier_wait(&together);
	for (int round = 0; round < ROUNDS; round++) {
		char *block[BLOCKS];

		for (int i = 0; i < BLOCKS; i++) {
			block[i] = malloc(sizes[i] + (size_t)round * 100000);
			memset(block[i], me, sizes[i]);
		}
		block[0] = atomic_exchange(&given[(me + round) % WORKERS], block[0]);
		for (int i = 0; i < BLOCKS; i++)
			free(block[i]);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[WORKERS];

	pthread_barrier_init(&together, NULL, WORKERS);
	for (long i = 0; i < WORKERS; i++)
		pthread_create(&thread[i], NULL, worker, (void *)i);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < WORKERS; i++)
		free(given[i]);
	puts("good");
	return 0;
}
