/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a condition; with BUG changed and signalled without the lock */
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static volatile int ready;
static void *waits(void *a)
{
	pthread_mutex_lock(&m);
	while (!ready)
		pthread_cond_wait(&c, &m);
	pthread_mutex_unlock(&m);
	return a;
}
static void *wakes(void *a)
{
#ifdef BUG
	ready = 1;
	pthread_cond_signal(&c);
#else
	pthread_mutex_lock(&m);
	ready = 1;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
#endif
	return a;
}
int main(void)
{
	pthread_t t[2];
	pthread_create(&t[0], 0, waits, 0);
	pthread_create(&t[1], 0, wakes, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	return 0;
}
