/*
 * Double-checked initialisation. The table's pointer is published inside the
 * lock but before the table is filled; whoever looks without the lock takes an
 * empty table for a ready one.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 3

struct table {
	int entries;
	int squares[16];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table *table;
static int sums[THREADS];

static void fill(struct table *t)
{
	for (int i = 0; i < 16; i++)
		t->squares[i] = i * i;
	t->entries = 16;			/* @fill */
}

static struct table *instance(void)
{
	if (table)				/* @check */
		return table;
	pthread_mutex_lock(&lock);
	if (!table) {
		table = calloc(1, sizeof(*table));	/* @publish */
		fill(table);
	}
	pthread_mutex_unlock(&lock);
	return table;
}

static void *user(void *arg)
{
	struct table *t = instance();

	assert(t->entries == 16);		/* @use */
	for (int i = 0; i < t->entries; i++)
		sums[(long)arg] += t->squares[i];
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, user, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("sums %d %d %d\n", sums[0], sums[1], sums[2]);
	free(table);
	return 0;
}
