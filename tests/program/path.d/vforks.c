/* Threads that make children in the process's own memory all the time, beside one that does not. */
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3
#define ROUNDS 12

extern char **environ;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long ended[256], rounds;
static _Atomic int busy = THREADS;

static int status_of(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static pid_t child(int round)
{
	char *arguments[] = { "true", NULL };
	volatile int written = 0;
	pid_t pid;

	if (round % 4 == 3)
		return posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environ) ? -1 : pid;
	pid = vfork();
	if (!pid) {
		written = round;
		_exit(written % 4 + 7);
	}
	return pid;
}

static void *spawns(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		int status = status_of(child(i));

		pthread_mutex_lock(&lock);
		ended[status]++;
		pthread_mutex_unlock(&lock);
	}
	busy--;
	return arg;
}

static void *counts(void *arg)
{
	while (busy) {
		pthread_mutex_lock(&lock);
		rounds++;
		pthread_mutex_unlock(&lock);
		free(malloc((size_t)rounds % 1000));
		usleep(100);
	}
	return arg;
}

int main(void)
{
	pthread_t t[THREADS + 1];

	for (int i = 0; i <= THREADS; i++)
		pthread_create(&t[i], NULL, i < THREADS ? spawns : counts, NULL);
	for (int i = 0; i <= THREADS; i++)
		pthread_join(t[i], NULL);
	printf("%ld %ld %ld %ld\n", ended[0], ended[7], ended[8], ended[9]);
	return 0;
}
