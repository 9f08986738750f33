/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 64 threads, each with a number of its own: unless two of them take one at the same instant. */
#include "work.h"

#define N 64

static volatile int next;
static int taken[N + 1];

static void *one(void *arg)
{
	(void)arg;
	int n = next;
	next = n + 1;
	__atomic_fetch_add(&taken[n], 1, __ATOMIC_SEQ_CST);
	work((uint64_t)n, 100000);
	return NULL;
}

int main(void)
{
	pthread_t t[N];

	for (int i = 0; i < N; i++)
		pthread_create(&t[i], NULL, one, NULL);
	for (int i = 0; i < N; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < N; i++)
		assert(taken[i] == 1);
	return 0;
}
