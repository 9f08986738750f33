/*
 * A request's input buffer that is recycled for the next request while it is read
 * (Apache Tomcat, InputBuffer).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char bytes[4] = "abc";
static volatile int position, limit = 3;
static int sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *reader(void *arg)
{
#ifdef CORRECT
	pthread_mutex_lock(&lock);
#endif
	if (position < limit) { /* @check */
		int at = position++;

		assert(at < limit); /* @use */
		sum += bytes[at];
	}
#ifdef CORRECT
	pthread_mutex_unlock(&lock);
#endif
	return arg;
}

static void *recycle(void *arg)
{
#ifdef CORRECT
	pthread_mutex_lock(&lock);
#endif
	limit = 0; /* @empty */
	position = 0;
#ifdef CORRECT
	pthread_mutex_unlock(&lock);
#endif
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, reader, NULL);
	pthread_create(&b, NULL, recycle, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d\n", sum);
	return 0;
}
