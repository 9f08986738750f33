/* Queues by number instead of by pointer: what they share are the library's own variables. */
#include <pthread.h>
#include <stdlib.h>

#define HANDLES 4

struct queue {
	int *values;
	unsigned n;
};

static struct queue *queues[HANDLES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int hq_open(void)
{
	int h = -1;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < HANDLES && h < 0; i++)
		if (!queues[i]) {
			queues[i] = calloc(1, sizeof *queues[i]);
			queues[i]->values = calloc(16, sizeof(int));
			h = i;
		}
	pthread_mutex_unlock(&lock);
	return h;
}

int hq_put(int handle, int value)
{
	int status = -1;

	if (handle < 0 || handle >= HANDLES)
		return -1;
#ifndef FIXED
	if (!queues[handle])
		return -1;
#endif
	pthread_mutex_lock(&lock);
#ifdef FIXED
	if (!queues[handle]) {
		pthread_mutex_unlock(&lock);
		return -1;
	}
#endif
	if (queues[handle]->n < 16) {
		queues[handle]->values[queues[handle]->n++] = value;
		status = 0;
	}
	pthread_mutex_unlock(&lock);
	return status;
}

int hq_close(int handle)
{
	if (handle < 0 || handle >= HANDLES)
		return -1;
	pthread_mutex_lock(&lock);
	struct queue *q = queues[handle];
	queues[handle] = NULL;
	pthread_mutex_unlock(&lock);
	if (!q)
		return -1;
	free(q->values);
	free(q);
	return 0;
}
