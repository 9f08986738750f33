#include "preload/maps.h"

#include "preload/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

struct reading {
	void (*line)(char *line, void *arg);
	void *arg;
	bool passing; /* the front of buf is the rest of a line that did not fit */
};

/* The whole lines of buf; what is left of the last one moves to the front. */
static size_t whole_lines(struct reading *r, char *buf, size_t have)
{
	size_t at = 0;

	for (size_t i = 0; i < have; i++) {
		if (buf[i] != '\n')
			continue;
		buf[i] = 0;
		if (!r->passing)
			r->line(buf + at, r->arg);
		r->passing = false;
		at = i + 1;
	}
	r->passing |= have - at == MAPS_BUFFER;
	if (r->passing)
		return 0;
	memmove(buf, buf + at, have - at);
	return have - at;
}

bool maps_read(char *buf, void (*line)(char *line, void *arg), void *arg)
{
	struct reading r = { line, arg, false };
	long fd = raw_open(AT_FDCWD, "/proc/thread-self/maps", O_RDONLY | O_CLOEXEC, 0), n;
	size_t have = 0;

	if (raw_failed(fd))
		return false;
	do {
		n = raw(SYS_read, fd, buf + have, MAPS_BUFFER - have);
		if (n > 0)
			have = whole_lines(&r, buf, have + (size_t)n);
	} while (n > 0 || n == -EINTR);
	raw(SYS_close, fd);
	return !n;
}
