/*
 * Dekker's flags as a try-lock: raise the own flag, look at the other's, go in
 * only when it is down. Under sequential consistency at most one goes in; with
 * store buffers both can find the other's flag still down.
 */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#define TRIES 2000

/* Each on a cache line of its own, as one does with variables that are fought for. */
struct line {
	_Alignas(64) atomic_int value;
};

static struct line flag[2];
static struct line owner;
static struct line started;
static unsigned sums[2];

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
	for (int i = 0; i < TRIES; i++) {
		atomic_store_explicit(&flag[me].value, 1, memory_order_relaxed);	/* @raise */
		if (!atomic_load_explicit(&flag[1 - me].value, memory_order_relaxed))	/* @look */
			section(me);
		atomic_store_explicit(&flag[me].value, 0, memory_order_release);	/* @lower */
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
	printf("%s\n", sums[0] + sums[1] ? "in" : "nowhere");
	return 0;
}
