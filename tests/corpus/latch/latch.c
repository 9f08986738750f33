/* A latch for the workers' start, which counts one more than there are. */
#include <pthread.h>
#include <stdio.h>

#define WORKERS 3
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t zero = PTHREAD_COND_INITIALIZER;
static int left;
static long work[WORKERS];

static void latch_init(int n)
{
	left = n;
}

static void latch_down(void)
{
	pthread_mutex_lock(&m);
	if (--left == 0)
		pthread_cond_broadcast(&zero);
	pthread_mutex_unlock(&m);
}

static void latch_wait(void)
{
	pthread_mutex_lock(&m);
	while (left > 0)
		pthread_cond_wait(&zero, &m);	/* @wait */
	pthread_mutex_unlock(&m);
}

static void *worker(void *arg)
{
	long *w = arg;

	for (int i = 0; i < 1000; i++)
		*w += i;
	latch_down();
	return NULL;
}

int main(void)
{
	pthread_t t;

	latch_init(WORKERS + 1);	/* @count */
	for (int i = 0; i < WORKERS; i++) {
		pthread_create(&t, NULL, worker, &work[i]);
		pthread_detach(t);
	}
	latch_wait();
	printf("%ld\n", work[0] + work[1] + work[2]);
	return 0;
}
