/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a child's status; with BUG told without the lock */
#include <assert.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int done, status;
static void *child(void *a)
{
	pid_t p = fork();
	if (!p)
		_exit(7);
	int s;
	waitpid(p, &s, 0);
#ifdef BUG
	done = 1;
	status = WEXITSTATUS(s);
#else
	pthread_mutex_lock(&m);
	status = WEXITSTATUS(s);
	done = 1;
	pthread_mutex_unlock(&m);
#endif
	return a;
}
static void *looks(void *a)
{
	pthread_mutex_lock(&m);
	if (*(volatile int *)&done)
		assert(*(volatile int *)&status == 7);
	pthread_mutex_unlock(&m);
	return a;
}
int main(void)
{
	pthread_t t[2];
	pthread_create(&t[0], 0, child, 0);
	pthread_create(&t[1], 0, looks, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	return 0;
}
