/* Two bugs: a result that is read before its thread has been joined, and a pointer that is cleared between check and use. */
#include <assert.h>
#include <pthread.h>
static volatile int result, seen;
static int settings = 7;
static int *volatile config = &settings;
static void *compute(void *a) { result = 42; return a; }
static void *read_config(void *a) { if (config) seen = *config; return a; }
static void *reset_config(void *a) { config = 0; return a; }
int main(void)
{
	pthread_t worker, reader, other;
	pthread_create(&reader, 0, read_config, 0);
	pthread_create(&other, 0, reset_config, 0);
	pthread_create(&worker, 0, compute, 0);
	pthread_join(reader, 0);
	pthread_join(other, 0);
	assert(result == 42);
	pthread_join(worker, 0);
	return 0;
}
