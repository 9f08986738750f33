/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a detached thread that the end of the process cuts off; with BUG main takes away what it goes on to use */
#include <pthread.h>
#include <stdlib.h>
static int *volatile job;
static volatile int done;
static void *works(void *a)
{
	for (volatile int i = 0; i < 4000000; i++)
		;
	done = *job;
	return a;
}
int main(void)
{
	pthread_t t;
	job = malloc(sizeof *job);
	*job = 1;
	pthread_create(&t, 0, works, 0);
	pthread_detach(t);
#ifdef BUG
	job = NULL;
#endif
	return 0;
}
