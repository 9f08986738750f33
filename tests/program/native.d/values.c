/* A reader that races with a writer and says what it saw. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>

#define READS 100000
#define CHANGES 500 /* seen: enough */

static volatile uint32_t value = 1;
static volatile uint8_t small = 1;
static volatile int stop;
static uint64_t sum, compared;

static void *writer(void *arg)
{
	(void)arg;
	for (uint32_t x = 1; !stop; x++) {
		value = x * 2654435761u;
		small = (uint8_t)x;
	}
	return NULL;
}

static void *reader(void *arg)
{
	(void)arg;
	uint32_t last = 0;

	for (int i = 0, changes = 0; i < READS && changes < CHANGES; i++) {
		uint32_t v;
		uint8_t equal;

		__asm__ volatile(".globl load_here\nload_here: movl %1, %0" : "=r"(v) : "m"(value));
		__asm__ volatile(".globl compare_here\ncompare_here: cmpb $5, %1\n\tsete %0"
				 : "=q"(equal) : "m"(small) : "cc");
		changes += v != last;
		last = v;
		if (i % 64 == 0)
			sched_yield(); /* the writer must run as well, on one core, too */
		sum += v;
		compared += equal;
	}
	stop = 1;
	return NULL;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, writer, NULL);
	pthread_create(&b, NULL, reader, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%llu %llu\n", (unsigned long long)sum, (unsigned long long)compared);
	return 0;
}
