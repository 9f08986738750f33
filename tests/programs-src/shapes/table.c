/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a table filled by one thread and read by another; with BUG the signal may come before anybody waits for it */
#include <pthread.h>
#define CELLS 5000
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int table[CELLS], sum, filled;
static void *reads(void *a)
{
	pthread_mutex_lock(&m);
#ifdef BUG
	pthread_cond_wait(&c, &m);
#else
	while (!filled)
		pthread_cond_wait(&c, &m);
#endif
	pthread_mutex_unlock(&m);
	for (int i = 0; i < CELLS; i++)
		sum += table[i];
	return a;
}
static void *fills(void *a)
{
	for (volatile int i = 0; i < 3000000; i++)
		;
	for (int i = 0; i < CELLS; i++)
		table[i] = i;
	pthread_mutex_lock(&m);
	filled = 1;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	return a;
}
int main(void)
{
	pthread_t t[2];
	pthread_create(&t[0], 0, reads, 0);
	pthread_create(&t[1], 0, fills, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	return 0;
}
