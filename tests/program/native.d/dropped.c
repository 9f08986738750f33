/*
 * Workers end as soon as they are told to, whether there are jobs left or not: main, which fails then, was early. It
 * does not fail when it lets those it wakes go first.
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#define WORKERS 3
#define JOBS 6

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int jobs, done;
static bool stop;

static void *worker(void *arg)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!jobs && !stop)
			pthread_cond_wait(&more, &lock);
		if (stop)
			break;
		jobs--;
		done++;
	}
	pthread_mutex_unlock(&lock);
	return arg;
}

int main(void)
{
	pthread_t t[WORKERS];

	for (int i = 0; i < WORKERS; i++)
		pthread_create(&t[i], NULL, worker, NULL);
	for (int i = 0; i < JOBS; i++) {
		pthread_mutex_lock(&lock);
		jobs++;
		pthread_mutex_unlock(&lock);
		pthread_cond_signal(&more);
	}
	pthread_mutex_lock(&lock);
	stop = true;
	pthread_mutex_unlock(&lock);
	pthread_cond_broadcast(&more);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
	assert(done == JOBS);
	return 0;
}
