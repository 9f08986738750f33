/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A library to preload into memcached, with a check-then-act: the first answer of each of its threads is noted on a page that the
 * second one takes away when it is full; the threads look whether it is there, and then write on it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>

struct page {
	long used;
	long bytes[2];
};

static struct page *volatile page;
static __thread int noted;

static void note(long n)
{
	if (page) { /* @check */
		page->bytes[page->used & 1] = n; /* @use */
		page->used++;
		if (n > 4)
			page = NULL; /* @taken */
	}
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	static ssize_t (*real)(int, const struct msghdr *, int);
	ssize_t n;

	if (!real)
		real = (ssize_t (*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
	n = real(fd, m, flags);
	if (!noted++)
		note((long)n);
	return n;
}

static __attribute__((constructor)) void begin(void)
{
	page = calloc(1, sizeof *page);
}
