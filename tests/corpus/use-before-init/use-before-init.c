/*
 * Order violation at start-up. The worker reports progress to its owner, which
 * main makes known only after it has started the worker.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct owner {
	pthread_t thread;
	int result;
	int done;
};

static struct owner *owner;

static void *worker(void *arg)
{
	int rounds = *(int *)arg;
	unsigned long sum = 3;

	for (int i = 0; i < rounds; i++) {
		sum = sum * sum % 1000003;
		sum = sum * i % 999983;
		sum = sum * sum % 1000033 + 2;
	}
	owner->result = sum;			/* @use */
	owner->done = 1;
	return NULL;
}

int main(void)
{
	struct owner *o = calloc(1, sizeof(*o));
	int rounds = 400000;

	if (pthread_create(&o->thread, NULL, worker, &rounds))	/* @create */
		return 1;
	owner = o;				/* @init */
	pthread_join(o->thread, NULL);
	printf("result %d, done %d\n", o->result, o->done);
	free(o);
	return 0;
}
