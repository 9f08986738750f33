/*
 * Workers of a pool wait for one condition, and main signals once for each job. Whoever was woken looks
 * whether there is a job and takes it in a second section: another one may have taken it by then. Who does which job
 * depends on whom every signal before woke.
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#define WORKERS 3
#define JOBS 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int jobs, done[WORKERS];
static bool closed;

static bool wait_for_job(void)
{
	pthread_mutex_lock(&lock);
	while (!jobs && !closed)
		pthread_cond_wait(&more, &lock);
	bool any = jobs > 0;
	pthread_mutex_unlock(&lock);
	return any;
}

static void *worker(void *number)
{
	while (wait_for_job()) {
		pthread_mutex_lock(&lock);
		assert(jobs > 0);
		jobs--;
		pthread_mutex_unlock(&lock);
		++*(int *)number;
	}
	return NULL;
}

int main(void)
{
	pthread_t t[WORKERS];

	for (int i = 0; i < WORKERS; i++)
		pthread_create(&t[i], NULL, worker, &done[i]);
	for (int i = 0; i < JOBS; i++) {
		pthread_mutex_lock(&lock);
		jobs++;
		pthread_cond_signal(&more);
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	closed = true;
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
	return 0;
}
