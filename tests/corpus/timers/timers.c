/*
 * Timers of requests. The ticker fires those that are due, and whoever has the answer cancels his; either frees the
 * request. Each looks under the lock whether the other has done it, and says that he has under the lock, but later.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 4
#define REQUEST 4096	/* large enough for the checks of the ordinary bins */

struct timer {
	unsigned due;
	bool armed;
	char *request;
};

struct wheel {
	pthread_mutex_t lock;
	struct timer slots[SLOTS];
	int fired, cancelled;
};

static struct wheel wheel = { .lock = PTHREAD_MUTEX_INITIALIZER };
static char *spare[SLOTS];

static bool timer_armed(struct wheel *w, struct timer *t)
{
	bool armed;

	pthread_mutex_lock(&w->lock);
	armed = t->armed;			/* @armed */
	pthread_mutex_unlock(&w->lock);		/* @told */
	return armed;
}

static bool timer_disarm(struct wheel *w, struct timer *t, int *count)
{
	if (!timer_armed(w, t))			/* @check */
		return false;
	pthread_mutex_lock(&w->lock);		/* @lock */
	t->armed = false;			/* @disarm */
	++*count;
	pthread_mutex_unlock(&w->lock);		/* @unlock */
	free(t->request);			/* @free */
	return true;
}

static void *ticker(void *arg)
{
	struct wheel *w = arg;

	for (unsigned now = 0; now < SLOTS; now++)
		for (int i = 0; i < SLOTS; i++)
			if (w->slots[i].due <= now)
				timer_disarm(w, &w->slots[i], &w->fired);	/* @fire */
	return NULL;
}

static void *answers(void *arg)
{
	struct wheel *w = arg;

	for (int i = SLOTS - 1; i >= 0; i--)
		timer_disarm(w, &w->slots[i], &w->cancelled);	/* @cancel */
	return NULL;
}

int main(void)
{
	pthread_t a, b;

	for (int i = 0; i < SLOTS; i++) {
		wheel.slots[i] = (struct timer){ .due = i, .armed = true, .request = malloc(REQUEST) };
		spare[i] = malloc(64);	/* keeps the requests apart */
		snprintf(wheel.slots[i].request, REQUEST, "GET /%d", i);
	}
	pthread_create(&a, NULL, ticker, &wheel);
	pthread_create(&b, NULL, answers, &wheel);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d fired, %d cancelled\n", wheel.fired, wheel.cancelled);
	for (int i = 0; i < SLOTS; i++)
		free(spare[i]);
	return 0;
}
