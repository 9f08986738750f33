/* SPDX-License-Identifier: GPL-2.0-or-later */
/* two threads read standard input; with BUG they add without the lock */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long sum;
static void *reads(void *a)
{
	char line[64];
	for (;;) {
		pthread_mutex_lock(&m);
		char *l = fgets(line, sizeof line, stdin);
		int n = 0;
		if (l)
			sscanf(line, "%d", &n);
#ifdef BUG
		pthread_mutex_unlock(&m);
		if (!l)
			return a;
		sum += n;
#else
		sum += n;
		pthread_mutex_unlock(&m);
		if (!l)
			return a;
#endif
	}
}
int main(void)
{
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], 0, reads, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	printf("%ld\n", sum);
	assert(sum == 60);
	return 0;
}
