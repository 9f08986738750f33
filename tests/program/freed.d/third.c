/* third: the object is handed from one thread to another, and a third one, the reaper, frees it. */
#include <pthread.h>
#include <stdlib.h>
struct job { int state; int data[10]; };
static struct job *job;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long spun;
static void *user(void *arg)
{
	struct job *j;
	pthread_mutex_lock(&lock);
	j = job;
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 300 && j; i++) {
		for (int k = 0; k < 50; k++)
			spun += k;
		j->data[i % 10]++;		/* use */
		if (j->state != 1)
			abort();
	}
	return arg;
}
static void *reaper(void *arg)
{
	struct job *j;
	for (int k = 0; k < 20000; k++)
		spun += k;
	pthread_mutex_lock(&lock);
	j = job;
	job = NULL;
	pthread_mutex_unlock(&lock);
	if (j) {
		j->state = 0;
		free(j);			/* free */
	}
	return arg;
}
int main(void)
{
	pthread_t a, b;
	job = calloc(1, sizeof *job);
	job->state = 1;
	pthread_create(&a, NULL, user, NULL);
	pthread_create(&b, NULL, reaper, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return 0;
}
