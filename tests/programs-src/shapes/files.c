/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a file and its size; with BUG the size comes first */
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static char name[64];
static volatile int size;
static void *writes(void *a)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
#ifdef BUG
	size = 5;
	write(fd, "hello", 5);
#else
	pthread_mutex_lock(&m);
	write(fd, "hello", 5);
	size = 5;
	pthread_mutex_unlock(&m);
#endif
	close(fd);
	return a;
}
static void *reads(void *a)
{
	char b[8];
	pthread_mutex_lock(&m);
	int n = size;
	pthread_mutex_unlock(&m);
	if (n) {
		int fd = open(name, O_RDONLY);
		assert(fd >= 0 && read(fd, b, n) == n);
		close(fd);
	}
	return a;
}
int main(void)
{
	pthread_t t[2];
	sprintf(name, "shape.%d", getpid());
	pthread_create(&t[0], 0, writes, 0);
	pthread_create(&t[1], 0, reads, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	unlink(name);
	return 0;
}
