/*
 * A path that depends on the schedule. A job that finds the service open is done
 * at once; one that finds it closed goes to the backlog, which nobody drains
 * any more. The order in which it does not fail takes the other branch.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define JOBS 5

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int closed;
static int done, backlog;

static void submit(int job)
{
	pthread_mutex_lock(&lock);		/* @lock */
	if (!closed)				/* @check */
		done += job > 0;
	else
		backlog++;			/* @queue */
	pthread_mutex_unlock(&lock);		/* @unlock */
}

static void *client(void *arg)
{
	(void)arg;
	for (int i = 1; i <= JOBS; i++)
		submit(i);
	return NULL;
}

static unsigned prepare_shutdown(void)
{
	unsigned long sum = 3;

	for (int i = 0; i < 600000; i++) {
		sum = sum * sum % 1000003;
		sum = sum * i % 999983;
		sum = sum * sum % 1000033 + 2;
	}
	return sum;
}

int main(void)
{
	pthread_t thread;
	unsigned sum;

	pthread_create(&thread, NULL, client, NULL);
	sum = prepare_shutdown();
	pthread_mutex_lock(&lock);		/* @lock */
	closed = 1;				/* @close */
	pthread_mutex_unlock(&lock);		/* @unlock */
	pthread_join(thread, NULL);	/* @join */
	printf("done %d, sum %08x\n", done, sum);
	fflush(stdout);
	assert(backlog == 0);			/* @audit */
	return 0;
}
