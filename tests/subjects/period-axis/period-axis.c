/*
 * The first and the last period of an axis, changed and read without a lock (JFreeChart, PeriodAxis).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct period {
	int year, month;
};

static struct period first = { 2001, 1 }, last = { 2001, 12 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int months;

static void *next_year(void *arg)
{
#ifdef CORRECT
	pthread_mutex_lock(&lock);
#endif
	last.year++; /* @last */
	first.year++; /* @first */
#ifdef CORRECT
	pthread_mutex_unlock(&lock);
#endif
	return arg;
}

static void *measure(void *arg)
{
#ifdef CORRECT
	pthread_mutex_lock(&lock);
#endif
	int from = first.year * 12 + first.month; /* @from */
	int to = last.year * 12 + last.month; /* @to */
#ifdef CORRECT
	pthread_mutex_unlock(&lock);
#endif
	assert(to - from == 11); /* @months */
	months = to - from + 1;
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, next_year, NULL);
	pthread_create(&b, NULL, measure, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d months\n", months);
	return 0;
}
