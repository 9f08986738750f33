/* SPDX-License-Identifier: GPL-2.0-or-later */
/* main takes away what a detached thread uses; with BUG without waiting for it */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <semaphore.h>
static sem_t s;
struct job {
	int *volatile p;
};
static struct job j;
static volatile int sum;
static void *w(void *a)
{
	sum += *j.p;
#ifndef BUG
	sem_post(&s);
#endif
	return a;
}
int main(void)
{
	pthread_t t;
	pthread_attr_t at;
	sem_init(&s, 0, 0);
	j.p = malloc(4);
	*j.p = 1;
	pthread_attr_init(&at);
	pthread_attr_setdetachstate(&at, PTHREAD_CREATE_DETACHED);
	pthread_create(&t, &at, w, 0);
#ifndef BUG
	sem_wait(&s);
#endif
	int *o = j.p;
	j.p = NULL;
	free(o);
	pthread_exit(0);
}
