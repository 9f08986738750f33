/*
 * Threads in every state when one fails: waiting for a lock, asleep, running
 * without ever having called anything, waiting for a pipe; main joins. Each
 * has a local variable with a value of its own.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define MARK(n) (0x5ca1ab1e00000000ull + (n))
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all;
static int p[2];

/* The mark stays on the caller's stack: nobody knows that it is not used. */
static void mark(volatile uint64_t *local, uint64_t n)
{
	*local = MARK(n);
	__asm__ volatile("" : : "r"(local) : "memory");
}

static void *run(void *arg)
{
	volatile uint64_t local;
	char c;

	mark(&local, (uint64_t)arg);
	pthread_barrier_wait(&all);
	switch ((uint64_t)arg) {
	case 1: pthread_mutex_lock(&m); break;
	case 2: sleep(1000); break;
	case 3: for (;;) ; break;
	case 4: (void)!read(p[0], &c, 1); break;
	case 5: abort();
	}
	return (void *)(uintptr_t)local;
}

int main(void)
{
	volatile uint64_t local;
	pthread_t t[5];

	mark(&local, 0);
	pthread_mutex_lock(&m);
	pthread_barrier_init(&all, NULL, 5);
	(void)!pipe(p);
	for (uint64_t i = 0; i < 5; i++)
		pthread_create(&t[i], NULL, run, (void *)(i + 1));
	pthread_join(t[4], NULL);
	return (int)local;
}
