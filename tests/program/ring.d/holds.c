// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * holds KIND MILLISECONDS: what threads did long ago matters when an update is lost at the end, or when they wait for each other:
 * locks they have had since, posts and arrivals that nobody has used yet, a wait that nobody has ended.
 */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t own[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t gate;
static sem_t tickets;
static int come, open_now;
static long total;
static const char *kind;

static int is(const char *what)
{
	return !strcmp(kind, what);
}

static void until_it_is_time(void)
{
	unsigned h = 1;

	while (!__atomic_load_n(&come, __ATOMIC_ACQUIRE)) {
		for (int i = 0; i < 2000; i++)
			h = h * 1664525 + 1013904223;
		usleep(300 + (h & 1));
	}
}

static void lose(void)
{
	long seen = total; /* @read */

	usleep(20000);
	total = seen + 1; /* @write */
}

static void *works(void *arg)
{
	long me = (long)arg;

	if (is("locks") || is("deadlock"))
		pthread_mutex_lock(&own[me]);
	until_it_is_time();
	if (is("deadlock")) {
		usleep(20000);
		pthread_mutex_lock(&own[!me]); /* @other */
		total++;
		pthread_mutex_unlock(&own[!me]);
	}
	if (is("semaphore"))
		sem_wait(&tickets);
	if (is("barrier"))
		pthread_barrier_wait(&gate);
	if (!is("deadlock"))
		lose();
	if (is("locks") || is("deadlock"))
		pthread_mutex_unlock(&own[me]);
	return NULL;
}

/* Arrives, or waits, long before the others. */
static void *is_early(void *arg)
{
	if (is("barrier"))
		pthread_barrier_wait(&gate);
	if (is("condition") || is("asleep")) {
		pthread_mutex_lock(&door);
		while (!open_now)
			pthread_cond_wait(&opened, &door);
		pthread_mutex_unlock(&door);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t[3];

	kind = argc > 1 ? argv[1] : "locks";
	sem_init(&tickets, 0, 0);
	sem_post(&tickets);
	sem_post(&tickets);
	pthread_barrier_init(&gate, NULL, 3);
	pthread_create(&t[2], NULL, is_early, NULL);
	for (long i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, works, (void *)i);
	usleep((useconds_t)(argc > 2 ? atol(argv[2]) : 300) * 1000);
	__atomic_store_n(&come, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	pthread_mutex_lock(&door);
	open_now = 1;
	if (!is("asleep")) /* forgotten: the early one sleeps for ever */
		pthread_cond_broadcast(&opened);
	pthread_mutex_unlock(&door);
	pthread_join(t[2], NULL);
	assert(total == 2); /* @sum */
	printf("nothing was lost\n");
	return 0;
}
