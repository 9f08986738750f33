/*
 * Converters are looked up in a cache that another thread invalidates (XStream).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int cached_type, cached_converter;
static int registered = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int used;

static int lookup(int type)
{
	int c;

	pthread_mutex_lock(&lock);
	int hit = cached_type == type; /* @check */
#ifndef CORRECT
	pthread_mutex_unlock(&lock);
	pthread_mutex_lock(&lock);
#endif
	if (hit) {
		c = cached_converter; /* @take */
	} else {
		c = registered;
		cached_type = type;
		cached_converter = c;
	}
	pthread_mutex_unlock(&lock);
	return c;
}

static void *marshal(void *arg)
{
	for (int i = 0; i < 2; i++) {
		int c = lookup(9);

		assert(c != 0); /* @use */
		used += c;
	}
	return arg;
}

static void *register_converter(void *arg)
{
	pthread_mutex_lock(&lock);
	registered = 2;
	cached_converter = 0; /* @invalidate */
	cached_type = 0;
	pthread_mutex_unlock(&lock);
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, marshal, NULL);
	pthread_create(&b, NULL, register_converter, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d\n", used);
	return 0;
}
