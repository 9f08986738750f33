/*
 * Two variables, one invariant (low <= high). Each access is locked; moving the
 * range takes two locked steps, and a reader may look between them.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define MOVES 5
#define LOOKS 5

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int low = 0, high = 9;
static int width_seen;

static void set_low(int value)
{
	pthread_mutex_lock(&lock);		/* @lock */
	low = value;				/* @low */
	pthread_mutex_unlock(&lock);		/* @unlock */
}

static void set_high(int value)
{
	pthread_mutex_lock(&lock);		/* @lock */
	high = value;				/* @high */
	pthread_mutex_unlock(&lock);		/* @unlock */
}

static void *mover(void *arg)
{
	(void)arg;
	for (int i = 1; i <= MOVES; i++) {
		set_low(i * 10);
		set_high(i * 10 + 9);		/* @high */
	}
	return NULL;
}

static void *watcher(void *arg)
{
	(void)arg;
	for (int i = 0; i < LOOKS; i++) {
		pthread_mutex_lock(&lock);	/* @lock */
		assert(low <= high);		/* @use */
		width_seen = high - low;
		pthread_mutex_unlock(&lock);	/* @unlock */
	}
	return NULL;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, mover, NULL);
	pthread_create(&b, NULL, watcher, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("range %d..%d, width %d\n", low, high, width_seen);
	return 0;
}
