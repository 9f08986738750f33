/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Outside: what the confined process asks for is opened by the rules of common/door.h. Nothing it says is believed. */
#include "analyzer/image/debuginfod.h"
#include "analyzer/sandbox/internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST_QUESTIONS (1u << 20) /* more files than any program has */
#define MOST_FETCHES 4096u        /* from debuginfod: one for each module */

static unsigned digit(char c)
{
	return c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : 16;
}

/* A build-id in hexadecimal, 8 to 20 bytes; 0: none. */
static size_t parse_id(const char *hex, uint8_t *id)
{
	size_t n = strlen(hex);

	if (n < 16 || n > 40 || n % 2)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (digit(hex[i]) > 15)
			return 0;
	for (size_t i = 0; i < n / 2; i++)
		id[i] = (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
	return n / 2;
}

static int fetch(enum door_kind kind, const char *hex)
{
	static unsigned fetches;
	uint8_t id[20];
	size_t n = parse_id(hex, id);
	char *path = NULL;

	if ((kind != DOOR_EXECUTABLE && kind != DOOR_DEBUGINFO) || !n || ++fetches > MOST_FETCHES) {
		errno = EPERM;
		return -1;
	}
	int fd = img_debuginfod(kind == DOOR_EXECUTABLE ? IMG_FETCH_EXECUTABLE : IMG_FETCH_DEBUGINFO, id, n, &path);

	free(path);
	if (fd < 0) {
		errno = -fd;
		return -1;
	}
	return fd;
}

static void answer(int sock, int error, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct sandbox_answer a = { .error = error, .has_fd = fd > 2 };
	struct iovec part = { &a, sizeof a };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd > 2) {
		m.msg_control = &control;
		m.msg_controllen = sizeof control;
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd) };
		memcpy(CMSG_DATA(c), &fd, sizeof fd);
	}
	/* Who does not listen gets no answer. */
	if (sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
}

static void serve_one(int sock, const struct sandbox_question *q, size_t n)
{
	const size_t head = offsetof(struct sandbox_question, name);
	bool whole = n > head && n <= sizeof *q && memchr(q->name, 0, n - head) == q->name + (n - head - 1);

	errno = EINVAL;
	int fd = whole && q->kind < DOOR_KINDS ? door_serve((enum door_kind)q->kind, q->name) : -1;
	int error = fd < 0 ? (errno ? errno : EIO) : 0;

	answer(sock, error, fd);
	if (fd > 2)
		close(fd);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void sandbox_serve(int sock, int child, double seconds, bool *late)
{
	static struct sandbox_question q;
	double end = now() + seconds;
	struct pollfd p = { .fd = sock, .events = POLLIN };

	door_serve_with(fetch);
	for (unsigned n = 0; n < MOST_QUESTIONS;) {
		double left = seconds > 0 ? end - now() : -1;

		if (seconds > 0 && left <= 0) {
			*late = true;
			kill(child, SIGKILL);
			return;
		}
		int ready = poll(&p, 1, seconds > 0 ? (int)(left * 1000) + 1 : -1);
		if (ready <= 0)
			continue;
		ssize_t got = recv(sock, &q, sizeof q, MSG_DONTWAIT | MSG_TRUNC);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0)
			return;
		serve_one(sock, &q, (size_t)got);
		n++;
	}
	kill(child, SIGKILL);
}
