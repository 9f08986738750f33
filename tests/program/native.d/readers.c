/*
 * Lookups count their hits, and hold the lock for reading only: several are inside at the same time, and hits get lost.
 */
#include <assert.h>
#include <pthread.h>

#define THREADS 4
#define LOOKUPS 3

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int hits;

static void *look(void *arg)
{
	for (int i = 0; i < LOOKUPS; i++) {
		pthread_rwlock_rdlock(&lock);
		hits++;
		pthread_rwlock_unlock(&lock);
	}
	return arg;
}

int main(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, look, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert(hits == THREADS * LOOKUPS);
	return 0;
}
