/*
 * Bounded buffer, two producers and two consumers. put and get are locked, but
 * a consumer looks whether the buffer holds something before it takes the lock:
 * two consumers can both see the last item, and the second one finds none.
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define SIZE 6
#define PRODUCERS 2
#define CONSUMERS 2
#define ITEMS 8		/* per producer */

struct bounded_buf {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int head;		/* items taken so far */
	int rear;		/* items put so far */
	int put_waits;
	int closed;
	int *items;
};

static struct bounded_buf buf;
static int taken[CONSUMERS];
static long taken_sum[CONSUMERS];

static void buf_init(struct bounded_buf *b, int size)
{
	pthread_mutex_init(&b->mutex, NULL);
	pthread_cond_init(&b->changed, NULL);
	b->items = calloc(size, sizeof(*b->items));
	b->head = b->rear = 0;
	b->put_waits = 0;
	b->closed = 0;
}

static void buf_destroy(struct bounded_buf *b)
{
	free(b->items);
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->mutex);
}

static bool buf_empty(struct bounded_buf *b)
{
	return b->head == b->rear;			/* @check */
}

static void buf_put(struct bounded_buf *b, int item)
{
	pthread_mutex_lock(&b->mutex);			/* @lock */
	while (b->rear - b->head == SIZE) {
		b->put_waits++;
		pthread_cond_wait(&b->changed, &b->mutex); /* @lock */
	}
	b->items[b->rear % SIZE] = item;
	b->rear++;					/* @put */
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->mutex);		/* @unlock */
}

static int buf_get(struct bounded_buf *b)
{
	int item;

	pthread_mutex_lock(&b->mutex);			/* @lock */
	assert(b->head < b->rear);			/* @use */
	item = b->items[b->head % SIZE];
	b->head++;					/* @take */
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->mutex);		/* @unlock */
	return item;
}

/* Waits until there is something to take; false: nothing more will come. */
static bool buf_wait(struct bounded_buf *b)
{
	bool more;

	if (!buf_empty(b))				/* @check */
		return true;
	pthread_mutex_lock(&b->mutex);			/* @lock */
	while (b->head == b->rear && !b->closed)	/* @check2 */
		pthread_cond_wait(&b->changed, &b->mutex); /* @lock */
	more = b->head != b->rear;			/* @check2 */
	pthread_mutex_unlock(&b->mutex);		/* @unlock */
	return more;
}

static void buf_close(struct bounded_buf *b)
{
	pthread_mutex_lock(&b->mutex);
	b->closed = 1;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->mutex);
}

static void *producer(void *arg)
{
	int base = (int)(long)arg * 100;

	for (int i = 0; i < ITEMS; i++)
		buf_put(&buf, base + i);
	return NULL;
}

static void *consumer(void *arg)
{
	long me = (long)arg;

	while (buf_wait(&buf)) {			/* @asks */
		taken_sum[me] += buf_get(&buf);		/* @gets */
		taken[me]++;
	}
	return NULL;
}

int main(void)
{
	pthread_t producers[PRODUCERS], consumers[CONSUMERS];
	int items = 0;
	long sum = 0;

	buf_init(&buf, SIZE);
	for (long i = 0; i < CONSUMERS; i++)
		pthread_create(&consumers[i], NULL, consumer, (void *)i);
	for (long i = 0; i < PRODUCERS; i++)
		pthread_create(&producers[i], NULL, producer, (void *)i);
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i], NULL);
	buf_close(&buf);
	for (int i = 0; i < CONSUMERS; i++) {
		pthread_join(consumers[i], NULL);
		items += taken[i];
		sum += taken_sum[i];
	}
	printf("items %d, sum %ld\n", items, sum);
	buf_destroy(&buf);
	return 0;
}
