/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A pool of workers and 200 tasks; two of the tasks add to the same total without a lock, and must run at the same instant. */
#include "work.h"

#define TASKS 200

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int next;
static long totals[TASKS];

static void run(int n)
{
	long *total = &totals[n == 140 ? 60 : n]; /* both of one customer */

	uint64_t x = work((uint64_t)n, 3000);
	*(volatile long *)total = *(volatile long *)total + 1 + (long)(x & 0);
}

static void *worker(void *arg)
{
	(void)arg;
	for (;;) {
		pthread_mutex_lock(&m);
		/* The two are taken one after the other, by whoever comes. */
		int n = next++, task = n == 61 ? 140 : n == 140 ? 61 : n;
		pthread_mutex_unlock(&m);
		if (n >= TASKS)
			return NULL;
		run(task);
	}
}

int main(void)
{
	THREADS(4, worker, worker, worker, worker);
	assert(totals[60] == 2);
	return 0;
}
