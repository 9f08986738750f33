/*
 * A hash table that is read while it grows (JDK, Hashtable).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int *table;
static int capacity = 2;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int seen;

static void *rehash(void *arg)
{
	int *bigger = calloc(4, sizeof *bigger);

	pthread_mutex_lock(&lock);
	bigger[0] = table[0];
	bigger[1] = table[1];
	capacity = 4; /* @capacity */
	table = bigger; /* @table */
	pthread_mutex_unlock(&lock);
	return arg;
}

static void *get(void *arg)
{
#ifdef CORRECT
	pthread_mutex_lock(&lock);
#endif
	int n = capacity; /* @read */
	int *t = table; /* @look */

	assert(n == 2 || t[-1] != 2); /* @use: what lies in front of the small table is its size */
	seen = t[7 % n % 2];
#ifdef CORRECT
	pthread_mutex_unlock(&lock);
#endif
	return arg;
}

int main(void)
{
	pthread_t a, b;

	static int small[3] = { 2, 7, 8 };

	table = small + 1;
	pthread_create(&a, NULL, rehash, NULL);
	pthread_create(&b, NULL, get, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d of %d\n", seen, capacity);
	return 0;
}
