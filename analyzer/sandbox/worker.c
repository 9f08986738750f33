/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The confined process, from fork to the exit status. */
#include "analyzer/sandbox/internal.h"
#include "common/newfile.h"
#include "common/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define STOPPED 120 /* filter.c */
#define LAST_STATUS ERR_INTERNAL

/* What the caller of csched had open is none of the trace's business. */
static void close_others(int sock, const int *keep)
{
	DIR *d = opendir("/proc/self/fd");
	VEC(int) fds = { 0 };

	for (struct dirent *e; d && (e = readdir(d));) {
		int fd = atoi(e->d_name);

		if (fd > 2 && fd != sock && fd != keep[0] && fd != keep[1] && fd != dirfd(d) && !newfile_is_held(fd))
			vec_push(&fds, fd);
	}
	if (d)
		closedir(d);
	for (size_t i = 0; i < fds.n; i++)
		close(fds.v[i]);
	vec_free(&fds);
}

static void become_quiet(bool needs_input)
{
	int null = needs_input ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null >= 0) {
		dup2(null, 0);
		close(null);
	}
}

/* Never returns: its end is that of the process. */
static void inside(const struct sandbox_options *o, int sock, pid_t parent, int (*work)(void *), void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(LAST_STATUS);
	become_quiet(o->needs_input);
	close_others(sock, o->keep);
	err_t bad = sandbox_confine(&o->limits, sock);
	int status = bad ? (int)bad->code : work(arg);

	if (bad)
		fprintf(stderr, "csched %s: %s\n", o->command, bad->msg);
	err_free(bad);
	if (fflush(stdout) || ferror(stdout)) {
		perror("csched: standard output");
		status = status ? status : LAST_STATUS;
	}
	exit(status);
}

/* ---- outside ---- */

static volatile sig_atomic_t child;

/* From a terminal the child has had it, too. */
static void pass_on(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code <= 0 && child)
		kill((pid_t)child, sig);
}

static void say_end(const struct sandbox_options *o, int sig)
{
	const char *name = sigabbrev_np(sig);

	if (sig == SIGXCPU)
		fprintf(stderr, "csched %s: stopped after %llu s of computing, the limit; csched doctor lists the limits\n",
			o->command, (unsigned long long)(o->limits.cpu ? o->limits.cpu : SANDBOX_CPU));
	else if (sig == SIGXFSZ)
		fprintf(stderr, "csched %s: stopped: a file became larger than the limit; csched doctor lists the limits\n", o->command);
	else
		fprintf(stderr, "csched %s: internal error: the analysis was ended by SIG%s. It ran confined: nothing else happened. "
				"SECURITY.md says how to report it\n", o->command, name ? name : "?");
}

static int status_of(const struct sandbox_options *o, int ended)
{
	if (WIFEXITED(ended) && WEXITSTATUS(ended) <= LAST_STATUS)
		return WEXITSTATUS(ended);
	if (WIFEXITED(ended) && WEXITSTATUS(ended) == STOPPED)
		fprintf(stderr, "csched %s: internal error: it is a trace made to attack its reader, or a mistake of ours; SECURITY.md says "
				"how to report it\n", o->command);
	else if (WIFEXITED(ended))
		fprintf(stderr, "csched %s: internal error: the analysis ended with status %d\n", o->command, WEXITSTATUS(ended));
	else if (WTERMSIG(ended) == SIGINT || WTERMSIG(ended) == SIGPIPE || WTERMSIG(ended) == SIGTERM) {
		struct sigaction usual = { .sa_handler = SIG_DFL };

		newfile_abandon_held();
		sigaction(WTERMSIG(ended), &usual, NULL);
		raise(WTERMSIG(ended));
	} else
		say_end(o, WTERMSIG(ended));
	return LAST_STATUS;
}

static int outside(const struct sandbox_options *o, int sock)
{
	struct sigaction pass = { .sa_sigaction = pass_on, .sa_flags = SA_SIGINFO }, old;
	bool late = false;
	int ended = 0;

	sigaction(SIGINT, &pass, &old);
	sandbox_serve(sock, (int)child, o->limits.seconds, &late);
	close(sock);
	while (waitpid((pid_t)child, &ended, 0) < 0 && errno == EINTR)
		;
	child = 0;
	if (late)
		fprintf(stderr, "csched %s: stopped: its time was over in the middle of one step\n", o->command);
	int status = late ? ERR_NOANSWER : status_of(o, ended);

	newfile_abandon_held();
	sigaction(SIGINT, &old, NULL);
	return status;
}

int sandbox_run(const struct sandbox_options *o, int (*work)(void *), void *arg)
{
	pid_t parent = getpid();
	int both[2];

	fflush(NULL);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both)) {
		fprintf(stderr, "csched %s: %s\n", o->command, strerror(errno));
		return LAST_STATUS;
	}
	child = fork();
	if (!child) {
		close(both[0]);
		inside(o, both[1], parent, work, arg);
	}
	close(both[1]);
	if (child < 0) {
		fprintf(stderr, "csched %s: %s\n", o->command, strerror(errno));
		close(both[0]);
		return LAST_STATUS;
	}
	return outside(o, both[0]);
}
