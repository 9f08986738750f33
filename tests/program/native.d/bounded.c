/*
 * Producers and consumers of a small buffer wait for one condition, and each signals it: a signal that is meant for the
 * other side may wake one's own, and then all wait for ever.
 */
#include <pthread.h>

#define SPACE 2
#define PRODUCERS 2
#define CONSUMERS 3
#define PIECES 12

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int space = SPACE, filled;

static void move(int *from, int *to)
{
	pthread_mutex_lock(&lock);
	while (!*from)
		pthread_cond_wait(&changed, &lock);
	--*from;
	++*to;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
}

static void *produce(void *arg)
{
	for (int i = 0; i < PIECES / PRODUCERS; i++)
		move(&space, &filled);
	return arg;
}

static void *consume(void *arg)
{
	for (int i = 0; i < PIECES / CONSUMERS; i++)
		move(&filled, &space);
	return arg;
}

int main(void)
{
	pthread_t t[PRODUCERS + CONSUMERS];

	for (int i = 0; i < PRODUCERS + CONSUMERS; i++)
		pthread_create(&t[i], NULL, i < PRODUCERS ? produce : consume, NULL);
	for (int i = 0; i < PRODUCERS + CONSUMERS; i++)
		pthread_join(t[i], NULL);
	return 0;
}
