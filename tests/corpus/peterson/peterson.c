/*
 * Peterson's lock without fences. Right under sequential consistency; on x86 a
 * store may wait in the store buffer while the thread already reads the other's
 * flag, and both walk in. Fails only under store buffering.
 */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#define ROUNDS 1000

/* Each on a cache line of its own, as one does with variables that are fought for. */
struct line {
	_Alignas(64) atomic_int value;
};

static struct line interested[2];
static struct line turn;
static struct line owner;
static struct line started;
static unsigned sums[2];

static void enter(int me)
{
	int other = 1 - me;

	atomic_store_explicit(&interested[me].value, 1, memory_order_relaxed);		/* @store */
	atomic_store_explicit(&turn.value, other, memory_order_relaxed);		/* @turn */
	while (atomic_load_explicit(&interested[other].value, memory_order_relaxed) &&	/* @load */
	       atomic_load_explicit(&turn.value, memory_order_relaxed) == other)	/* @loadturn */
		sched_yield();
}

static void leave(int me)
{
	atomic_store_explicit(&interested[me].value, 0, memory_order_release);		/* @leave */
}

static unsigned work(unsigned sum, int rounds)
{
	for (int i = 0; i < rounds; i++)
		sum = (sum ^ (sum >> 7)) * 2654435761u + 1;
	return sum;
}

static void section(int me)
{
	unsigned sum;

	atomic_store_explicit(&owner.value, me, memory_order_relaxed);		/* @own */
	sum = work(sums[me], 20);
	assert(atomic_load_explicit(&owner.value, memory_order_relaxed) == me);	/* @use */
	sums[me] = sum;
}

static void *thread(void *arg)
{
	int me = (int)(long)arg;

	atomic_fetch_add(&started.value, 1);
	while (atomic_load(&started.value) < 2)
		sched_yield();
	for (int i = 0; i < ROUNDS; i++) {
		enter(me);
		section(me);
		leave(me);
		sums[me] = work(sums[me], 40 + i % 16);
	}
	return NULL;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, thread, (void *)0);
	pthread_create(&b, NULL, thread, (void *)1);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("sum %08x\n", sums[0] + sums[1]);
	return 0;
}
