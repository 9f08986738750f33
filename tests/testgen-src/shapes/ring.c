/* A ring buffer that is made from a structure by value and calls back when it drops: the callback may go away meanwhile. */
#include <pthread.h>
#include <stdlib.h>

struct ring_config {
	unsigned slots;
	int overwrite;
};

typedef void ring_dropped(void *user, int value);

struct ring {
	pthread_mutex_t lock;
	struct ring_config config;
	unsigned head, used;
	ring_dropped *dropped;
	void *user;
	int values[];
};

struct ring *ring_new(struct ring_config config)
{
	if (!config.slots || config.slots > 1024)
		return NULL;
	struct ring *r = calloc(1, sizeof *r + config.slots * sizeof(int));

	pthread_mutex_init(&r->lock, NULL);
	r->config = config;
	return r;
}

void ring_on_drop(struct ring *r, ring_dropped *call, void *user)
{
	pthread_mutex_lock(&r->lock);
	r->dropped = call;
	r->user = user;
	pthread_mutex_unlock(&r->lock);
}

int ring_push(struct ring *r, int value)
{
	int full;

	pthread_mutex_lock(&r->lock);
	full = r->used == r->config.slots;
	if (!full)
		r->values[(r->head + r->used++) % r->config.slots] = value;
	ring_dropped *call = r->dropped;
	void *user = r->user;
	pthread_mutex_unlock(&r->lock);
#ifdef FIXED
	if (full && call)
		call(user, value);
#else
	(void)call;
	(void)user;
	if (full && r->dropped)
		r->dropped(r->user, value);
#endif
	return full ? -1 : 0;
}

int ring_pop(struct ring *r, int *value)
{
	int status = -1;

	pthread_mutex_lock(&r->lock);
	if (r->used) {
		*value = r->values[r->head];
		r->head = (r->head + 1) % r->config.slots;
		r->used--;
		status = 0;
	}
	pthread_mutex_unlock(&r->lock);
	return status;
}

void ring_free(struct ring *r)
{
	free(r);
}
