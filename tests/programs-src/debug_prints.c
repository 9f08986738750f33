/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A queue of two jobs and a closing thread: a job that comes after the closing is lost, and the sum is wrong.
 * What is printed, and by which call, depends on the order.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int closed, sum;

static void *job(void *arg)
{
	char head[] = "job of ", text[16];
	struct iovec v[2] = { { head, sizeof head - 1 }, { text, 0 } };

	pthread_mutex_lock(&lock);
	if (!closed) {
		sum += *(int *)arg;
		v[1].iov_len = (size_t)sprintf(text, "%d\n", *(int *)arg);
		(void)!writev(2, v, 2);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void *closing(void *arg)
{
	pthread_mutex_lock(&lock);
	closed = 1;
	pthread_mutex_unlock(&lock);
	return arg;
}

int main(void)
{
	int values[] = { 17, 25 };
	pthread_t t[3];

	puts("open");
	fflush(stdout);
	pthread_create(&t[0], NULL, job, &values[0]);
	pthread_create(&t[1], NULL, job, &values[1]);
	pthread_create(&t[2], NULL, closing, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	if (sum != 42)
		abort();
	printf("the sum is %d\n", sum);
	fflush(stdout);
	return 0;
}
