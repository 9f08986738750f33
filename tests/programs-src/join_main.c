/* The main thread ends by pthread_exit() and another one joins it, before or ("late") after that. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_t first;
static int late;

static void *joiner(void *arg)
{
	void *value;

	for (int i = 0; late && i < 100; i++)
		sched_yield();
	int err = pthread_join(first, &value);

	printf("joined: %d, value %ld\n", err, (long)value);
	exit(3);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;

	(void)argv;
	late = argc > 1;
	first = pthread_self();
	pthread_create(&t, NULL, joiner, NULL);
	pthread_exit((void *)42);
}
