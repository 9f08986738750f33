/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a client and a server; with BUG both count without a lock */
#include <arpa/inet.h>
#include <assert.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
static struct sockaddr_in ad;
static int ls;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static volatile int count, sent;
static void *server(void *a)
{
	int c = accept(ls, 0, 0);
	char b[4];
	assert(read(c, b, 4) == 4);
#ifdef BUG
	int v = count;
	count = v + 1;
#else
	pthread_mutex_lock(&m);
	count++;
	pthread_mutex_unlock(&m);
#endif
	write(c, "pong", 4);
	close(c);
	return a;
}
static void *client(void *a)
{
	int s = socket(AF_INET, SOCK_STREAM, 0);
	char b[4];
	connect(s, (void *)&ad, sizeof ad);
	write(s, "ping", 4);
#ifdef BUG
	int v = count;
	count = v + 1;
#else
	pthread_mutex_lock(&m);
	count++;
	pthread_mutex_unlock(&m);
#endif
	read(s, b, 4);
	close(s);
	return a;
}
int main(void)
{
	pthread_t t[2];
	socklen_t l = sizeof ad;
	ls = socket(AF_INET, SOCK_STREAM, 0);
	ad.sin_family = AF_INET;
	ad.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bind(ls, (void *)&ad, sizeof ad);
	getsockname(ls, (void *)&ad, &l);
	listen(ls, 4);
	pthread_create(&t[0], 0, server, 0);
	pthread_create(&t[1], 0, client, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	assert(count == 2);
	return 0;
}
