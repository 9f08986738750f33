/* Threads of all kinds, and processes: pthread, C11, timer threads, raw clone, cancel, fork, vfork, spawn. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static atomic_long sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long guarded;
static __thread long local;

static void *adder(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		local++;
		atomic_fetch_add(&sum, (long)arg);
		if (i % 50 == 0) {
			pthread_mutex_lock(&lock);
			guarded++;
			pthread_cond_broadcast(&cond);
			pthread_mutex_unlock(&lock);
		}
	}
	return (void *)local;
}

static int c11(void *arg)
{
	return (int)(long)adder(arg);
}

static void unlock(void *m)
{
	pthread_mutex_unlock(m);
}

static void *sleeper(void *arg)
{
	pthread_mutex_lock(&lock);
	pthread_cleanup_push(unlock, &lock);
	for (;;)
		pthread_cond_wait(&cond, &lock);
	pthread_cleanup_pop(1);
	return arg;
}

static atomic_int timer_ran;

static void on_timer(union sigval v)
{
	atomic_fetch_add(&timer_ran, v.sival_int);
}

static int raw_thread(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
	return 0;
}

static void raw_clone(void)
{
	static atomic_int ran;
	char *stack = malloc(65536);
	int status;
	/* shares memory, but is a process of its own */
	int pid = clone(raw_thread, stack + 65536, CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, &ran);

	waitpid(pid, &status, 0);
	printf("raw clone: ran %d status %d\n", ran, status);
	free(stack);
}

static void timer_thread(void)
{
	struct sigevent ev;
	struct itimerspec its = { { 0, 0 }, { 0, 1000000 } };
	timer_t id;

	memset(&ev, 0, sizeof ev);
	ev.sigev_notify = SIGEV_THREAD;
	ev.sigev_notify_function = on_timer;
	ev.sigev_value.sival_int = 1;
	timer_create(CLOCK_MONOTONIC, &ev, &id);
	timer_settime(id, 0, &its, NULL);
	while (!atomic_load(&timer_ran))
		usleep(1000);
	timer_delete(id);
	printf("timer thread ran\n");
}

static void processes(void)
{
	extern char **environ;
	char *argv[] = { "sh", "-c", "exit 7", NULL };
	int status = 0;
	volatile int total = 0;
	pid_t pid;

	for (int i = 0; i < 4; i++) {
		pid = fork();
		if (!pid) {
			pthread_t t;
			void *r;

			pthread_create(&t, NULL, adder, (void *)1);
			pthread_join(t, &r);
			_exit((int)((long)r / 1000) + i);
		}
		waitpid(pid, &status, 0);
		total += WEXITSTATUS(status);
	}
	pid = vfork();
	if (!pid)
		execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
	waitpid(pid, &status, 0);
	total = total * 10 + WEXITSTATUS(status);
	pid = vfork();
	if (!pid)
		_exit(3);
	waitpid(pid, &status, 0);
	total = total * 10 + WEXITSTATUS(status);
	posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ);
	waitpid(pid, &status, 0);
	total = total * 10 + WEXITSTATUS(status);
	printf("processes: %d, system %d\n", total, WEXITSTATUS(system("exit 9")));
}

int main(void)
{
	pthread_t t[16], victim;
	thrd_t c[2];
	void *r;
	long returned = 0;
	int v;

	setvbuf(stdout, NULL, _IONBF, 0);
	pthread_create(&victim, NULL, sleeper, NULL);
	for (int round = 0; round < 3; round++) {
		for (long i = 0; i < 16; i++)
			pthread_create(&t[i], NULL, adder, (void *)i);
		for (int i = 0; i < 16; i++) {
			pthread_join(t[i], &r);
			returned += (long)r;
		}
	}
	for (long i = 0; i < 2; i++)
		thrd_create(&c[i], c11, (void *)i);
	for (int i = 0; i < 2; i++) {
		thrd_join(c[i], &v);
		returned += v;
	}
	pthread_cancel(victim);
	pthread_join(victim, &r);
	printf("sum %ld guarded %ld returned %ld cancelled %d\n", atomic_load(&sum), guarded, returned,
	       r == PTHREAD_CANCELED);
	timer_thread();
	raw_clone();
	processes();
	return 0;
}
