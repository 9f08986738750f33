/*
 * Plain accesses of every kind at memory that two threads share, so that each
 * of them may get a ticket; what they do to registers and flags is checked, and
 * so is that a fault at one of them lets the other thread go on.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define ROUNDS 200

static struct {
	uint64_t word[8];
} line __attribute__((aligned(64))); /* one line, one shard: mine and the other's */
static volatile uint64_t racy, seen;
static __thread sigjmp_buf out;
static volatile uint64_t *volatile nowhere;

static void on_fault(int sig)
{
	(void)sig;
	siglongjmp(out, 1);
}

static int wrong(const char *what)
{
	printf("wrong: %s\n", what);
	return 1;
}

/* Flags and registers pass through; p is this thread's own word. */
static int forms(uint64_t *p)
{
	uint64_t rcx = 11, rdx = 22, got = 0, flags = 0;
	int bad = 0;

	*p = 5;
	__asm__ volatile("stc; mov %[p], %%rcx; mov (%%rcx), %%rcx; adc $0, %%rdx"
			 : "=&c"(rcx), "+d"(rdx) : [p] "a"(p) : "memory");
	bad |= rcx == 5 && rdx == 23 ? 0 : wrong("a load keeps the carry, into rcx");
	__asm__ volatile("stc; movq $7, (%[p]); adcq $1, (%[p]); mov (%[p]), %[got]"
			 : [got] "=&r"(got) : [p] "r"(p) : "memory", "cc");
	bad |= got == 9 ? 0 : wrong("a store keeps the carry, an addition takes it");
	__asm__ volatile("std; pushf; cld; pop %[f]; cmpl $9, (%[p]); sete %b[got]; movzbl (%[p]), %%edx"
			 : [got] "+r"(got), [f] "=&r"(flags), "=&d"(rdx) : [p] "r"(p) : "memory", "cc");
	bad |= (got & 255) == 1 && rdx == 9 ? 0 : wrong("a comparison with memory");
	__asm__ volatile("xor %k[got], %k[got]; cmovne (%[p]), %[got]; cmove (%[p]), %%rdx"
			 : [got] "=&r"(got), "+d"(rdx) : [p] "r"(p) : "memory", "cc");
	bad |= got == 0 && rdx == 9 ? 0 : wrong("conditional moves");
	__asm__ volatile("movq (%[p]), %%xmm15; paddq %%xmm15, %%xmm15; movq %%xmm15, (%[p]);"
			 "movq (%[p]), %%xmm1; paddq (%[a]), %%xmm1; movq %%xmm1, %[got]"
			 : [got] "=r"(got) : [p] "r"(p), [a] "r"(&line)
			 : "memory", "xmm15", "xmm1");
	bad |= *p == 18 ? 0 : wrong("vector moves");
	__asm__ volatile("mov $20, %%eax; xor %%edx, %%edx; divl (%[p]); incb (%[p]); pushq (%[p]); popq 8(%[p])"
			 : "=&a"(got), "=&d"(rdx) : [p] "r"(p) : "memory", "cc");
	bad |= got == 1 && rdx == 2 && p[1] == 19 ? 0 : wrong("division, push and pop");
	return bad;
}

static void *run(void *arg)
{
	uint64_t *p = arg;
	intptr_t bad = 0;
	void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < ROUNDS; i++) {
		bad |= forms(p);
		racy = racy + 1; /* updates get lost, and are the program's own business */
		racy += 3;
		if (racy > seen)
			seen = racy;
		nowhere = (uint64_t *)((char *)hole + ((uintptr_t)&line & 4095));
		if (!sigsetjmp(out, 1)) {
			*nowhere = racy;
			bad |= wrong("no fault");
		}
	}
	return (void *)bad;
}

int main(void)
{
	struct sigaction a = { .sa_handler = on_fault };
	pthread_t t[2];
	void *bad;
	int any = 0;

	sigaction(SIGSEGV, &a, NULL);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, run, &line.word[4 * i]);
	for (int i = 0; i < 2; i++) {
		pthread_join(t[i], &bad);
		any |= bad != NULL;
	}
	printf("%s, %lu\n", any ? "bad" : "good", (unsigned long)racy);
	return any;
}
