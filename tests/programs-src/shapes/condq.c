/* SPDX-License-Identifier: GPL-2.0-or-later */
/* two consumers of a queue; with BUG they do not look again after they were woken */
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int items, got;
static void *consumer(void *a)
{
	pthread_mutex_lock(&m);
#ifdef BUG
	if (items == 0)
#else
	while (items == 0)
#endif
		pthread_cond_wait(&c, &m);
	items--;
	got++;
	assert(items >= 0);
	pthread_mutex_unlock(&m);
	return a;
}
static void *producer(void *a)
{
	for (int i = 0; i < 2; i++) {
		pthread_mutex_lock(&m);
		items++;
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
	}
	return a;
}
int main(void)
{
	pthread_t t[3];
	pthread_create(&t[0], 0, consumer, 0);
	pthread_create(&t[1], 0, consumer, 0);
	pthread_create(&t[2], 0, producer, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	return got != 2;
}
