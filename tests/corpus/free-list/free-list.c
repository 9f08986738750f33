/*
 * Free numbers as a list inside an array. Taking one reads the head and puts the next in its place, in two steps: two
 * callers get the same number, and each thinks that it is its own.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define CALLERS 3
#define ROUNDS 8
#define SLOTS 8

static int head, next[SLOTS];
static volatile int taken[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int take(void)
{
	int n = head;		/* @head */

	if (n >= 0)
		head = next[n];	/* @take */
	return n;
}

static void give(int n)
{
	pthread_mutex_lock(&lock);
	next[n] = head;		/* @link */
	head = n;		/* @give */
	pthread_mutex_unlock(&lock);
}

static void *caller(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		int n = take();

		if (n < 0)
			continue;
		assert(!taken[n]);	/* @assert */
		taken[n] = 1;		/* @mark */
		taken[n] = 0;		/* @clear */
		give(n);
	}
	return arg;
}

int main(void)
{
	pthread_t t[CALLERS];

	for (int i = 0; i < SLOTS; i++)
		next[i] = i + 1 < SLOTS ? i + 1 : -1;
	for (int i = 0; i < CALLERS; i++)
		pthread_create(&t[i], NULL, caller, NULL);
	for (int i = 0; i < CALLERS; i++)
		pthread_join(t[i], NULL);
	printf("head %d\n", head);
	return 0;
}
