/*
 * Three stages and a flag for the end. The middle one says that it is done when it has taken the last item, before it has
 * handed it on: the last stage looks, finds nothing more to come, and leaves one behind.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define ITEMS 6

struct queue {
	pthread_mutex_t lock;
	int item[ITEMS], n, taken, closed;
};

static struct queue first = { .lock = PTHREAD_MUTEX_INITIALIZER }, second = { .lock = PTHREAD_MUTEX_INITIALIZER };
static int printed;

static void put(struct queue *q, int item)
{
	pthread_mutex_lock(&q->lock);
	q->item[q->n++] = item;	/* @put */
	pthread_mutex_unlock(&q->lock);
}

static void close_queue(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = 1;	/* @close */
	pthread_mutex_unlock(&q->lock);
}

/* 1: an item; 0: none now; -1: none any more. */
static int get(struct queue *q, int *item)
{
	int r;

	pthread_mutex_lock(&q->lock);
	r = q->taken < q->n ? 1 : q->closed ? -1 : 0;	/* @look */
	if (r > 0)
		*item = q->item[q->taken++];
	pthread_mutex_unlock(&q->lock);
	return r;
}

static void *parse(void *arg)
{
	for (int i = 0; i < ITEMS; i++)
		put(&first, i);
	close_queue(&first);
	return arg;
}

static void *format(void *arg)
{
	int item, done = 0;

	while (done < ITEMS) {
		if (get(&first, &item) <= 0)
			continue;
		if (++done == ITEMS)
			close_queue(&second);	/* @early */
		put(&second, item * item);	/* @late */
	}
	return arg;
}

static void *print(void *arg)
{
	int item, r;

	while ((r = get(&second, &item)) >= 0)	/* @end */
		printed += r;
	return arg;
}

int main(void)
{
	pthread_t t[3];

	pthread_create(&t[0], NULL, parse, NULL);
	pthread_create(&t[1], NULL, format, NULL);
	pthread_create(&t[2], NULL, print, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	assert(printed == ITEMS);	/* @audit */
	printf("%d printed\n", printed);
	return 0;
}
