/*
 * A shared data source that is closed while somebody takes a connection from it
 * (Apache DBCP, SharedPoolDataSource).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pool {
	int idle;
};

static struct pool *pool;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int closed;

static void *get_connection(void *arg)
{
	pthread_mutex_lock(&lock);
	int usable = !closed && pool; /* @check */
#ifndef CORRECT
	pthread_mutex_unlock(&lock);
	pthread_mutex_lock(&lock);
#endif
	if (usable)
		pool->idle--; /* @use */
	pthread_mutex_unlock(&lock);
	return arg;
}

static void *close_source(void *arg)
{
	pthread_mutex_lock(&lock);
	closed = 1;
	pool = NULL; /* @close */
	pthread_mutex_unlock(&lock);
	return arg;
}

int main(void)
{
	pthread_t a, b;

	static struct pool only = { 3 };

	pool = &only;
	pthread_create(&a, NULL, get_connection, NULL);
	pthread_create(&b, NULL, close_source, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("closed %d\n", closed);
	return 0;
}
