/*
 * A buffered stream that is closed by another thread while it is read
 * (JDK, BufferedInputStream).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int *volatile buffer;
static int count = 2, at;
static int got;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *reading(void *arg)
{
	pthread_mutex_lock(&lock);
	if (buffer) { /* @check */
		if (at < count)
			got += buffer[at++]; /* @use */
	}
	pthread_mutex_unlock(&lock);
	return arg;
}

static void *closing(void *arg)
{
#ifdef CORRECT
	pthread_mutex_lock(&lock);
#endif
	buffer = NULL; /* @close */
#ifdef CORRECT
	pthread_mutex_unlock(&lock);
#endif
	return arg;
}

int main(void)
{
	pthread_t a, b;

	static int data[2] = { 4, 5 };

	buffer = data;
	pthread_create(&a, NULL, reading, NULL);
	pthread_create(&b, NULL, closing, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("got %d\n", got);
	return 0;
}
