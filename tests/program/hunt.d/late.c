/* A lost update late in a run: only after each thread has taken the lock 40,000 times. */
#include <assert.h>
#include <pthread.h>

#define PAIRS 40000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long done, total;

static void *worker(void *arg)
{
	for (int i = 0; i < PAIRS; i++) {
		pthread_mutex_lock(&lock);
		done++;
		pthread_mutex_unlock(&lock);
	}
	total++;
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, 0, worker, 0);
	pthread_create(&b, 0, worker, 0);
	pthread_join(a, 0);
	pthread_join(b, 0);
	assert(total == 2);
	return 0;
}
