/*
 * A lost update in a single instruction. Two threads count what they serve; `served++'
 * compiles to one addition to memory, which is a load and a store all the same.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define THREADS 2
#define REQUESTS 10

struct statistics {
	int served;
	int refused;
};

static struct statistics total;

static void __attribute__((noinline)) serve(int request)
{
	if (request % 5 == 4)
		total.refused++;	/* @add */
	else
		total.served++;		/* @add */
}

static void *worker(void *arg)
{
	(void)arg;
	for (int i = 0; i < REQUESTS; i++)
		serve(i);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, worker, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%d served, %d refused\n", total.served, total.refused);
	assert(total.served + total.refused == THREADS * REQUESTS);	/* @sum */
	return 0;
}
