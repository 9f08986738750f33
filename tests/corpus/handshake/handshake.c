/*
 * A hand-over that works, of something wrong. The server waits for the request as it should, under the lock and in a
 * loop; the request is one too long for it in every order. The handshake is not to blame.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define LONGEST 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ready;	/* guarded by lock */
static int length;	/* handed over with it */

static void *client(void *arg)
{
	int n = 0;

	for (int i = 0; i < LONGEST; i++)
		n += i % 4 != 5;
	pthread_mutex_lock(&lock);
	length = n;
	ready = 1;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
	return arg;
}

int main(void)
{
	pthread_t t;

	pthread_create(&t, NULL, client, NULL);
	pthread_mutex_lock(&lock);
	while (!ready)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	assert(length < LONGEST);	/* @assert */
	pthread_join(t, NULL);
	printf("%d\n", length);
	return 0;
}
