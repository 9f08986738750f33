/* SPDX-License-Identifier: GPL-2.0-or-later */
/* slots behind a semaphore; with BUG claimed in two steps */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
static sem_t s;
static _Atomic int used[2];
static _Atomic int users[2];
static int claim(void)
{
	for (;;)
		for (int i = 0; i < 2; i++) {
#ifdef BUG
			if (!atomic_load(&used[i])) {
				atomic_store(&used[i], 1);
				return i;
			}
#else
			if (!atomic_exchange(&used[i], 1))
				return i;
#endif
		}
}
static void *worker(void *a)
{
	sem_wait(&s);
	int i = claim();
	assert(atomic_fetch_add(&users[i], 1) == 0);
	atomic_fetch_sub(&users[i], 1);
	atomic_store(&used[i], 0);
	sem_post(&s);
	return a;
}
int main(void)
{
	pthread_t t[3];
	sem_init(&s, 0, 2);
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, worker, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	return 0;
}
