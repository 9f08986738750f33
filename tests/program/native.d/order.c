/*
 * A reader that must not come before the writer. The places that matter have
 * names, so that a schedule can be written by hand. FIXED: the reader waits.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#ifndef ROUNDS
#define ROUNDS 3
#endif

/* A name inside a function would look like the beginning of another one. */
#ifdef NAMED
#define NAME(x) ".globl " #x "\n" #x ": "
#else
#define NAME(x)
#endif

static volatile int value[ROUNDS + 1], seen[ROUNDS + 1];
static volatile int announced;
#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int done;
#endif

static __attribute__((noinline)) void store(volatile int *to, int x)
{
	__asm__ volatile(NAME(write_here) "movl %1, %0" : "=m"(*to) : "r"(x)); /* @write */
}

static __attribute__((noinline)) int load(volatile int *from)
{
	int x;

	__asm__ volatile(NAME(read_here) "movl %1, %0" : "=r"(x) : "m"(*from)); /* @read */
	return x;
}

__attribute__((noinline, used)) void announce(void)
{
	announced++;
}

static __attribute__((noinline)) void call_it(void)
{
	__asm__ volatile(NAME(call_here) "call announce" ::: "rax", "rcx", "rdx", "rsi", "rdi",
			 "r8", "r9", "r10", "r11", "memory", "cc");
}

static void *writer(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++)
		store(&value[i], i + 1);
#ifdef FIXED
	pthread_mutex_lock(&lock);
	done = 1;
	pthread_cond_signal(&ready);
	pthread_mutex_unlock(&lock);
#endif
	call_it();
	return NULL;
}

static void *reader(void *arg)
{
	(void)arg;
#ifdef FIXED
	pthread_mutex_lock(&lock);
	while (!done)
		pthread_cond_wait(&ready, &lock);
	pthread_mutex_unlock(&lock);
#endif
	for (int i = 0; i < ROUNDS; i++)
		seen[i] = load(&value[i]);
	return NULL;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, writer, NULL);
	pthread_create(&b, NULL, reader, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d %d\n", seen[1], announced);
	fflush(stdout);
	assert(seen[1] == 2);
	return 0;
}
