/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a wait with a time limit; with BUG its end is not looked at */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready, data;
static void *waits(void *a)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 30000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&m);
	int e = 0;
	while (!ready && e != ETIMEDOUT)
		e = pthread_cond_timedwait(&c, &m, &t);
#ifndef BUG
	if (ready)
#endif
		assert(data == 5);
	pthread_mutex_unlock(&m);
	return a;
}
static void *sets(void *a)
{
	pthread_mutex_lock(&m);
	data = 5;
	ready = 1;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	return a;
}
int main(void)
{
	pthread_t t[2];
	pthread_create(&t[0], 0, waits, 0);
	pthread_create(&t[1], 0, sets, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	return 0;
}
