/* An axis whose two ends are set one after the other. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct axis {
	pthread_mutex_t lock;
	double lower, upper;
};

struct axis *axis_new(void)
{
	struct axis *a = calloc(1, sizeof *a);

	pthread_mutex_init(&a->lock, NULL);
	a->upper = 1;
	return a;
}

static void set_lower(struct axis *a, double v)
{
#ifndef FIXED
	pthread_mutex_lock(&a->lock);
#endif
	a->lower = v;
#ifndef FIXED
	pthread_mutex_unlock(&a->lock);
#endif
}

static void set_upper(struct axis *a, double v)
{
#ifndef FIXED
	pthread_mutex_lock(&a->lock);
#endif
	a->upper = v;
#ifndef FIXED
	pthread_mutex_unlock(&a->lock);
#endif
}

void axis_set_range(struct axis *a, double lower, double length)
{
	if (!(length > 0) || length > 1e6 || lower > 1e6)
		return;
#ifdef FIXED
	pthread_mutex_lock(&a->lock);
#endif
	set_lower(a, lower * 10);
	set_upper(a, lower * 10 + length);
#ifdef FIXED
	pthread_mutex_unlock(&a->lock);
#endif
}

double axis_tick(struct axis *a)
{
	pthread_mutex_lock(&a->lock);
	double length = a->upper - a->lower;
	assert(length > 0);
	pthread_mutex_unlock(&a->lock);
	return length / 10;
}

void axis_free(struct axis *a)
{
	free(a);
}
