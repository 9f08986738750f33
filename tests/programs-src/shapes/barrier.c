/* SPDX-License-Identifier: GPL-2.0-or-later */
/* phases of three threads; with BUG without the barrier between them */
#include <assert.h>
#include <pthread.h>
static pthread_barrier_t b;
static int v[3], w[3];
static void *phase(void *a)
{
	long i = (long)a;
	v[i] = 10 + i;
#ifndef BUG
	pthread_barrier_wait(&b);
#endif
	w[i] = v[(i + 1) % 3];
	pthread_barrier_wait(&b);
	assert(w[0] + w[1] + w[2] == 33);
	return 0;
}
int main(void)
{
	pthread_t t[3];
	pthread_barrier_init(&b, 0, 3);
	for (long i = 0; i < 3; i++)
		pthread_create(&t[i], 0, phase, (void *)i);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	return 0;
}
