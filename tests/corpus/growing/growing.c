/*
 * "Reading is safe": a table grows under its lock, into new memory, and a reader that
 * takes no lock goes on reading the old one after it was freed.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES 300
#define ROUNDS 100

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	int *v;
	size_t n, room;
} volatile table;

static void push(int value)
{
	pthread_mutex_lock(&lock);			/* @lock */
	if (table.n == table.room) {
		size_t room = table.room * 2;
		int *old = table.v, *v = malloc(room * sizeof(*v));

		memcpy(v, old, table.n * sizeof(*v));	/* @copy */
		table.v = v;				/* @switch */
		table.room = room;
		free(old);				/* @free */
	}
	table.v[table.n] = value;			/* @enter */
	table.n++;					/* @count */
	pthread_mutex_unlock(&lock);			/* @unlock */
}

static long total(void)
{
	long sum = 0;
	size_t n = table.n;				/* @length */
	const int *v = table.v;				/* @start */

	for (size_t i = 0; i < n; i++) {
		if (v[i] < 0 || v[i] > ENTRIES) {	/* @look */
			fprintf(stderr, "growing: entry %zu is %d\n", i, v[i]);
			abort();			/* @bad */
		}
		sum += v[i];				/* @look */
	}
	return sum;
}

static void *reader(void *arg)
{
	long sum = 0;

	for (int i = 0; i < ROUNDS; i++)
		sum += total();
	printf("read%s\n", sum < 0 ? " less than nothing" : "");
	return arg;
}

int main(void)
{
	pthread_t thread;

	table.room = 4;
	table.v = calloc(table.room, sizeof(*table.v));
	pthread_create(&thread, NULL, reader, NULL);
	for (int i = 0; i < ENTRIES; i++)
		push(i);
	pthread_join(thread, NULL);
	free(table.v);
	return 0;
}
