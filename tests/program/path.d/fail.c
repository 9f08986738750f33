/* Ways to end: argv[1] names one. */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int *pointer;
static volatile int zero;

static int recurse(int n)
{
	volatile char space[2000];

	space[0] = (char)n;
	return n < 0 ? 0 : recurse(n + 1) + space[0];
}

/* To the process: in a thread that ends all signals are blocked, it is for another one. */
static void *sends_and_ends(void *arg)
{
	kill(getpid(), SIGSEGV);
	return arg;
}

static void *in_thread(void *arg)
{
	*pointer = 1;
	return arg;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pthread_t t;

	if (!strcmp(how, "segv"))
		*pointer = 1;
	if (!strcmp(how, "null"))
		((void (*)(void))pointer)();
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "assert"))
		assert(argc == 17);
	if (!strcmp(how, "fpe"))
		return argc / zero;
	if (!strcmp(how, "ill"))
		__builtin_trap();
	if (!strcmp(how, "overflow"))
		return recurse(0);
	if (!strcmp(how, "noncanonical"))
		*(volatile int *)0x8000000000000000ul = 1;
	if (!strcmp(how, "kill"))
		kill(getpid(), SIGSEGV);
	if (!strcmp(how, "term"))
		raise(SIGTERM);
	if (!strcmp(how, "int3"))
		__asm__("int3");
	if (!strcmp(how, "hlt"))
		__asm__("hlt");
	if (!strcmp(how, "thread") && !pthread_create(&t, NULL, in_thread, NULL))
		pthread_join(t, NULL);
	if (!strcmp(how, "sent") && !pthread_create(&t, NULL, sends_and_ends, NULL))
		pthread_join(t, NULL);
	if (!strcmp(how, "atomic") && !pthread_create(&t, NULL, (void *(*)(void *))abs, NULL)) {
		pthread_join(t, NULL);
		__atomic_fetch_add((int *)pointer, 1, __ATOMIC_SEQ_CST);
	}
	if (!strcmp(how, "_exit"))
		_exit(6);
	return 0;
}
