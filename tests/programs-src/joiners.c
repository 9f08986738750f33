/* Threads that make and join threads all the time: pthread_t values change hands at once. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int rounds;

static void *once(void *arg)
{
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	return arg;
}

static void *joiner(void *arg)
{
	pthread_t th;

	for (int i = 0; i < rounds; i++) {
		pthread_create(&th, NULL, once, NULL);
		pthread_join(th, NULL);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t th[8];

	rounds = argc > 1 ? atoi(argv[1]) : 100;
	for (int i = 0; i < 8; i++)
		pthread_create(&th[i], NULL, joiner, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(th[i], NULL);
	puts("done");
	return 0;
}
