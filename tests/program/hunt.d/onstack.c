/* What is shared lies on main's own stack: it gets there by rsp, the other thread by a pointer. */
#include <pthread.h>
#include <stdlib.h>

struct job {
	int *arg;
	int cancelled;
};

static void *runner(void *arg)
{
	volatile struct job *j = arg;

	for (int i = 0; i < 20; i++)
		if (!j->cancelled)
			++*j->arg;
	return NULL;
}

int main(void)
{
	int count = 0;
	volatile struct job job = { &count, 0 };
	pthread_t t;

	pthread_create(&t, NULL, runner, (void *)&job);
	job.cancelled = 1;
	job.arg = NULL;
	pthread_join(t, NULL);
	return 0;
}
