/*
 * Nested monitor. The consumer waits for items with the lock of the store
 * held, which the wait does not give up; the producer needs that lock before it
 * can bring any.
 */
#include <pthread.h>
#include <stdio.h>

#define ITEMS 5

static pthread_mutex_t store = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t shelf = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int items, taken;

static void *consumer(void *arg)
{
	(void)arg;
	for (int i = 0; i < ITEMS; i++) {
		pthread_mutex_lock(&store);			/* @enter */
		pthread_mutex_lock(&shelf);			/* @shelf */
		while (!items)					/* @look */
			pthread_cond_wait(&filled, &shelf);	/* @wait */
		items--;					/* @take */
		taken++;
		pthread_mutex_unlock(&shelf);			/* @leave */
		pthread_mutex_unlock(&store);			/* @leave */
	}
	return NULL;
}

static void *producer(void *arg)
{
	(void)arg;
	for (int i = 0; i < ITEMS; i++) {
		pthread_mutex_lock(&store);			/* @bring */
		pthread_mutex_lock(&shelf);			/* @shelf */
		items++;					/* @put */
		pthread_cond_signal(&filled);			/* @signal */
		pthread_mutex_unlock(&shelf);			/* @leave */
		pthread_mutex_unlock(&store);			/* @leave */
	}
	return NULL;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&b, NULL, producer, NULL);
	pthread_create(&a, NULL, consumer, NULL);
	pthread_join(b, NULL);
	pthread_join(a, NULL);
	printf("taken %d, left %d\n", taken, items);
	return 0;
}
