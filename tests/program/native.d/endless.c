/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two values that ought to be there together. A reader that finds none fails; one that finds half of
 * it waits for ever, in a call of which nobody can say that it never returns.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NAME(x) ".globl " #x "\n" #x ": "

static volatile int first, second;

static __attribute__((noinline)) int load_first(void)
{
	int x;

	__asm__ volatile(NAME(read_first) "movl %1, %0" : "=r"(x) : "m"(first));
	return x;
}

static __attribute__((noinline)) int load_second(void)
{
	int x;

	__asm__ volatile(NAME(read_second) "movl %1, %0" : "=r"(x) : "m"(second));
	return x;
}

static void *writer(void *arg)
{
	__asm__ volatile(NAME(write_first) "movl %1, %0" : "=m"(first) : "r"(1));
	__asm__ volatile(NAME(write_second) "movl %1, %0" : "=m"(second) : "r"(1));
	return arg;
}

static void *reader(void *pipe_end)
{
	int a = load_first(), b = load_second();
	char byte;

	if (!a)
		abort();
	while (!b && read(*(int *)pipe_end, &byte, 1) >= 0)
		;
	return NULL;
}

int main(void)
{
	pthread_t a, b;
	int ends[2];

	if (pipe(ends))
		return 2;
	pthread_create(&a, NULL, writer, NULL);
	pthread_create(&b, NULL, reader, &ends[0]);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	puts("both");
	return 0;
}
