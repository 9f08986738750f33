/* Two threads add to one number, each addition one instruction without lock: some get lost. */
#include <pthread.h>
#include <stdio.h>

static long number;

static void *run(void *arg)
{
	(void)arg;
	for (int i = 0; i < 200; i++)
		__asm__ volatile("addq $1, %0" : "+m"(number) : : "cc");
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("good %ld\n", number);
	return 0;
}
