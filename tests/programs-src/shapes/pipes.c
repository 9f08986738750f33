/* SPDX-License-Identifier: GPL-2.0-or-later */
/* one thread tells another through a pipe; with BUG before the message is written */
#include <assert.h>
#include <pthread.h>
#include <unistd.h>
static int fd[2];
static volatile int msg;
static void *sends(void *a)
{
#ifdef BUG
	write(fd[1], "x", 1);
	msg = 3;
#else
	msg = 3;
	write(fd[1], "x", 1);
#endif
	return a;
}
static void *gets_(void *a)
{
	char c;
	read(fd[0], &c, 1);
	assert(msg == 3);
	return a;
}
int main(void)
{
	pthread_t t[2];
	pipe(fd);
	pthread_create(&t[0], 0, sends, 0);
	pthread_create(&t[1], 0, gets_, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	return 0;
}
