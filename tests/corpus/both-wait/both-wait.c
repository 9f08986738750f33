/*
 * Two who each wait for the other to begin. Ping wants to hear pong before it speaks, and pong ping: no order of the
 * two helps.
 */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int heard[2];

static void *speaker(void *arg)
{
	int me = *(int *)arg;

	pthread_mutex_lock(&lock);
	while (!heard[1 - me])
		pthread_cond_wait(&changed, &lock);	/* @wait */
	heard[me] = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(void)
{
	pthread_t t[2];
	int who[2] = { 0, 1 };

	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, speaker, &who[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	printf("%d %d\n", heard[0], heard[1]);
	return 0;
}
