/*
 * Fails in every order. The items are divided among the threads, rounding loses
 * the last ones; everything shared is locked. No schedule is to blame.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define THREADS 3
#define ITEMS 20

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int done;

static void *worker(void *arg)
{
	int me = (int)(long)arg;

	for (int i = me * (ITEMS / THREADS); i < (me + 1) * (ITEMS / THREADS); i++) {
		pthread_mutex_lock(&lock);
		done++;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, worker, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("done %d\n", done);
	fflush(stdout);
	assert(done == ITEMS);			/* @audit */
	return 0;
}
