/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A little of everything that the shim makes system calls for, for program/safe-faults: the same output and status each time.
 *   faults all        threads, signals, memory, fork, exec, enough locking to fill chunks; ends with 7
 *   faults crash      threads; then one of them dies of SIGSEGV
 *   faults abort      a handler for SIGABRT that looks at the mask, then abort()
 *   faults again      what `all` executes
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int seen;
static long sum;
static int rounds = 12000;

static void on_signal(int sig)
{
	__atomic_add_fetch(&seen, sig, __ATOMIC_SEQ_CST);
}

static void *worker(void *arg)
{
	uint64_t x = (uintptr_t)arg;

	for (int i = 0; i < rounds; i++) {
		pthread_mutex_lock(&lock);
		x = x * 6364136223846793005u + 1442695040888963407u;
		sum += (long)(x >> 33 & 1 ? i : 1);
		pthread_mutex_unlock(&lock);
		if (i % 1000 == 0)
			pthread_kill(pthread_self(), SIGUSR1);
	}
	return NULL;
}

static void threads(int n)
{
	pthread_t t[8];

	for (int i = 0; i < n; i++) {
		int err = pthread_create(&t[i], NULL, worker, (void *)(uintptr_t)(i + 1));

		if (err)
			printf("thread %d: %s\n", i, strerror(err));
	}
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	printf("sum %ld, signals %d\n", sum, seen);
}

static void memory(void)
{
	char *p = mmap(NULL, 64 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t old = { 0 }, st = { .ss_sp = p, .ss_size = 32 << 10 };

	printf("alternate stack: %d, none before: %d\n", sigaltstack(&st, &old), old.ss_flags == SS_DISABLE);
	for (int i = 0; i < 4; i++)
		printf("mprotect %d\n", mprotect(p + (48 << 10), 4096, i % 2 ? PROT_READ | PROT_WRITE : PROT_READ));
	st.ss_flags = SS_DISABLE;
	printf("back: %d, %d\n", sigaltstack(&st, NULL), munmap(p, 64 << 10));
}

static void children(const char *self)
{
	for (int i = 0; i < 2; i++) {
		fflush(stdout);
		pid_t child = fork();

		if (!child) {
			rounds = 100;
			if (i)
				execl(self, self, "again", (char *)NULL);
			threads(1);
			fflush(stdout);
			_exit(3);
		}
		int status = 0;
		pid_t got = waitpid(child, &status, 0);

		printf("child: %d, status %x\n", got == child, status);
	}
}

static void spawned(char *self)
{
	char *argv[] = { self, "again", NULL };
	int status = 0, err;
	pid_t child;

	fflush(stdout);
	err = posix_spawn(&child, self, NULL, NULL, argv, environ);
	child = err ? -1 : waitpid(child, &status, 0);
	printf("spawned: %d, status %x\n", err, status);
	child = vfork();
	if (!child)
		_exit(4);
	waitpid(child, &status, 0);
	printf("vfork: status %x\n", status);
}

static void on_abort(int sig)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	printf("abort handler: %d, blocked %d\n", sig == SIGABRT, sigismember(&now, SIGABRT));
	fflush(stdout);
}

static void *dies(void *arg)
{
	*(volatile int *)arg = 1;
	return arg;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "all";
	pthread_t t;

	signal(SIGUSR1, on_signal);
	signal(SIGABRT, on_abort);
	if (!strcmp(what, "again")) {
		rounds = 50;
		threads(1);
		puts("again");
		return 5;
	}
	if (strcmp(what, "all"))
		rounds = 500;
	threads(3);
	if (!strcmp(what, "crash")) {
		fflush(stdout);
		pthread_create(&t, NULL, dies, NULL);
		pthread_join(t, NULL);
	}
	if (!strcmp(what, "abort"))
		abort();
	memory();
	children(argv[0]);
	spawned(argv[0]);
	threads(2);
	puts("done");
	return 7;
}
