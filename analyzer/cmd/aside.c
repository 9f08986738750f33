/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Following and explaining a trace in a child process, with a time limit. */
#include "analyzer/cmd/aside.h"

#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/confined.h"
#include "analyzer/explain/explain.h"
#include "analyzer/hunt/interrupt.h"
#include "common/newfile.h"
#include "common/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLLOW_SECONDS 20.0 /* to see whether a run can be followed: no more than that ... */
#define LEAST_SECONDS 0.2   /* ... nor less */

struct following {
	const char *trace;
	double seconds;
};

static int follow(void *following)
{
	const struct following *f = following;
	struct explain_options x;
	struct explanation *e = NULL;

	explain_options_init(&x);
	x.timeout = f->seconds;
	if (explain_follow(f->trace, &x, &e))
		return 0; /* nothing to follow (mode=sync): that is no reason to refuse it */
	const struct mach_result *m = &e->followed;
	return m->end == MACH_END_STOPPED ||
	       (m->failure_reached && m->same_thread && m->same_pc && m->same_kind) ? 0 : 1;
}

/* In a child of its own: nothing that happens there may end the hunt. */
static void begin_child(double seconds)
{
	interrupt_release();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm((unsigned)seconds + 1);
}

static void become_silent(bool also_output)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (also_output)
		dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
}

/*
 * Can the machine follow this run into its failure? Where threads race through code whose
 * accesses are not ordered it cannot always; another failing run is worth more then. A hunt goes
 * on whatever happens in the child, and ends when its time is over.
 */
bool aside_can_follow(const char *trace, double seconds)
{
	if (seconds < LEAST_SECONDS)
		return true;
	if (seconds > FOLLOW_SECONDS)
		seconds = FOLLOW_SECONDS;
	fflush(NULL);
	pid_t pid = fork(), ended;
	int status;

	if (!pid) {
		struct following f = { trace, seconds };

		begin_child(seconds);
		become_silent(false);
		status = confined_run(&(struct confined){ .command = "hunt", .input = trace }, follow, &f);
		_exit(status == 1);
	}
	while (pid > 0 && (ended = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
		if (interrupt_pending())
			kill(pid, SIGKILL);
	/* What could not be tried is not refused. */
	return pid < 0 || ended != pid || !WIFEXITED(status) || !WEXITSTATUS(status);
}

bool aside_explain(const char *trace, double seconds)
{
	char *argv[] = { (char *)"explain", (char *)trace, NULL };
	pid_t ended;
	int status;

	fflush(NULL);
	pid_t pid = fork();
	if (!pid) {
		begin_child(seconds);
		become_silent(true);
		status = cmd_explain(2, argv);
		fflush(NULL);
		_exit(status);
	}
	while (pid > 0 && (ended = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
		if (interrupt_pending())
			kill(pid, SIGKILL);
	return pid > 0 && ended == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

void aside_fingerprint(const char *trace, char out[ASIDE_FINGERPRINT])
{
	char *path = xasprintf("%s/fingerprint", trace);
	int fd = newfile_open_regular(AT_FDCWD, path, false);
	ssize_t n = fd >= 0 ? read(fd, out, ASIDE_FINGERPRINT - 1) : 0;

	out[n > 0 ? n : 0] = 0;
	out[strspn(out, "0123456789abcdef")] = 0;
	if (fd >= 0)
		close(fd);
	free(path);
}
