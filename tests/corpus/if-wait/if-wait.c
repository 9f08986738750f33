/*
 * The condition is tested once. A consumer that has been woken for an item takes the
 * mutex again only after another consumer, which never waited, has taken the item away.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define CONSUMERS 3
#define ITEMS 12
#define ROOM 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int queue[ROOM];
static int count;
static int closed;

static int take(void)
{
	int value = -1;

	pthread_mutex_lock(&lock);			/* @lock */
	if (count == 0 && !closed)			/* @test */
		pthread_cond_wait(&changed, &lock);	/* @wait */
	if (count > 0 || !closed) {			/* @closed */
		assert(count > 0);			/* @use */
		value = queue[--count];			/* @take */
	}
	pthread_mutex_unlock(&lock);			/* @unlock */
	return value;
}

static void put(int value)
{
	pthread_mutex_lock(&lock);			/* @lock */
	queue[count++] = value;				/* @put */
	pthread_cond_signal(&changed);			/* @signal */
	pthread_mutex_unlock(&lock);			/* @unlock */
}

static void *consumer(void *arg)
{
	long *taken = arg;

	while (take() >= 0)
		++*taken;
	return NULL;
}

int main(void)
{
	pthread_t threads[CONSUMERS];
	long taken[CONSUMERS] = { 0 }, all = 0;

	for (int i = 0; i < CONSUMERS; i++)
		pthread_create(&threads[i], NULL, consumer, &taken[i]);
	for (int i = 0; i < ITEMS; i++)
		put(i);
	pthread_mutex_lock(&lock);			/* @lock */
	closed = 1;
	pthread_cond_broadcast(&changed);		/* @signal */
	pthread_mutex_unlock(&lock);			/* @unlock */
	for (int i = 0; i < CONSUMERS; i++) {
		pthread_join(threads[i], NULL);
		all += taken[i];
	}
	printf("taken %ld\n", all);
	return 0;
}
