/* Programs without a bug, whatever the order: correct KIND */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define ROUNDS 40

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int count, item, taken;
static atomic_int flag[2], turn, inside;

static void *locked(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		int now = count;
		count = now + 1;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void *producer(void *arg)
{
	(void)arg;
	for (int i = 1; i <= ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		while (item)
			pthread_cond_wait(&changed, &lock);
		item = i;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void *consumer(void *arg)
{
	(void)arg;
	for (int i = 1; i <= ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		while (!item)
			pthread_cond_wait(&changed, &lock);
		assert(item == i);
		taken += item;
		item = 0;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

/* Peterson's algorithm, with the fences it needs: spins while the other is in. */
static void *peterson(void *arg)
{
	int me = arg != NULL;

	for (int i = 0; i < ROUNDS; i++) {
		atomic_store(&flag[me], 1);
		atomic_store(&turn, 1 - me);
		while (atomic_load(&flag[1 - me]) && atomic_load(&turn) == 1 - me)
			;
		assert(atomic_fetch_add(&inside, 1) == 0);
		count++;
		atomic_fetch_sub(&inside, 1);
		atomic_store(&flag[me], 0);
	}
	return NULL;
}

/* So often that learning has seen enough of it; main has done it as well, before there were threads. */
static void *busy(void *arg)
{
	static unsigned long jobs, total;
	unsigned seed = (unsigned)(unsigned long)arg;

	for (int i = 0; i < 50 * ROUNDS; i++) {
		for (int k = 0; k < 200; k++)
			seed = seed * 1103515245u + 12345u;
		pthread_mutex_lock(&lock);
		jobs++;
		total += seed >> 16 & 1;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void crowd(void)
{
	pthread_t t[8];

	busy(NULL);
	for (int i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, busy, &count);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	count = 2 * ROUNDS;
}

static void pair(void *(*a)(void *), void *(*b)(void *))
{
	static int one;
	pthread_t t, u;

	pthread_create(&t, NULL, a, NULL);
	pthread_create(&u, NULL, b, &one);
	pthread_join(t, NULL);
	pthread_join(u, NULL);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";

	if (!strcmp(kind, "locked"))
		pair(locked, locked);
	else if (!strcmp(kind, "peterson"))
		pair(peterson, peterson);
	else if (!strcmp(kind, "busy"))
		crowd();
	else if (!strcmp(kind, "handover"))
		pair(producer, consumer);
	else
		return 2;
	assert(count == (*kind == 'h' ? 0 : 2 * ROUNDS));
	assert(taken == (*kind == 'h' ? ROUNDS * (ROUNDS + 1) / 2 : 0));
	return 0;
}
