/*
 * Order violation at shutdown. main hands the small half of the work to a
 * thread, does the large half itself, and tears the results down without
 * waiting for the thread.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SMALL 2000
#define LARGE 600000

struct results {
	unsigned small, large;
	int finished;
};

static struct results *results;

static unsigned work(unsigned long state, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		state = state * state % 1000003;
		state = state * i % 999983;
		state = state * state % 1000033 + 2;
	}
	return state;
}

static void *helper(void *arg)
{
	unsigned sum = work(*(unsigned *)arg, SMALL);

	results->small = sum;			/* @use */
	results->finished++;
	return NULL;
}

static void shut_down(void)
{
	struct results *r = results;

	results = NULL;				/* @clear */
	free(r);
}

int main(void)
{
	static unsigned seed = 5;
	pthread_t thread;
	unsigned check;

	results = calloc(1, sizeof(*results));
	pthread_create(&thread, NULL, helper, &seed);
	pthread_detach(thread);
	results->large = work(seed + 1, LARGE);
	printf("small %08x, large %08x\n", results->small, results->large);
	shut_down();
	check = work(seed + 2, LARGE);
	printf("check %08x\n", check);
	return 0;
}
