/* Three workers and the overseer meet at a barrier made for three. */
#include <pthread.h>
#include <stdio.h>

static pthread_barrier_t meet;
static int part[3];

static void *worker(void *arg)
{
	int *p = arg;

	for (int i = 0; i < 100; i++)
		*p += i;
	pthread_barrier_wait(&meet);	/* @worker */
	return NULL;
}

int main(void)
{
	pthread_t t[3];

	pthread_barrier_init(&meet, NULL, 3);	/* @size */
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, worker, &part[i]);
	pthread_barrier_wait(&meet);	/* @main */
	int sum = part[0] + part[1] + part[2];
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);	/* @join */
	printf("%d\n", sum);
	return 0;
}
