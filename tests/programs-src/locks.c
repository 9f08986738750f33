/*
 * Locking for measurements: locks HOW COUNT TURNS, where the last is the work done between two
 * locks, outside of them, in turns of a loop; `locks turns` says how many take a microsecond.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS 64
static pthread_mutex_t m[8];
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static long count, loops, queued, sum;

/*
 * The same work whatever is preloaded: registers only, because a loop through memory runs at two speeds,
 * depending on where the stack happens to lie.
 */
static void work(void)
{
	for (long i = 0; i < loops; i++)
		__asm__ volatile("" : "+r"(i));
}

/* The fastest of some: others run here, too. */
static void turns_per_microsecond(void)
{
	long best = 1;

	loops = 100000;
	for (int i = 0; i < 300; i++) {
		struct timespec a, b;

		clock_gettime(CLOCK_MONOTONIC, &a);
		work();
		clock_gettime(CLOCK_MONOTONIC, &b);
		long ns = (b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec;

		if (ns > 0 && loops * 1000 / ns > best)
			best = loops * 1000 / ns;
	}
	printf("%ld\n", best);
}

static void *lock_loop(void *arg)
{
	pthread_mutex_t *mine = arg;

	for (long i = 0; i < count; i++) {
		pthread_mutex_lock(mine);
		sum++;
		pthread_mutex_unlock(mine);
		work();
	}
	return NULL;
}

static void *consume(void *arg)
{
	for (long i = 0; i < count; i++) {
		pthread_mutex_lock(&m[0]);
		while (!queued)
			pthread_cond_wait(&not_empty, &m[0]);
		queued--;
		pthread_cond_signal(&not_full);
		pthread_mutex_unlock(&m[0]);
		work();
	}
	return arg;
}

static void produce(void)
{
	for (long i = 0; i < count; i++) {
		work();
		pthread_mutex_lock(&m[0]);
		while (queued == 64)
			pthread_cond_wait(&not_full, &m[0]);
		queued++;
		pthread_cond_signal(&not_empty);
		pthread_mutex_unlock(&m[0]);
	}
}

static void threads(int n, int mutexes)
{
	pthread_t th[THREADS];

	for (int i = 0; i < n; i++)
		pthread_create(&th[i], NULL, lock_loop, &m[i % mutexes]);
	for (int i = 0; i < n; i++)
		pthread_join(th[i], NULL);
}

int main(int argc, char **argv)
{
	pthread_t th;

	if (argc == 2 && !strcmp(argv[1], "turns"))
		turns_per_microsecond();
	if (argc < 4)
		return argc != 2;
	count = atol(argv[2]);
	loops = atol(argv[3]);
	if (!strcmp(argv[1], "uncontended"))
		lock_loop(&m[0]);
	else if (!strcmp(argv[1], "contended"))
		threads(4, 1);
	else if (!strcmp(argv[1], "many"))
		threads(THREADS, 8);
	else if (!strcmp(argv[1], "queue")) {
		pthread_create(&th, NULL, consume, NULL);
		produce();
		pthread_join(th, NULL);
	}
	return 0;
}
