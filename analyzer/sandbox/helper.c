/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process outside that serves a confined one over a socket. */
#include "analyzer/sandbox/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

err_t sandbox_helper_start(int (*serve)(int sock, void *arg), void *arg, struct sandbox_helper *out)
{
	pid_t parent = getpid();
	int both[2];

	*out = (struct sandbox_helper){ 0 };
	fflush(NULL);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both))
		return err_errno("socketpair");
	out->pid = fork();
	if (!out->pid) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(ERR_INTERNAL);
		close(both[1]);
		signal(SIGPIPE, SIG_IGN);
		int status = serve(both[0], arg);
		fflush(NULL);
		_exit(status);
	}
	close(both[0]);
	if (out->pid < 0) {
		close(both[1]);
		return err_errno("fork");
	}
	out->sock = both[1];
	return NULL;
}

int sandbox_helper_end(struct sandbox_helper *h)
{
	int ended = 0;

	if (!h->sock)
		return 0;
	close(h->sock);
	while (waitpid(h->pid, &ended, 0) < 0)
		if (errno != EINTR)
			return ERR_INTERNAL;
	*h = (struct sandbox_helper){ 0 };
	return WIFEXITED(ended) ? WEXITSTATUS(ended) : ERR_INTERNAL;
}

bool sandbox_send(int sock, const void *data, size_t n)
{
	const char *at = data;

	while (n) {
		ssize_t w = write(sock, at, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return false;
		at += w;
		n -= (size_t)w;
	}
	return true;
}

bool sandbox_receive(int sock, void *data, size_t n)
{
	char *at = data;

	while (n) {
		ssize_t r = read(sock, at, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return false;
		at += r;
		n -= (size_t)r;
	}
	return true;
}
