/*
 * A table of counters under a reader-writer lock. Who counts takes the address of
 * his counter under the lock and adds to it after letting go: the table may have
 * been copied by then, and what is added is lost. (Old tables are kept to the end.)
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define KEYS 8u
#define ROUNDS 20
#define ADDERS 2
#define GROWS 2

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_int *table;
static unsigned size;
static atomic_int *retired[GROWS];
static unsigned nretired;

static void grow(void)
{
	unsigned i, bigger;
	atomic_int *fresh;

	pthread_rwlock_wrlock(&lock);				/* @lock */
	bigger = size * 2;
	fresh = calloc(bigger, sizeof(*fresh));			/* @fresh */
	for (i = 0; i < size; i++)
		atomic_init(&fresh[i], atomic_load(&table[i]));	/* @copy */
	retired[nretired++] = table;
	table = fresh;						/* @publish */
	size = bigger;
	pthread_rwlock_unlock(&lock);				/* @unlock */
}

static atomic_int *counter(unsigned key)
{
	atomic_int *at;

	pthread_rwlock_rdlock(&lock);				/* @lock */
	at = &table[key % KEYS];				/* @address */
	pthread_rwlock_unlock(&lock);				/* @unlock */
	return at;
}

static void *adder(void *arg)
{
	unsigned first = (unsigned)(long)arg;

	for (unsigned i = 0; i < ROUNDS; i++)
		atomic_fetch_add(counter(first + i), 1);	/* @add */
	return NULL;
}

static void *grower(void *arg)
{
	for (int i = 0; i < GROWS; i++)
		grow();
	return arg;
}

int main(void)
{
	pthread_t threads[ADDERS + 1];
	int total = 0;

	size = KEYS;
	table = calloc(size, sizeof(*table));
	for (long i = 0; i < ADDERS; i++)
		pthread_create(&threads[i], NULL, adder, (void *)i);
	pthread_create(&threads[ADDERS], NULL, grower, NULL);
	for (int i = 0; i <= ADDERS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < size; i++)
		total += atomic_load(&table[i]);		/* @sum */
	while (nretired)
		free(retired[--nretired]);
	printf("total %d\n", total);
	fflush(stdout);
	assert(total == ADDERS * ROUNDS);			/* @audit */
	return 0;
}
