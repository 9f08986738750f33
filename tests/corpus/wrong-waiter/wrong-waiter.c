/*
 * One condition variable for two things. Producers wait for an empty slot,
 * consumers for a full one, both for `changed`, and a signal wakes one of them:
 * when it is the wrong one, it goes on waiting and nobody else hears of it.
 */
#include <pthread.h>
#include <stdio.h>

#define ITEMS 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int slot, full;
static long sum;

static void put(int item)
{
	pthread_mutex_lock(&lock);				/* @lock */
	while (full)						/* @full */
		pthread_cond_wait(&changed, &lock);		/* @put_waits */
	slot = item;						/* @slot */
	full = 1;						/* @fill */
	pthread_cond_signal(&changed);				/* @signal */
	pthread_mutex_unlock(&lock);				/* @unlock */
}

static void get(void)
{
	pthread_mutex_lock(&lock);				/* @lock */
	while (!full)						/* @empty */
		pthread_cond_wait(&changed, &lock);		/* @get_waits */
	sum += slot;						/* @slot */
	full = 0;						/* @drain */
	pthread_cond_signal(&changed);				/* @signal */
	pthread_mutex_unlock(&lock);				/* @unlock */
}

static void *producer(void *arg)
{
	(void)arg;
	for (int i = 0; i < ITEMS; i++)
		put(i);
	return NULL;
}

static void *consumer(void *arg)
{
	(void)arg;
	for (int i = 0; i < ITEMS; i++)
		get();
	return NULL;
}

int main(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, i % 2 ? consumer : producer, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("sum %ld\n", sum);
	return 0;
}
