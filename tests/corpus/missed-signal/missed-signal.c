/*
 * Missed signal. The worker waits for "go" without looking at anything, because
 * main takes longer to load its table than the worker takes to start. Usually.
 */
#include <pthread.h>
#include <stdio.h>

#define ENTRIES 16384

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go = PTHREAD_COND_INITIALIZER;
static unsigned table[ENTRIES];
static unsigned sum;

static void *worker(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);		/* @waitlock */
	pthread_cond_wait(&go, &lock);		/* @wait */
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < ENTRIES; i++)
		sum += table[i];
	return NULL;
}

static void load_table(void)
{
	unsigned long state = 7;

	for (int i = 0; i < ENTRIES; i++) {
		for (int k = 0; k < 32; k++) {
			state = state * state % 1000003;
			state = state * i % 999983;
			state = state * state % 1000033 + 2;
		}
		table[i] = state % 256;
	}
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, worker, NULL);
	load_table();
	pthread_mutex_lock(&lock);		/* @siglock */
	pthread_cond_signal(&go);		/* @signal */
	pthread_mutex_unlock(&lock);		/* @unlock */
	pthread_join(thread, NULL);
	printf("sum %u\n", sum);
	return 0;
}
