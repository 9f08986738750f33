/* Fails in a second thread in the way named by its argument. */
#include "preload/csched.h"

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static volatile int zero;

static void segv(void) { *(volatile int *)8 = 1; }
static void bus(void)
{
	char name[] = "/tmp/csched-bus-XXXXXX";
	int fd = mkstemp(name);
	unlink(name);
	*(volatile char *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) = 1;
}
static void fpe(void) { zero = 100 / zero; }
static void ill(void) { __asm__ volatile("ud2"); }
static void trap(void) { __asm__ volatile("int3"); }
static void do_abort(void) { abort(); }
static void double_free(void)
{
	char *volatile p = malloc(8);
	free(p);
	free(p);
}
static void do_assert(void) { assert(zero == 1); }
static int deeper(int n) { volatile char b[1000]; b[0] = (char)n; return deeper(n + 1) + b[0]; }
static void overflow(void) { deeper(0); }
static void masked(void)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	segv();
}
static void sent(void)
{
	kill(getpid(), SIGSEGV);
	for (;;)
		pause();
}
static void status(void) { exit(3); }
static void quick(void) { _exit(3); }
static void user(void) { csched_fail("I give up"); }
static void fine(void) { }
static void relock(void)
{
	pthread_mutex_lock(&m);
	pthread_mutex_lock(&m);
}
static void lost(void)
{
	pthread_mutex_lock(&m);
	pthread_cond_wait(&c, &m);
}
static void hang(void)
{
	for (;;)
		pause();
}
static void spin(void)
{
	for (;;)
		zero = 0;
}

static const struct {
	const char *name;
	void (*fn)(void);
} ways[] = {
	{ "segv", segv }, { "bus", bus }, { "fpe", fpe }, { "ill", ill }, { "trap", trap },
	{ "abort", do_abort }, { "double-free", double_free }, { "assert", do_assert },
	{ "overflow", overflow }, { "masked", masked }, { "sent", sent }, { "status", status },
	{ "quick", quick }, { "user", user }, { "fine", fine }, { "relock", relock },
	{ "lost", lost }, { "hang", hang }, { "spin", spin },
};

static void *fail(void *name)
{
	for (unsigned i = 0; i < sizeof ways / sizeof ways[0]; i++)
		if (!strcmp(name, ways[i].name))
			ways[i].fn();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t th;

	if (argc < 2)
		return 2;
	pthread_create(&th, NULL, fail, argv[1]);
	pthread_join(th, NULL);
	return 0;
}
