/*
 * Whoever finds no lock file makes one, and goes on as the only one. Several may find none. On the ways that the threads
 * took it fails in every order of what they do to memory.
 */
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define THREADS 3

static char name[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int owners;

static void *start(void *arg)
{
	if (!access(name, F_OK))
		return arg;
	close(open(name, O_WRONLY | O_CREAT, 0600));
	pthread_mutex_lock(&lock);
	owners++;
	pthread_mutex_unlock(&lock);
	return arg;
}

int main(void)
{
	pthread_t t[THREADS];

	snprintf(name, sizeof name, "lockfile.%d", getpid());
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, start, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	unlink(name);
	assert(owners == 1);
	return 0;
}
