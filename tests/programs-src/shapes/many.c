/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 64 threads; with BUG one of them without the lock */
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int total;
static void *w(void *a)
{
	long i = (long)a;
#ifdef BUG
	if (i == 63) {
		int v = *(volatile int *)&total;
		*(volatile int *)&total = v + 1;
		return 0;
	}
#endif
	pthread_mutex_lock(&m);
	total++;
	pthread_mutex_unlock(&m);
	(void)i;
	return 0;
}
int main(void)
{
	pthread_t t[64];
	for (long i = 0; i < 64; i++)
		pthread_create(&t[i], 0, w, (void *)i);
	for (int i = 0; i < 64; i++)
		pthread_join(t[i], 0);
	assert(total == 64);
	return 0;
}
