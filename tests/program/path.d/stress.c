/*
 * Threads, signals and forks at once, quickly: queued signals hit whoever runs, threads send
 * some to themselves, each forks in the midst of it. Prints what must not get lost.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3
#define ROUNDS 40

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int queued, raised, children;
static int counter; /* under the lock */

static void on_queued(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	atomic_fetch_add(&queued, info->si_value.sival_int);
}

static void on_raised(int sig)
{
	(void)sig;
	atomic_fetch_add(&raised, 1);
}

static void make_child(int n)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		raise(SIGUSR1);
		_exit(n + (atomic_load(&raised) > 0));
	}
	while (waitpid(pid, &status, 0) < 0)
		; /* EINTR */
	if (WIFEXITED(status) && WEXITSTATUS(status) == n + 1)
		atomic_fetch_add(&children, 1);
}

static void *run(void *arg)
{
	int me = (int)(long)arg;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		counter++;
		pthread_mutex_unlock(&lock);
		if (i % 8 == me) {
			union sigval v = { .sival_int = 1 + i };

			raise(SIGUSR1);
			sigqueue(getpid(), SIGRTMIN, v);
		}
		if (i == 10 + me)
			make_child(10 * me);
	}
	return arg;
}

int main(void)
{
	struct sigaction q = { .sa_sigaction = on_queued, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigaction r = { .sa_handler = on_raised, .sa_flags = SA_RESTART };
	pthread_t t[THREADS];

	sigaction(SIGRTMIN, &q, NULL);
	sigaction(SIGUSR1, &r, NULL);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, run, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	printf("%d %d %d %d\n", counter, queued, raised, children);
	return 3;
}
