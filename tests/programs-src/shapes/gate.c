// SPDX-License-Identifier: GPL-2.0-or-later
// Credits handed out in batches to whoever waits; BUG: the wait is not repeated, and a credit is taken that another had.
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int credits;

static void *spender(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		pthread_mutex_lock(&lock);
#ifdef BUG
		if (!credits)
#else
		while (!credits)
#endif
			pthread_cond_wait(&more, &lock);
		credits--;
		assert(credits >= 0);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, spender, NULL);
	for (int i = 0; i < 2; i++) {
		pthread_mutex_lock(&lock);
		credits += 2;
		pthread_cond_broadcast(&more);
		pthread_mutex_unlock(&lock);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return 0;
}
