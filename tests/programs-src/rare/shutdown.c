/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Seconds of honest work, then a shutdown in which a timer may still use what main has taken away. */
#include "work.h"
#include <time.h>

struct session {
	long beats;
};

static struct session *volatile session;
static volatile int stop;

static void *timer(void *arg)
{
	(void)arg;
	while (!stop) {
		struct timespec t = { 0, 1000000 };

		nanosleep(&t, NULL);
		if (session)
			session->beats++;
	}
	return NULL;
}

int main(void)
{
	pthread_t t;
	uint64_t x = 1;

	session = calloc(1, sizeof *session);
	pthread_create(&t, NULL, timer, NULL);
	for (int i = 0; i < 700; i++)
		x = work(x, 400000);
	struct session *s = session;
	session = NULL;
	stop = 1;
	pthread_join(t, NULL);
	free(s);
	return x == 7;
}
