// SPDX-License-Identifier: GPL-2.0-or-later
// Workers that wait again after each batch, and a stop flag; BUG: the flag is set without the lock, and its wake-up is lost.
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int left, stop;

static void *eat(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	while (left || !stop) {
		if (left)
			left--;
		else
			pthread_cond_wait(&changed, &lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(void)
{
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, eat, NULL);
	pthread_mutex_lock(&lock);
	left = 2;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
#ifndef BUG
	pthread_mutex_lock(&lock);
#endif
	stop = 1;
	pthread_cond_broadcast(&changed);
#ifndef BUG
	pthread_mutex_unlock(&lock);
#endif
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return 0;
}
