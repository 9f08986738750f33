/* Room for two callers at a time: a third one gets no place. Two threads cannot show it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct desk {
	pthread_mutex_t lock, whole;
	int busy;
	long served;
	char *places[2];
};

struct desk *desk_new(void)
{
	struct desk *d = calloc(1, sizeof *d);

	pthread_mutex_init(&d->lock, NULL);
	pthread_mutex_init(&d->whole, NULL);
	d->places[0] = calloc(1, 16);
	d->places[1] = calloc(1, 16);
	return d;
}

static char *take(struct desk *d)
{
	char *p = NULL;

	pthread_mutex_lock(&d->lock);
	for (int i = 0; i < 2 && !p; i++)
		if (!(d->busy & 1 << i)) {
			d->busy |= 1 << i;
			p = d->places[i];
		}
	pthread_mutex_unlock(&d->lock);
	return p;
}

static void give(struct desk *d, const char *p)
{
	pthread_mutex_lock(&d->lock);
	for (int i = 0; i < 2; i++)
		if (d->places[i] == p)
			d->busy &= ~(1 << i);
	d->served++;
	pthread_mutex_unlock(&d->lock);
}

void desk_write(struct desk *d, int n)
{
#ifdef FIXED
	pthread_mutex_lock(&d->whole);
#endif
	char *p = take(d);
	memset(p, n & 127, 8);
	give(d, p);
#ifdef FIXED
	pthread_mutex_unlock(&d->whole);
#endif
}

long desk_served(struct desk *d)
{
	pthread_mutex_lock(&d->lock);
	long n = d->served;
	pthread_mutex_unlock(&d->lock);
	return n;
}

void desk_free(struct desk *d)
{
	free(d->places[0]);
	free(d->places[1]);
	free(d);
}
