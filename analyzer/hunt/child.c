#include "analyzer/hunt/child.h"

#include "common/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double child_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- what a run leaves behind ---- */

/* The runs under way: children of ours that must not be taken for leftovers. */
static pid_t running[64];

static void note_running(pid_t old, pid_t now)
{
	for (size_t i = 0; i < sizeof running / sizeof *running; i++)
		if (running[i] == old) {
			running[i] = now;
			return;
		}
}

static bool is_running(pid_t pid)
{
	for (size_t i = 0; i < sizeof running / sizeof *running; i++)
		if (running[i] == pid)
			return true;
	return false;
}

void child_spare(pid_t pid, bool spare)
{
	note_running(spare ? 0 : pid, spare ? pid : 0);
}

/* Parent and session of a process from /proc/PID/stat. */
static bool family_of(const char *pid, pid_t *parent, pid_t *session)
{
	char path[64], line[512];

	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	size_t n = fread(line, 1, sizeof line - 1, f);
	fclose(f);
	line[n] = 0;
	char *behind = strrchr(line, ')'); /* the name may hold anything */
	return behind && sscanf(behind + 1, " %*c %d %*d %d", parent, session) == 2;
}

/*
 * Kills what belongs to the session of a run that ended, and orphans that
 * left it: they are ours now. How many were found.
 */
static unsigned end_leftovers(pid_t session)
{
	DIR *proc = opendir("/proc");
	unsigned found = 0;
	struct dirent *d;

	while (proc && (d = readdir(proc))) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10), parent, of;

		if (pid <= 0 || is_running(pid) || !family_of(d->d_name, &parent, &of))
			continue;
		if (of != session && parent != getpid())
			continue;
		found++;
		kill(pid, SIGKILL);
		if (parent == getpid())
			waitpid(pid, NULL, 0);
	}
	if (proc)
		closedir(proc);
	return found;
}

static void end_session(pid_t session)
{
	/* The children of what was killed come to us in turn. */
	for (int round = 0; round < 8 && end_leftovers(session); round++)
		;
}

void child_adopt_orphans(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void child_end_orphans(void)
{
	end_session(-1);
}

/* ---- one run ---- */

static void redirect(const char *path, int flags, int to)
{
	int fd = open(path, flags | O_CLOEXEC | (flags & O_CREAT ? O_NOFOLLOW : 0), 0600);

	if (fd >= 0)
		dup2(fd, to);
}

/* In the new process: nothing but system calls and exec from here on. */
static void become(const struct child_spec *spec, int report)
{
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	redirect(spec->input, O_RDONLY, 0);
	redirect(spec->output, O_WRONLY | O_CREAT | O_TRUNC, 1);
	dup2(1, 2);
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	for (char **e = spec->more; e && *e; e++)
		putenv(*e);
	for (char **e = spec->environment; *e; e++)
		putenv(*e);
	if (spec->directory && chdir(spec->directory)) {
		int why = errno;
		_exit(write(report, &why, sizeof why) < 0 ? 127 : 127);
	}
	execvp(spec->argv[0], spec->argv);
	int why = errno;
	if (write(report, &why, sizeof why) < 0)
		_exit(127);
	_exit(127);
}

err_t child_start(struct child *c, const struct child_spec *spec, double limit)
{
	int report[2], why = 0;

	child_adopt_orphans();
	if (pipe2(report, O_CLOEXEC))
		return err_errno("pipe");
	pid_t pid = fork();
	if (pid < 0) {
		close(report[0]);
		close(report[1]);
		return err_errno("fork");
	}
	if (!pid)
		become(spec, report[1]);
	close(report[1]);
	ssize_t got = read(report[0], &why, sizeof why);
	close(report[0]);
	if (got == (ssize_t)sizeof why) {
		waitpid(pid, NULL, 0);
		errno = why;
		return err_errno("%s", spec->argv[0]);
	}
	note_running(0, pid);
	*c = (struct child){ .pid = pid, .started = child_now(), .limit = limit };
	c->fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (c->fd < 0) {
		err_t e = err_errno("pidfd_open");
		c->fd = -1;
		child_finish(c);
		return e;
	}
	return NULL;
}

static int expired(struct child *c, size_t n, double now, double *wait)
{
	for (size_t i = 0; i < n; i++) {
		if (!c[i].pid || c[i].limit <= 0)
			continue;
		double left = c[i].started + c[i].limit - now;
		if (left <= 0) {
			c[i].timed_out = true;
			return (int)i;
		}
		if (left < *wait)
			*wait = left;
	}
	return -1;
}

int child_wait_any(struct child *c, size_t n, double seconds)
{
	struct pollfd fds[64];

	if (n > 64)
		n = 64;
	int late = expired(c, n, child_now(), &seconds);
	if (late >= 0)
		return late;
	for (size_t i = 0; i < n; i++)
		fds[i] = (struct pollfd){ .fd = c[i].pid ? c[i].fd : -1, .events = POLLIN };
	if (poll(fds, n, (int)(seconds * 1000) + 1) > 0)
		for (size_t i = 0; i < n; i++)
			if (fds[i].revents)
				return (int)i;
	double none = 1e9;
	return expired(c, n, child_now(), &none);
}

int child_finish(struct child *c)
{
	int status = 0;

	if (c->timed_out || c->fd < 0)
		kill(c->pid, SIGKILL);
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	note_running(c->pid, 0);
	end_session(c->pid);
	if (c->fd >= 0)
		close(c->fd);
	c->pid = 0;
	c->fd = -1;
	return status;
}
