/* A request to flush is forgotten when it comes while the flusher is at it: the flag is reset behind the work. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cv = PTHREAD_COND_INITIALIZER;
static int wanted, over;
static int dirty, clean;

static void *flusher(void *arg)
{
	pthread_mutex_lock(&m);
	for (;;) {
		while (!wanted && !over)
			pthread_cond_wait(&cv, &m);
		if (!wanted)
			break;
		int upto = dirty;	/* @upto */
		pthread_mutex_unlock(&m);
		for (volatile int i = 0; i < 200; i++)
			;
		pthread_mutex_lock(&m);
		clean = upto;	/* @clean */
		wanted = 0;	/* @reset */
	}
	pthread_mutex_unlock(&m);
	return arg;
}

static void touch(void)
{
	pthread_mutex_lock(&m);
	dirty++;	/* @dirty */
	wanted = 1;	/* @want */
	pthread_cond_signal(&cv);
	pthread_mutex_unlock(&m);
}

int main(void)
{
	pthread_t t;

	pthread_create(&t, NULL, flusher, NULL);
	for (int i = 0; i < 6; i++)
		touch();
	pthread_mutex_lock(&m);
	over = 1;
	pthread_cond_signal(&cv);
	pthread_mutex_unlock(&m);
	pthread_join(t, NULL);
	assert(clean == dirty);	/* @assert */
	return 0;
}
