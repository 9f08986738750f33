/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a server that never ends; with BUG one thread without the lock */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int *volatile conf;
static volatile int served;
static void nap(void)
{
	struct timespec t = {0, 2000000};
	nanosleep(&t, 0);
}
static void *reload(void *a)
{
	for (;;) {
		pthread_mutex_lock(&m);
		int *o = conf;
		conf = NULL;
		int *n = malloc(4);
		*n = 1;
		conf = n;
		pthread_mutex_unlock(&m);
		(void)o;
		nap();
	}
	return a;
}
static void *serve(void *a)
{
	for (;;) {
#ifdef BUG
		served += *conf;
#else
		pthread_mutex_lock(&m);
		served += *conf;
		pthread_mutex_unlock(&m);
#endif
		nap();
	}
	return a;
}
int main(void)
{
	pthread_t t[2];
	conf = malloc(4);
	*conf = 1;
	pthread_create(&t[0], 0, reload, 0);
	pthread_create(&t[1], 0, serve, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	return 0;
}
