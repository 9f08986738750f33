/*
 * Null after check. Workers look whether a configuration is loaded and use it
 * under the lock; a reloader takes it away and puts a new one in. The check is
 * outside the lock, so the configuration can be gone when it is used.
 */
#include <pthread.h>
#include <stdio.h>

#define WORKERS 4
#define JOBS 12
#define RELOADS 3

struct config {
	int limit;
	int generation;
};

static struct config slots[RELOADS + 1] = {{10, 0}, {20, 1}, {30, 2}, {40, 3}};
static struct config *config = &slots[0];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long used[WORKERS];
static int skipped;

static void *worker(void *arg)
{
	long me = (long)arg;

	for (int i = 0; i < JOBS; i++) {
		if (config == NULL) {			/* @check */
			__atomic_fetch_add(&skipped, 1, __ATOMIC_RELAXED);
			continue;
		}
		pthread_mutex_lock(&lock);		/* @lock */
		used[me] += config->limit;		/* @use */
		pthread_mutex_unlock(&lock);		/* @unlock */
	}
	return NULL;
}

static void *reloader(void *arg)
{
	(void)arg;
	for (int i = 1; i <= RELOADS; i++) {
		pthread_mutex_lock(&lock);		/* @lock */
		config = NULL;				/* @drop */
		pthread_mutex_unlock(&lock);		/* @unlock */

		slots[i].generation = i;

		pthread_mutex_lock(&lock);		/* @lock */
		config = &slots[i];			/* @load */
		pthread_mutex_unlock(&lock);		/* @unlock */
	}
	return NULL;
}

int main(void)
{
	pthread_t reload, workers[WORKERS];
	long sum = 0;

	for (long i = 0; i < WORKERS; i++)
		pthread_create(&workers[i], NULL, worker, (void *)i);
	pthread_create(&reload, NULL, reloader, NULL);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	pthread_join(reload, NULL);
	for (int i = 0; i < WORKERS; i++)
		sum += used[i];
	printf("used %ld, skipped %d\n", sum, skipped);
	return 0;
}
