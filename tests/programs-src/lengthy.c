/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lengthy ROUNDS [CALLS]: an honest run of that length with branches, locks and system calls; then main takes away what the worker uses. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long rounds, calls;
static int finished;
static struct box {
	long sum;
} *box;

static unsigned long work(unsigned long x)
{
	for (long i = 0; i < rounds; i++) {
		for (int k = 0; k < 50; k++) {
			x = x * 6364136223846793005ul + 1442695040888963407ul;
			if (x >> 62 == 1)
				x ^= 77;
		}
		if (i % 8 == 0) {
			pthread_mutex_lock(&m);
			box->sum += (long)(x & 1);
			pthread_mutex_unlock(&m);
		}
		if (calls && i % calls == 0)
			getppid();
	}
	return x;
}

static void *worker(void *arg)
{
	unsigned long x = work((unsigned long)arg);

	pthread_mutex_lock(&m);
	finished++;
	pthread_mutex_unlock(&m);
	sleep(1); /* so that main is first in every run: it is length that is looked at here */
	box->sum += (long)(x & 1);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;
	int all = 0;

	rounds = argc > 1 ? atol(argv[1]) : 1000;
	calls = argc > 2 ? atol(argv[2]) : 0;
	box = calloc(1, sizeof *box);
	pthread_create(&t, NULL, worker, (void *)3);
	printf("%lu\n", work(5) & 1);
	while (!all) {
		pthread_mutex_lock(&m);
		all = finished;
		pthread_mutex_unlock(&m);
		usleep(1000);
	}
	box = NULL;
	pthread_join(t, NULL);
	return 0;
}
