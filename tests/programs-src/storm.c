/*
 * Locks and unlocks in two threads while a timer's signal handler posts and takes a
 * semaphore all the time. Prints how often the handler ran.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static sem_t sem;
static int handled;
static long count;

static void on_alarm(int sig)
{
	(void)sig;
	sem_post(&sem);
	sem_trywait(&sem);
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

static void *work(void *arg)
{
	for (long i = 0; i < count; i++) {
		pthread_mutex_lock(&m);
		pthread_mutex_unlock(&m);
	}
	return arg;
}

int main(int argc, char **argv)
{
	struct itimerval often = { { 0, 50 }, { 0, 50 } }, never;
	struct sigaction sa;
	pthread_t th;

	count = argc > 1 ? atol(argv[1]) : 100000;
	sem_init(&sem, 0, 0);
	memset(&sa, 0, sizeof sa);
	sa.sa_handler = on_alarm;
	sa.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	pthread_create(&th, NULL, work, NULL);
	work(NULL);
	pthread_join(th, NULL);
	memset(&never, 0, sizeof never);
	setitimer(ITIMER_REAL, &never, NULL);
	sa.sa_handler = SIG_IGN;
	sigaction(SIGALRM, &sa, NULL);
	printf("%d\n", handled);
	return 0;
}
