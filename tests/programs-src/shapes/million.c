/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a million atomic updates before the bug */
#include <assert.h>
#include <pthread.h>
static _Atomic long n;
static int *volatile p;
static int x = 1;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *a_(void *a)
{
	for (int i = 0; i < 500000; i++)
		n++;
#ifdef BUG
	if (p)
		x += *p;
#else
	pthread_mutex_lock(&m);
	if (p)
		x += *p;
	pthread_mutex_unlock(&m);
#endif
	return a;
}
static void *b_(void *a)
{
	for (int i = 0; i < 500000; i++)
		n++;
	pthread_mutex_lock(&m);
	p = 0;
	pthread_mutex_unlock(&m);
	return a;
}
int main(void)
{
	pthread_t t[2];
	p = &x;
	pthread_create(&t[0], 0, a_, 0);
	pthread_create(&t[1], 0, b_, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	return n != 1000000;
}
