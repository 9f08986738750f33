/*
 * Lost wake-up. The consumer looks at the flag before it takes the lock it then
 * waits with; a producer that sets the flag and signals in between signals
 * nobody, and the consumer waits for ever.
 */
#include <pthread.h>
#include <stdio.h>

#define ROUNDS 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int item;	/* 0: none */
static long sum;

static void put(int value)
{
	pthread_mutex_lock(&lock);			/* @putlock */
	while (item)
		pthread_cond_wait(&changed, &lock);	/* @lock */
	item = value;					/* @set */
	pthread_cond_signal(&changed);			/* @signal */
	pthread_mutex_unlock(&lock);			/* @unlock */
}

static int get(void)
{
	int value;

	if (!item) {					/* @check */
		pthread_mutex_lock(&lock);		/* @waitlock */
		pthread_cond_wait(&changed, &lock);	/* @wait */
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);			/* @lock */
	value = item;
	item = 0;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);			/* @unlock */
	return value;
}

static void *producer(void *arg)
{
	(void)arg;
	for (int i = 1; i <= ROUNDS; i++)
		put(i);
	return NULL;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, producer, NULL);
	for (int i = 0; i < ROUNDS; i++)
		sum += get();
	pthread_join(thread, NULL);
	printf("sum %ld\n", sum);
	return 0;
}
