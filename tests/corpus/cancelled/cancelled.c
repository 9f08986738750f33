/*
 * A thread is cancelled while it holds a lock: write() is a cancellation point, and
 * nothing lets the lock go on that way out.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define JOBS 1000
#define STEPS 20000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int out;
static int done;

static void *worker(void *arg)
{
	for (int i = 0; i < JOBS; i++) {
		pthread_mutex_lock(&lock);		/* @take */
		done++;
		if (done % 5 == 0 && write(out, ".", 1) != 1)	/* @cancelled */
			done = 0;
		pthread_mutex_unlock(&lock);		/* @unlock */
		pthread_testcancel();
	}
	return arg;
}

int main(void)
{
	pthread_t thread;
	unsigned sum = 0;

	out = open("/dev/null", O_WRONLY);
	pthread_create(&thread, NULL, worker, NULL);
	for (unsigned i = 0; i < STEPS; i++)
		sum = sum * 31 + i;
	pthread_cancel(thread);				/* @cancel */
	pthread_mutex_lock(&lock);			/* @want */
	printf("%s\n", sum && done >= 0 ? "stopped" : "?");
	pthread_mutex_unlock(&lock);			/* @unlock */
	pthread_join(thread, NULL);
	return 0;
}
