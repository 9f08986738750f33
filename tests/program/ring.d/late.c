// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A server that works well for a while, and then loses an update: late MILLISECONDS. Two threads serve requests under a lock; when the time
 * has come each adds to `total' without it, and somebody looks at the sum.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long served, total;
static int come;

static void *serves(void *arg)
{
	unsigned h = 1;

	while (!__atomic_load_n(&come, __ATOMIC_ACQUIRE)) {
		for (int i = 0; i < 10000; i++)
			h = h * 1664525 + 1013904223;
		pthread_mutex_lock(&lock);
		served += 1 + (h & 1);
		pthread_mutex_unlock(&lock);
		usleep(200);
	}
	long seen = total; /* @read */
	usleep(20000);
	total = seen + 1; /* @write */
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, serves, NULL);
	usleep((useconds_t)(argc > 1 ? atol(argv[1]) : 300) * 1000);
	__atomic_store_n(&come, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	assert(total == 2);
	printf("served\n");
	return 0;
}
