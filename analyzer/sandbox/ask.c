/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside: asking the process outside for a file. Only system calls: a signal handler asks, too. */
#include "analyzer/sandbox/internal.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int through = -1;
static atomic_flag busy = ATOMIC_FLAG_INIT;

void sandbox_ask_through(int sock)
{
	through = sock;
	door_ask_elsewhere(sock >= 0 ? sandbox_ask : NULL);
}

static int receive(struct sandbox_answer *a, int *fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = { a, sizeof *a };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
	ssize_t n;

	do
		n = recvmsg(through, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n != sizeof *a)
		return -1;
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof *fd);
	return 0;
}

static int ask(const struct sandbox_question *q, size_t n)
{
	struct sandbox_answer a;
	int fd = -1;
	ssize_t sent;

	do
		sent = send(through, q, n, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent != (ssize_t)n || receive(&a, &fd)) {
		errno = EIO;
		return -1;
	}
	if (a.error) {
		errno = a.error;
		return -1;
	}
	return a.has_fd ? fd : 0;
}

int sandbox_ask(enum door_kind kind, const char *name)
{
	struct sandbox_question q = { .kind = kind };
	size_t n = strlen(name) + 1;

	if (n > sizeof q.name) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(q.name, name, n);
	while (atomic_flag_test_and_set(&busy))
		;
	int fd = ask(&q, offsetof(struct sandbox_question, name) + n), why = errno;
	atomic_flag_clear(&busy);
	errno = why;
	return fd;
}
