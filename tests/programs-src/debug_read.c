/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A message goes where there is room: which of two slots the system writes to depends on the order of the threads. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char slots[2][8];
static int taken, from, to;

static void *receive(void *arg)
{
	pthread_mutex_lock(&lock);
	int mine = taken++;
	pthread_mutex_unlock(&lock);
	if (read(from, slots[mine], 8) != 8)
		_exit(3);
	return arg;
}

static void *reserve(void *arg)
{
	pthread_mutex_lock(&lock);
	if (taken < 2)
		taken++;
	pthread_mutex_unlock(&lock);
	return arg;
}

int main(void)
{
	pthread_t t[2];
	int ends[2];

	if (pipe(ends))
		return 3;
	from = ends[0];
	to = ends[1];
	(void)!write(to, "message", 8);
	pthread_create(&t[0], NULL, receive, NULL);
	pthread_create(&t[1], NULL, reserve, NULL);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	if (slots[0][0] != 'm')
		abort();
	return 0;
}
