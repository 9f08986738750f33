/*
 * A thread pool, 64 workers. A worker takes a job under the lock and counts
 * itself as active only after it has let go of it; main, which waits for "no job
 * left and nobody active", can slip through between the two.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#define WORKERS 64
#define JOBS 128

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static int queued;		/* jobs 0 .. queued-1 still wait */
static bool stop;
static atomic_int active;
static atomic_int done;

static unsigned job(int n)
{
	unsigned sum = n;

	for (int i = 0; i < 200; i++)
		sum = (sum ^ (sum >> 3)) * 2654435761u;
	return sum;
}

static void *worker(void *arg)
{
	unsigned *sum = arg;

	for (;;) {
		int n;

		pthread_mutex_lock(&lock);			/* @lock */
		while (queued == 0 && !stop)
			pthread_cond_wait(&more, &lock);	/* @lock */
		if (queued == 0) {
			pthread_mutex_unlock(&lock);
			return NULL;
		}
		n = --queued;					/* @take */
		pthread_mutex_unlock(&lock);			/* @unlock */

		atomic_fetch_add(&active, 1);			/* @active */
		*sum += job(n);
		atomic_fetch_add(&done, 1);			/* @done */
		pthread_mutex_lock(&lock);			/* @lock */
		atomic_fetch_sub(&active, 1);			/* @passive */
		pthread_cond_signal(&idle);			/* @signal */
		pthread_mutex_unlock(&lock);			/* @unlock */
	}
}

static void submit(int jobs)
{
	pthread_mutex_lock(&lock);
	queued += jobs;
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&lock);
}

static void wait_until_idle(void)
{
	pthread_mutex_lock(&lock);				/* @lock */
	while (queued > 0 || atomic_load(&active) > 0)		/* @check */
		pthread_cond_wait(&idle, &lock);		/* @lock */
	pthread_mutex_unlock(&lock);				/* @unlock */
}

int main(void)
{
	pthread_t threads[WORKERS];
	unsigned sums[WORKERS] = {0}, sum = 0;
	int count;

	for (int i = 0; i < WORKERS; i++)
		pthread_create(&threads[i], NULL, worker, &sums[i]);
	submit(JOBS);
	wait_until_idle();
	count = atomic_load(&done);				/* @read */
	assert(count == JOBS);					/* @audit */

	pthread_mutex_lock(&lock);
	stop = true;
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < WORKERS; i++) {
		pthread_join(threads[i], NULL);
		sum += sums[i];
	}
	printf("done %d, sum %08x\n", count, sum);
	return 0;
}
