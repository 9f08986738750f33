/* THREADS threads, each PAIRS times lock/unlock on one of eight mutexes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX 1000
static pthread_mutex_t m[8];
static long pairs;

static void *work(void *arg)
{
	pthread_mutex_t *mine = &m[(long)arg % 8];

	for (long i = 0; i < pairs; i++) {
		pthread_mutex_lock(mine);
		pthread_mutex_unlock(mine);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 2;
	pthread_t th[MAX];

	pairs = argc > 2 ? atol(argv[2]) : 1000;
	if (n > MAX)
		return 2;
	for (long i = 0; i < n; i++)
		if (pthread_create(&th[i], NULL, work, (void *)i))
			return 1;
	for (long i = 0; i < n; i++)
		pthread_join(th[i], NULL);
	puts("done");
	return 0;
}
