/* Calls through the PLT, signals, callbacks from libc, constant and relocated data. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STOP() __asm__ volatile("int3" ::: "memory")

int shared_count = 5;
const char *const relocated[] = { "one", "two" };
const int constant[] = { 1, 2, 3 };
int numbers[] = { 3, 1, 2 };
volatile int sink;

static int compare(const void *a, const void *b)
{
	if (sink++ == 0)
		STOP();
	return *(const int *)a - *(const int *)b;
}

static void on_signal(int sig)
{
	sink += sig;
	STOP();
}

__attribute__((noinline)) void exported(void)
{
	qsort(numbers, 3, sizeof *numbers, compare);
	sink++;
}

int main(void)
{
	signal(SIGUSR1, on_signal);
	exported();
	raise(SIGUSR1);
	puts(relocated[numbers[0] & 1]);
	return constant[0];
}
