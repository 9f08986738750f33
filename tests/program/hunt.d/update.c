/* A lost update: two threads add one to a plain counter, once each. */
#include <assert.h>
#include <pthread.h>

static volatile int counter;

static void *adder(void *arg)
{
	int now = counter;

	(void)arg;
	counter = now + 1;
	return NULL;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, 0, adder, 0);
	pthread_create(&b, 0, adder, 0);
	pthread_join(a, 0);
	pthread_join(b, 0);
	assert(counter == 2);
	return 0;
}
