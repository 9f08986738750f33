/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The flag of a condition is set without the mutex, once: who has looked and does not wait yet misses the signal. */
#include "work.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static volatile int ready;

static void *waiter(void *arg)
{
	work((uintptr_t)arg, 400000);
	pthread_mutex_lock(&m);
	while (!ready)
		pthread_cond_wait(&c, &m);
	pthread_mutex_unlock(&m);
	return NULL;
}

static void *setter(void *arg)
{
	work((uintptr_t)arg, 700000);
	ready = 1;
	pthread_cond_signal(&c);
	return NULL;
}

int main(void)
{
	THREADS(2, waiter, setter);
	return 0;
}
