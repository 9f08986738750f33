/* Many short threads, joined and detached, a few at a time; some make children of their own. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static sem_t gone;

static void *once(void *arg)
{
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	return arg;
}

static void *detached(void *arg)
{
	once(arg);
	sem_post(&gone);
	return arg;
}

static void *parent(void *arg)
{
	pthread_t th;

	pthread_create(&th, NULL, once, NULL);
	pthread_join(th, NULL);
	return arg;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100;
	pthread_attr_t attr;

	sem_init(&gone, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < rounds; i++) {
		pthread_t a, b, c;

		pthread_create(&a, NULL, once, NULL);
		pthread_create(&b, NULL, parent, NULL);
		pthread_create(&c, &attr, detached, NULL);
		pthread_join(a, NULL);
		pthread_join(b, NULL);
		sem_wait(&gone);
	}
	puts("done");
	return 0;
}
