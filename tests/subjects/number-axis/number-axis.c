/*
 * An axis whose two ends are set one by one and read together (JFreeChart, NumberAxis).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int lower = 0, upper = 10;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int span;

static void *set_range(void *arg)
{
	pthread_mutex_lock(&lock);
	lower = 20; /* @lower */
#ifndef CORRECT
	pthread_mutex_unlock(&lock);
	pthread_mutex_lock(&lock);
#endif
	upper = 30; /* @upper */
	pthread_mutex_unlock(&lock);
	return arg;
}

static void *draw(void *arg)
{
	pthread_mutex_lock(&lock);
	int from = lower, to = upper; /* @read */
	pthread_mutex_unlock(&lock);
	assert(from <= to); /* @range */
	span = to - from;
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, set_range, NULL);
	pthread_create(&b, NULL, draw, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d\n", span);
	return 0;
}
