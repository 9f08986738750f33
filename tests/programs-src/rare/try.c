/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The way for when the lock is taken is the wrong one, and hardly ever gone: it counts without the lock. */
#include "work.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static volatile long count;

static void *counter(void *arg)
{
	work((uintptr_t)arg, 100000 + 200000 * (unsigned)(uintptr_t)arg);
	if (!pthread_mutex_trylock(&m)) {
		count = count + 1;
		pthread_mutex_unlock(&m);
	} else {
		count = count + 1;
	}
	return NULL;
}

int main(void)
{
	THREADS(2, counter, counter);
	assert(count == 2);
	return 0;
}
