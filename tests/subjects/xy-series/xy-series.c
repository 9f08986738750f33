/*
 * A series that keeps its sum beside its values (JFreeChart, XYSeries).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int values[4], count, sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *add(void *arg)
{
	pthread_mutex_lock(&lock);
	values[count] = 3;
	count++; /* @count */
#ifndef CORRECT
	pthread_mutex_unlock(&lock);
	pthread_mutex_lock(&lock);
#endif
	sum += 3; /* @sum */
	pthread_mutex_unlock(&lock);
	return arg;
}

static void *check(void *arg)
{
	pthread_mutex_lock(&lock);
	int n = count, s = sum; /* @read */
	pthread_mutex_unlock(&lock);
	assert(s == 3 * n); /* @mean */
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, add, NULL);
	pthread_create(&b, NULL, check, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d of %d\n", sum, count);
	return 0;
}
