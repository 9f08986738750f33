/* A count that loses an update in one instruction: between its read and its write. */
#include <assert.h>
#include <pthread.h>

static int counts[2];

__attribute__((noinline)) static void bump(int *count)
{
	__asm__ volatile("addl $1, %0" : "+m"(*count));
}

static void *worker(void *arg)
{
	for (int i = 0; i < 6; i++)
		bump(&counts[i & 1]);
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, worker, NULL);
	pthread_create(&b, NULL, worker, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	assert(counts[0] + counts[1] == 12);
	return 0;
}
