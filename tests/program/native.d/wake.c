/*
 * Two threads wait for a condition and are woken at once; each writes its name
 * when it has the mutex again.
 */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int waiting, go;
static char order[8];
static int n;

static void *waiter(void *name)
{
	pthread_mutex_lock(&lock);
	waiting++;
	while (!go)
		pthread_cond_wait(&ready, &lock);
	order[n++] = *(const char *)name;
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, waiter, "a");
	pthread_create(&b, NULL, waiter, "b");
	for (int both = 0; !both;) {
		pthread_mutex_lock(&lock);
		both = waiting == 2;
		go = both;
		if (both)
			pthread_cond_broadcast(&ready);
		pthread_mutex_unlock(&lock);
	}
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	puts(order);
	return 0;
}
