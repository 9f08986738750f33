/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A server on a socket of the current directory: two workers hand out tickets, and now and then the same one twice. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static volatile int next_ticket;
static int drawn[2];
static int careful;

static void *draw(void *me)
{
	int ticket = next_ticket;

	next_ticket = ticket + 1;
	drawn[(long)me] = ticket;
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "socket" };
	int door = socket(AF_UNIX, SOCK_STREAM, 0), guest;
	pthread_t t[2];
	char answer[32], byte;

	careful = argc > 1 && !strcmp(argv[1], "careful");
	unlink(at.sun_path);
	if (bind(door, (struct sockaddr *)&at, sizeof at) || listen(door, 4))
		return 9;
	guest = accept(door, NULL, NULL);
	if (guest < 0 || read(guest, &byte, 1) != 1)
		return 8;
	for (long i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, draw, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	if (drawn[0] == drawn[1] && !careful)
		abort();
	snprintf(answer, sizeof answer, "%d", drawn[0] != drawn[1]);
	if (write(guest, answer, strlen(answer)) < 0)
		return 7;
	return 0;
}
