/*
 * Polling under a lock. A taker looks whether there is something, again and again, gives the lock back and then takes it:
 * by then another taker has had it.
 */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#define TAKERS 2
#define ITEMS 6

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int stock, finished;

static int wait_for_stock(void)
{
	for (;;) {
		int have, end;

		pthread_mutex_lock(&lock);
		have = stock > 0;	/* @look */
		end = finished;
		pthread_mutex_unlock(&lock);	/* @release */
		if (have || end)
			return have;
		sched_yield();
	}
}

static void *taker(void *arg)
{
	while (wait_for_stock()) {
		pthread_mutex_lock(&lock);
		stock--;	/* @take */
		assert(stock >= 0);	/* @assert */
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

static void *maker(void *arg)
{
	for (int i = 0; i < ITEMS; i++) {
		pthread_mutex_lock(&lock);
		stock++;	/* @make */
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	finished = 1;
	pthread_mutex_unlock(&lock);
	return arg;
}

int main(void)
{
	pthread_t t[TAKERS + 1];

	for (int i = 0; i < TAKERS; i++)
		pthread_create(&t[i], NULL, taker, NULL);
	pthread_create(&t[TAKERS], NULL, maker, NULL);
	for (int i = 0; i <= TAKERS; i++)
		pthread_join(t[i], NULL);
	printf("%d left\n", stock);
	return 0;
}
