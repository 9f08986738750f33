/*
 * A bounded buffer of semaphores, both of which start at zero: the one for the free slots ought to start at their number.
 * Fails in every order: the first to put waits for a slot, the first to take for an item.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#define SLOTS 4
#define ITEMS 9
#define END -1

struct buffer {
	int items[SLOTS];
	unsigned in, out;
	sem_t empty, filled;
	pthread_mutex_t lock;
};

static struct buffer input, output;

static void buffer_init(struct buffer *b)
{
	b->in = b->out = 0;
	sem_init(&b->empty, 0, 0);
	sem_init(&b->filled, 0, 0);
	pthread_mutex_init(&b->lock, NULL);
}

static void buffer_put(struct buffer *b, int item)
{
	sem_wait(&b->empty);			/* @putwait */
	pthread_mutex_lock(&b->lock);
	b->items[b->in++ % SLOTS] = item;
	pthread_mutex_unlock(&b->lock);
	sem_post(&b->filled);
}

static int buffer_get(struct buffer *b)
{
	int item;

	sem_wait(&b->filled);			/* @getwait */
	pthread_mutex_lock(&b->lock);
	item = b->items[b->out++ % SLOTS];
	pthread_mutex_unlock(&b->lock);
	sem_post(&b->empty);
	return item;
}

static void *source(void *arg)
{
	(void)arg;
	for (int i = 1; i <= ITEMS; i++)
		buffer_put(&input, i);		/* @sends */
	buffer_put(&input, END);
	return NULL;
}

static void *doubler(void *arg)
{
	int n;

	(void)arg;
	while ((n = buffer_get(&input)) != END)	/* @takes */
		buffer_put(&output, 2 * n);
	buffer_put(&output, END);
	return NULL;
}

int main(void)
{
	pthread_t a, b;
	long sum = 0;
	int n;

	buffer_init(&input);
	buffer_init(&output);
	pthread_create(&a, NULL, source, NULL);
	pthread_create(&b, NULL, doubler, NULL);
	while ((n = buffer_get(&output)) != END)	/* @collects */
		sum += n;
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("sum %ld\n", sum);
	return 0;
}
