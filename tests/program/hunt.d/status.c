/* Check-then-act that ends in an exit status: two threads take more than there is. */
#include <pthread.h>
#include <stdio.h>

static volatile int balance = 100;

static void *take(void *arg)
{
	int n = *(int *)arg;

	if (balance >= n)
		balance -= n;
	return NULL;
}

int main(void)
{
	pthread_t a, b;
	int n = 70;

	pthread_create(&a, 0, take, &n);
	pthread_create(&b, 0, take, &n);
	pthread_join(a, 0);
	pthread_join(b, 0);
	if (balance >= 0)
		return 0;
	puts("overdrawn");
	return 3;
}
