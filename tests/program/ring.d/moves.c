// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads that compute, sleep, wait, read, map, come and go, and take signals, so that a checkpoint finds them anywhere.
 * moves KIND MILLISECONDS [fail]: what it prints does not depend on time; with `fail` an assertion fails at the end.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static int over, pipes[2];
static long turns, posted, taken;
static volatile sig_atomic_t ticks;
static __thread long mine;
static const char *kind;

static int ended(void)
{
	return __atomic_load_n(&over, __ATOMIC_ACQUIRE);
}

static void check(int good, const char *what)
{
	if (!good) {
		printf("wrong: %s\n", what);
		fflush(stdout);
		_exit(3);
	}
}

/* Vector registers hold something across everything here. */
static void *computes(void *arg)
{
	double x = 1, y = (double)(intptr_t)arg;
	uint32_t h = 7;

	for (long i = 0; !ended(); i++) {
		for (int k = 0; k < 300; k++) {
			h = h * 1664525 + 1013904223;
			if (h & 0x8000)
				x = x * 0.75 + 1;
			y += 0.5;
		}
		check(x < 4.1, "a double");
		mine++;
		pthread_mutex_lock(&lock);
		turns++;
		if (turns % 16 == 0)
			pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
		if (i % 32 == 0)
			usleep(50);
	}
	check(y == (double)(intptr_t)arg + 150.0 * (double)mine, "another double");
	return NULL;
}

static void *waits(void *arg)
{
	double d = 3.25;

	pthread_mutex_lock(&lock);
	while (!over) {
		pthread_cond_wait(&changed, &lock);
		d += 1, d -= 1;
	}
	pthread_mutex_unlock(&lock);
	check(d == 3.25, "a double across a wait");
	return arg;
}

static void *reads(void *arg)
{
	char bytes[64];
	long n = 0, got;

	while ((got = read(pipes[0], bytes, sizeof bytes)) > 0)
		n += got;
	check(got == 0, "a read");
	printf("read %s\n", n > 0 ? "some" : "none");
	return arg;
}

static void *naps(void *arg)
{
	struct timespec until = { 0, 3000000 }, left;

	while (!ended()) {
		check(nanosleep(&until, &left) == 0 || errno == EINTR, "a nap");
		check(poll(NULL, 0, 1) >= 0 || errno == EINTR, "a poll");
	}
	return arg;
}

static void *posts(void *arg)
{
	while (!ended()) {
		__atomic_add_fetch(&posted, 1, __ATOMIC_SEQ_CST);
		sem_post(&sem);
		usleep(100);
	}
	sem_post(&sem);
	return arg;
}

static void *takes(void *arg)
{
	while (!ended()) {
		while (sem_wait(&sem))
			check(errno == EINTR, "a semaphore");
		taken++;
	}
	return arg;
}

static void *maps(void *arg)
{
	uint32_t seed = 3;

	while (!ended()) {
		size_t n = 4096ul * (1 + (seed = seed * 1664525 + 1013904223) % 64);
		char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		char *q;

		check(p != MAP_FAILED, "a mapping");
		memset(p, (int)n / 4096, n);
		q = mremap(p, n, 2 * n, MREMAP_MAYMOVE);
		check(q != MAP_FAILED && q[n - 1] == (char)(n / 4096) && !q[n], "a mapping that grew");
		madvise(q, n, MADV_DONTNEED);
		check(!q[0] && !q[n - 1], "memory given back");
		munmap(q, 2 * n);
		free(memset(malloc(n / 3), 1, n / 3));
	}
	return arg;
}

static void *brief(void *arg)
{
	mine = (intptr_t)arg;
	usleep((useconds_t)(mine % 3) * 200);
	return (void *)(intptr_t)(mine * 2);
}

static void *creates(void *arg)
{
	for (intptr_t i = 0; !ended(); i++) {
		pthread_t t[3];
		void *back;

		for (int k = 0; k < 3; k++)
			check(!pthread_create(&t[k], NULL, brief, (void *)(i + k)), "a thread");
		for (int k = 0; k < 3; k++) {
			pthread_join(t[k], &back);
			check((intptr_t)back == 2 * (i + k), "what a thread returned");
		}
	}
	return arg;
}

static void *forks(void *arg)
{
	while (!ended()) {
		int status;
		pid_t pid = fork();

		if (!pid)
			_exit(7);
		check(pid > 0, "a fork");
		while (waitpid(pid, &status, 0) < 0)
			check(errno == EINTR, "a wait");
		check(WIFEXITED(status) && WEXITSTATUS(status) == 7, "a status");
		check(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "no other child");
		usleep(1000);
	}
	return arg;
}

static void on_tick(int sig, siginfo_t *si, void *context)
{
	double d = 0.5;
	int kept = errno;

	(void)si, (void)context;
	for (int i = 0; i < 50; i++)
		d = d * 0.5 + 0.5;
	ticks += sig == SIGALRM && d > 0;
	errno = kept;
}

static void begin_ticks(void)
{
	struct sigaction sa = { .sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct itimerval every = { { 0, 700 }, { 0, 700 } };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

static const struct {
	const char *kind;
	void *(*routine[4])(void *);
} kinds[] = {
	{ "compute", { computes, computes, computes } }, { "wait", { computes, waits, waits, reads } },
	{ "sleep", { naps, posts, takes, computes } },    { "map", { maps, computes } },
	{ "create", { creates, creates } },               { "fork", { forks, computes } },
	{ "tick", { computes, naps, reads, waits } },     { "alone", { NULL } },
};

static void alone(long ms)
{
	struct timespec from, now;
	double d = 1;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		for (int i = 0; i < 5000; i++)
			d = d * 0.999 + (i & 1);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
	check(d > 1, "a sum");
}

/* Becomes the same program again, so many times, while other threads run: a signal that is still under way would meet the new one. */
static void becomes(char **argv, int times)
{
	char left[16];
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, computes, NULL);
	usleep(3000 + (unsigned)times % 7 * 300);
	if (!times) {
		printf("it is still there\n");
		fflush(stdout);
		_exit(0);
	}
	snprintf(left, sizeof left, "%d", times - 1);
	execl("/proc/self/exe", argv[0], "become", left, NULL);
	_exit(4);
}

int main(int argc, char **argv)
{
	long ms = argc > 2 ? atol(argv[2]) : 200, passed;
	pthread_t t[4];
	int n = 0;

	kind = argc > 1 ? argv[1] : "compute";
	if (!strcmp(kind, "become"))
		becomes(argv, argc > 2 ? atoi(argv[2]) : 0);
	check(!pipe(pipes) && !sem_init(&sem, 0, 0), "a pipe");
	if (!strcmp(kind, "tick"))
		begin_ticks();
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		for (; !strcmp(kinds[k].kind, kind) && n < 4 && kinds[k].routine[n]; n++)
			pthread_create(&t[n], NULL, kinds[k].routine[n], (void *)(intptr_t)n);
	if (!strcmp(kind, "alone"))
		alone(ms);
	for (passed = 0; n && passed < ms; passed += 10) {
		struct timespec ten = { 0, 10000000 };

		while (nanosleep(&ten, &ten))
			;
		check(write(pipes[1], "xyz", 3) == 3, "a write");
	}
	pthread_mutex_lock(&lock);
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	close(pipes[1]);
	while (n)
		pthread_join(t[--n], NULL);
	check(taken <= posted + 1, "a count");
	printf("%s is done\n", kind);
	fflush(stdout);
	if (argc > 3)
		assert(turns < 0 && "the end");
	return 0;
}
