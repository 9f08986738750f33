/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a thread waits for a lock, from /proc; without the allocator, whose memory the library under test uses. */
#include "analyzer/testgen/server.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

bool waits_for_ever(const char *process, const char *thread, uint64_t *word)
{
	char path[96], line[256];
	unsigned long a[4];
	long nr;

	snprintf(path, sizeof path, "/proc/%.20s/task/%.20s/syscall", process, thread);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, line, sizeof line - 1) : 0;
	if (fd >= 0)
		close(fd);
	line[n > 0 ? n : 0] = 0;
	/* futex(word, operation, value, time limit) */
	if (sscanf(line, "%ld %lx %lx %lx %lx", &nr, &a[0], &a[1], &a[2], &a[3]) != 5 || nr != SYS_futex || a[3])
		return false;
	*word = a[0];
	return true;
}
