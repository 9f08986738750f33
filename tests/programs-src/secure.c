/* Says whether the kernel gave it more rights than its user has, uses a lock and a thread. */
#include <pthread.h>
#include <stdio.h>
#include <sys/auxv.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *arg)
{
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	return arg;
}

int main(void)
{
	pthread_t t;

	pthread_create(&t, NULL, work, NULL);
	pthread_join(t, NULL);
	puts(getauxval(AT_SECURE) ? "secure" : "ordinary");
	return 5;
}
