/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ask SOCKET: two guests of a memcached at the same time. Ends well when it answered, or is gone: its status says why.
 * ask wake SOCKET: one that comes and goes without a word; a server that was told to end looks at that only when something
 * happens, or after a second.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int guest[2], got = 0;
	char answer[100];

	snprintf(at.sun_path, sizeof at.sun_path, "%s", argv[argc - 1]);
	if (argc > 2) {
		guest[0] = socket(AF_UNIX, SOCK_STREAM, 0);
		(void)!connect(guest[0], (struct sockaddr *)&at, sizeof at);
		return 0;
	}
	for (int tries = 0; tries < 200 && got < 2; tries++) {
		guest[got] = socket(AF_UNIX, SOCK_STREAM, 0);
		if (!connect(guest[got], (struct sockaddr *)&at, sizeof at)) {
			got++;
			continue;
		}
		close(guest[got]);
		usleep(50000);
	}
	for (int i = 0; i < got; i++)
		if (send(guest[i], "version\r\n", 9, MSG_NOSIGNAL) < 0)
			return 0;
	for (int i = 0; i < got; i++)
		if (recv(guest[i], answer, sizeof answer, 0) < 0)
			return 0;
	return got < 2 ? 3 : 0;
}
