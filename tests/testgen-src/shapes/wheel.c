/* A timer wheel, an opaque handle with enumerations and callbacks: a timer that is cancelled while it is about to fire. */
#include <pthread.h>
#include <stdlib.h>

enum wheel_pace { WHEEL_SLOW = 1, WHEEL_FAST = 4, WHEEL_BURST = 16 };
enum wheel_error { WHEEL_OK, WHEEL_UNKNOWN = -2, WHEEL_FULL = -3 };

typedef void (*wheel_fire)(void *context);

struct timer {
	struct timer *next;
	wheel_fire fire;
	void *context;
	unsigned due;
	int id;
};

#define SLOTS 8

typedef struct wheel_impl *wheel_handle;
struct wheel_impl {
	pthread_mutex_t lock;
	struct timer *slots[SLOTS];
	unsigned now;
	int last_id;
	enum wheel_pace pace;
};

wheel_handle wheel_open(enum wheel_pace pace)
{
	wheel_handle w = calloc(1, sizeof *w);

	pthread_mutex_init(&w->lock, NULL);
	w->pace = pace;
	return w;
}

int wheel_schedule(wheel_handle w, unsigned ticks, wheel_fire fire, void *context)
{
	struct timer *t;

	if (!fire)
		return WHEEL_UNKNOWN;
	t = calloc(1, sizeof *t);
	pthread_mutex_lock(&w->lock);
	t->due = (w->now + ticks) % SLOTS;
	t->fire = fire;
	t->context = context;
	t->id = ++w->last_id;
	t->next = w->slots[t->due];
	w->slots[t->due] = t;
	pthread_mutex_unlock(&w->lock);
	return t->id;
}

enum wheel_error wheel_cancel(wheel_handle w, int id)
{
	enum wheel_error status = WHEEL_UNKNOWN;

	pthread_mutex_lock(&w->lock);
	for (unsigned i = 0; i < SLOTS; i++)
		for (struct timer **p = &w->slots[i]; *p; p = &(*p)->next)
			if ((*p)->id == id) {
				struct timer *t = *p;

				*p = t->next;
				t->fire = NULL;
				free(t);
				status = WHEEL_OK;
				goto out;
			}
out:
	pthread_mutex_unlock(&w->lock);
	return status;
}

/* Fires what is due. */
int wheel_advance(wheel_handle w)
{
	int fired = 0;

	for (enum wheel_pace i = 0; i < w->pace; i++) {
		pthread_mutex_lock(&w->lock);
		struct timer *t = w->slots[w->now % SLOTS];
#ifdef FIXED
		if (t)
			w->slots[w->now % SLOTS] = t->next;
		else
			w->now++;
		pthread_mutex_unlock(&w->lock);
		if (!t)
			continue;
		t->fire(t->context);
		free(t);
		fired++;
#else
		if (!t)
			w->now++;
		pthread_mutex_unlock(&w->lock);
		if (!t)
			continue;
		t->fire(t->context);
		wheel_cancel(w, t->id);
		fired++;
#endif
	}
	return fired;
}

void wheel_close(wheel_handle w)
{
	free(w);
}
