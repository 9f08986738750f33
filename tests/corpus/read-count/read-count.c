/*
 * A table under a reader-writer lock. Who looks something up counts that, holding the lock for reading only: two
 * readers may be inside at once, and of two counts one is lost. The statistics at the end do not add up.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define READERS 3
#define READS 20
#define ROWS 8

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int table[ROWS];
static long reads;

static int get(int i)
{
	int v;

	pthread_rwlock_rdlock(&lock);
	v = table[i % ROWS];
	reads++; /* @count */
	pthread_rwlock_unlock(&lock);
	return v;
}

static void set(int i, int v)
{
	pthread_rwlock_wrlock(&lock);
	table[i % ROWS] = v;
	pthread_rwlock_unlock(&lock);
}

static void *reader(void *arg)
{
	long sum = 0;

	for (int i = 0; i < READS; i++)
		sum += get(i);
	*(long *)arg = sum;
	return NULL;
}

static void *writer(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROWS; i++)
		set(i, i);
	return NULL;
}

int main(void)
{
	pthread_t r[READERS], w;
	long sum[READERS];

	pthread_create(&w, NULL, writer, NULL);
	for (int i = 0; i < READERS; i++)
		pthread_create(&r[i], NULL, reader, &sum[i]);
	for (int i = 0; i < READERS; i++)
		pthread_join(r[i], NULL);
	pthread_join(w, NULL);
	printf("%ld reads\n", reads);
	assert(reads == READERS * READS); /* @assert */
	return 0;
}
