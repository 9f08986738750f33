/*
 * Double free. Reader and timer may both close a connection; each looks whether
 * it is closed and then closes it. glibc notices the second free and aborts.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define CONNECTIONS 4
#define BUFFER 8192	/* large enough for the checks of the ordinary bins */

struct connection {
	bool closed;
	char *buffer;
	pthread_mutex_t lock;
	int goodbyes;
};

static struct connection connections[CONNECTIONS];
static int closed_by[2];

static void count_goodbye(struct connection *c)
{
	pthread_mutex_lock(&c->lock);		/* @lock */
	c->goodbyes++;
	pthread_mutex_unlock(&c->lock);		/* @unlock */
}

static void close_connection(struct connection *c, int who)
{
	if (c->closed)				/* @check */
		return;
	count_goodbye(c);
	c->closed = true;			/* @close */
	free(c->buffer);			/* @free */
	closed_by[who]++;
}

static void *reader(void *arg)
{
	(void)arg;
	for (int i = 0; i < CONNECTIONS; i++)
		close_connection(&connections[i], 0);
	return NULL;
}

static void *timer(void *arg)
{
	(void)arg;
	for (int i = CONNECTIONS - 1; i >= 0; i--)
		close_connection(&connections[i], 1);
	return NULL;
}

int main(void)
{
	pthread_t a, b;

	for (int i = 0; i < CONNECTIONS; i++) {
		connections[i].buffer = malloc(BUFFER);
		pthread_mutex_init(&connections[i].lock, NULL);
	}
	pthread_create(&a, NULL, reader, NULL);
	pthread_create(&b, NULL, timer, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("closed %d\n", closed_by[0] + closed_by[1]);
	return 0;
}
