/*
 * A lock taken for reading twice. The sum of a table is made under the read
 * lock, by a function that takes it once more; a writer that comes in between
 * waits for the first, and the second waits for the writer.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

#define CELLS 4
#define SUMS 5
#define PUTS 20

static pthread_rwlock_t lock;
static int table[CELLS];
static long sums;

static int lookup(int cell)
{
	pthread_rwlock_rdlock(&lock);			/* @again */
	int value = table[cell];
	pthread_rwlock_unlock(&lock);
	return value;
}

static void *adder(void *arg)
{
	(void)arg;
	for (int i = 0; i < SUMS; i++) {
		pthread_rwlock_rdlock(&lock);		/* @read */
		for (int cell = 0; cell < CELLS; cell++)
			sums += lookup(cell);
		pthread_rwlock_unlock(&lock);
	}
	return NULL;
}

static void *writer(void *arg)
{
	(void)arg;
	for (int i = 0; i < PUTS; i++) {
		pthread_rwlock_wrlock(&lock);		/* @write */
		table[i % CELLS]++;
		pthread_rwlock_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	pthread_rwlockattr_t kind;
	pthread_t a, b;

	pthread_rwlockattr_init(&kind);
	pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&lock, &kind);
	pthread_create(&a, NULL, adder, NULL);
	pthread_create(&b, NULL, writer, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("sums %ld\n", sums);
	return 0;
}
