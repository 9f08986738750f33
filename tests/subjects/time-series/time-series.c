/*
 * Items are added to a series by two threads (JFreeChart, TimeSeries).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int items[8];
static int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void add(int item)
{
#ifdef CORRECT
	pthread_mutex_lock(&lock);
#endif
	int at = count; /* @read */

	items[at] = item;
	count = at + 1; /* @write */
#ifdef CORRECT
	pthread_mutex_unlock(&lock);
#endif
}

static void *monday(void *arg)
{
	add(1);
	return arg;
}

static void *tuesday(void *arg)
{
	add(2);
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, monday, NULL);
	pthread_create(&b, NULL, tuesday, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	assert(count == 2); /* @lost */
	printf("%d items\n", count);
	return 0;
}
