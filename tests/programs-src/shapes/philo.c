/* SPDX-License-Identifier: GPL-2.0-or-later */
/* five philosophers; with BUG who all begin on the left */
#include <pthread.h>
#define N 5
static pthread_mutex_t f[N];
static int eaten[N];
static void *p(void *a)
{
	long i = (long)a;
	int l = i, r = (i + 1) % N;
#ifndef BUG
	if (l > r) {
		int t = l;
		l = r;
		r = t;
	}
#endif
	pthread_mutex_lock(&f[l]);
	pthread_mutex_lock(&f[r]);
	eaten[i]++;
	pthread_mutex_unlock(&f[r]);
	pthread_mutex_unlock(&f[l]);
	return 0;
}
int main(void)
{
	pthread_t t[N];
	for (int i = 0; i < N; i++)
		pthread_mutex_init(&f[i], 0);
	for (long i = 0; i < N; i++)
		pthread_create(&t[i], 0, p, (void *)i);
	for (int i = 0; i < N; i++)
		pthread_join(t[i], 0);
	return 0;
}
