/*
 * A sum over an array in parts. The worker that finishes last checks the total, which is wrong: what is left over by the
 * division belongs to nobody. Fails in every order, in whichever thread is last.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define WORKERS 3
#define LENGTH 20	/* 3 * 6, and 2 left over */

struct job {
	pthread_mutex_t lock;
	int values[LENGTH];
	long total;
	int finished;
};

static struct job job = { .lock = PTHREAD_MUTEX_INITIALIZER };

static long part(const int *v, int from, int to)
{
	long sum = 0;

	for (int i = from; i < to; i++)
		sum += v[i];
	return sum;
}

static void finish(struct job *j, long sum)
{
	pthread_mutex_lock(&j->lock);
	j->total += sum;
	if (++j->finished == WORKERS) {
		printf("total %ld\n", j->total);
		assert(j->total == LENGTH * (LENGTH + 1) / 2);	/* @assert */
	}
	pthread_mutex_unlock(&j->lock);
}

static void *worker(void *arg)
{
	int me = *(int *)arg, each = LENGTH / WORKERS;

	finish(&job, part(job.values, me * each, (me + 1) * each));
	return NULL;
}

int main(void)
{
	pthread_t t[WORKERS];
	int number[WORKERS];

	for (int i = 0; i < LENGTH; i++)
		job.values[i] = i + 1;
	for (int i = 0; i < WORKERS; i++) {
		number[i] = i;
		pthread_create(&t[i], NULL, worker, &number[i]);
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
	return 0;
}
