/*
 * One thread's order is over while it has the lock that the other one wants, and then both write. Going one at a time they
 * do so one behind the other.
 */
#include <pthread.h>
#include <unistd.h>

#define LETTERS 200

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *writes(void *letter)
{
	pthread_mutex_lock(&lock);
	__asm__ volatile(".globl first_place\nfirst_place: nop");
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < LETTERS; i++)
		if (write(1, letter, 1) != 1)
			_exit(2);
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, writes, i ? "b" : "a");
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return write(1, "\n", 1) != 1;
}
