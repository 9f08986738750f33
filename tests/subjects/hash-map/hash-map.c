/*
 * A map of two segments whose size is the sum of their counts
 * (JDK, ConcurrentHashMap).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct segment {
	pthread_mutex_t lock;
	int count;
} segments[2] = { { PTHREAD_MUTEX_INITIALIZER, 1 }, { PTHREAD_MUTEX_INITIALIZER, 0 } };

static int size(void)
{
	int n = 0;

#ifdef CORRECT
	for (int i = 0; i < 2; i++)
		pthread_mutex_lock(&segments[i].lock);
	for (int i = 0; i < 2; i++)
		n += segments[i].count;
	for (int i = 0; i < 2; i++)
		pthread_mutex_unlock(&segments[i].lock);
#else
	for (int i = 0; i < 2; i++) {
		pthread_mutex_lock(&segments[i].lock);
		n += segments[i].count; /* @sum */
		pthread_mutex_unlock(&segments[i].lock);
	}
#endif
	return n;
}

/* Puts an entry into the second segment before it takes one from the first: there is always one. */
static void *mover(void *arg)
{
#ifdef CORRECT
	pthread_mutex_lock(&segments[0].lock);
#endif
	pthread_mutex_lock(&segments[1].lock);
	segments[1].count++; /* @put */
	pthread_mutex_unlock(&segments[1].lock);
#ifndef CORRECT
	pthread_mutex_lock(&segments[0].lock);
#endif
	segments[0].count--; /* @take */
	pthread_mutex_unlock(&segments[0].lock);
	return arg;
}

static void *counter(void *arg)
{
	int n = size();

	assert(n == 1); /* @size */
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, mover, NULL);
	pthread_create(&b, NULL, counter, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("size %d\n", size());
	return 0;
}
