/* The wrong lock: two threads protect one counter by a lock of their own each. */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t locks[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static volatile int counter;

static void *adder(void *lock)
{
	pthread_mutex_lock(lock);
	int now = counter;
	counter = now + 1;
	pthread_mutex_unlock(lock);
	return NULL;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, 0, adder, &locks[0]);
	pthread_create(&b, 0, adder, &locks[1]);
	pthread_join(a, 0);
	pthread_join(b, 0);
	assert(counter == 2);
	return 0;
}
