/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks the server once; 0: the answer was right, 1: it was wrong, or none came; 5: there is no server. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "socket" };
	char answer = 0;

	for (int i = 0; i < 500; i++, usleep(10000)) {
		int s = socket(AF_UNIX, SOCK_STREAM, 0);

		if (connect(s, (struct sockaddr *)&at, sizeof at)) {
			close(s);
			continue;
		}
		if (write(s, "?", 1) != 1 || read(s, &answer, 1) != 1)
			return 1;
		printf("answer %c\n", answer);
		return answer == '1' ? 0 : 1;
	}
	return 5;
}
