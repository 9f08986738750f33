/*
 * Stores that are seen late: each of two threads raises its flag and looks for the other's, round by round.
 * Prints in how many rounds neither saw the other, and in how many the first then saw what the second did next.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#define ROUNDS 500

static struct {
	_Alignas(128) volatile int value;
} flag[2], result[2], arrived[2], next;
static int neither, seen;

static void together(int me)
{
	int round = ++arrived[me].value, spins = 0;

	while (__atomic_load_n(&arrived[1 - me].value, __ATOMIC_ACQUIRE) < round)
		if (++spins > 1000)
			sched_yield();
}

static void *thread(void *arg)
{
	int me = (int)(long)arg, other;

	for (int i = 1; i <= ROUNDS; i++) {
		flag[me].value = 0;
		together(me);
		__asm__ volatile(".globl raise_here\nraise_here: movl $1, (%1)\n\tmovl (%2), %0"
				 : "=r"(other) : "r"(&flag[me].value), "r"(&flag[1 - me].value) : "memory");
		result[me].value = other;
		if (me)
			__asm__ volatile(".globl next_write\nnext_write: movl %1, %0" : "=m"(next.value) : "r"(i));
		else
			__asm__ volatile(".globl next_read\nnext_read: movl %1, %0" : "=r"(other) : "m"(next.value));
		seen += !me && other == i;
		together(me);
		neither += !me && !result[0].value && !result[1].value;
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
	printf("%d %d\n", neither, seen);
	return 0;
}
