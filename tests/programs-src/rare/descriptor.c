/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A descriptor is closed twice, by its number: what the second close ends is what another thread has opened in between.
 * The threads share no memory: it is the kernel's table that they race for. */
#include "work.h"
#include <fcntl.h>

static int fd;

static void *closer(void *arg)
{
	work((uintptr_t)arg, 600000);
	close(fd);
	work((uintptr_t)arg, 20);
	close(fd); /* once too often: EBADF, mostly */
	return NULL;
}

static void *opener(void *arg)
{
	char byte;

	work((uintptr_t)arg, 300000);
	int mine = open("/dev/zero", O_RDONLY);
	work((uintptr_t)arg, 20);
	if (read(mine, &byte, 1) != 1)
		abort();
	close(mine);
	return NULL;
}

int main(void)
{
	fd = open("/dev/null", O_RDONLY);
	THREADS(2, closer, opener);
	return 0;
}
