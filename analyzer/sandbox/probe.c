/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What confinement is in force on this machine: tried, not asked for. */
#include "analyzer/sandbox/internal.h"
#include "common/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each returns whether it got what it must not get. */
static bool can_read(void)
{
	return open("/etc/passwd", O_RDONLY) >= 0;
}

static bool can_create(void)
{
	return open("/tmp/csched-sandbox-probe", O_WRONLY | O_CREAT, 0600) >= 0;
}

static bool can_connect(void)
{
	return socket(AF_INET, SOCK_STREAM, 0) >= 0;
}

static bool can_start(void)
{
	execl("/bin/true", "true", (char *)NULL);
	return errno != EACCES && errno != EPERM;
}

static bool can_signal(void)
{
	return !kill(getppid(), 0);
}

static const struct {
	const char *name;
	bool (*gets)(void);
} forbidden[] = {
	{ "reading files", can_read }, { "creating files", can_create }, { "the network", can_connect },
	{ "starting programs", can_start }, { "signals to other processes", can_signal },
};

/* 0: it does not get it. */
static int in_child(bool (*gets)(void))
{
	pid_t pid = fork();
	int ended = 0;

	if (!pid) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(null, 2);
		err_t bad = sandbox_confine(&(struct sandbox_limits){ 0 }, -1);
		_exit(bad ? 99 : gets());
	}
	if (pid < 0 || waitpid(pid, &ended, 0) < 0)
		return 99;
	/* Stopped there, or an error: both will do. execve() would end with 0. */
	return WIFEXITED(ended) && (WEXITSTATUS(ended) == 99 || WEXITSTATUS(ended) == 1) ? WEXITSTATUS(ended) :
	       gets == can_start && WIFEXITED(ended) && !WEXITSTATUS(ended) ? 1 : 0;
}

static int landlock_version(void)
{
	pid_t pid = fork();
	int ended = 0;

	if (!pid)
		_exit(sandbox_landlock());
	return pid > 0 && waitpid(pid, &ended, 0) >= 0 && WIFEXITED(ended) ? WEXITSTATUS(ended) : 0;
}

char *sandbox_probe(bool *good)
{
	struct strbuf b = { 0 };
	int landlock = landlock_version();

	*good = true;
	for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
		int got = in_child(forbidden[i].gets);

		if (got == 99) {
			*good = false;
			strbuf_str(&b, "none: this kernel has no seccomp filters for us; traces are only read with --no-sandbox");
			return strbuf_take(&b);
		}
		if (got) {
			strbuf_fmt(&b, "%s possible: %s", b.n ? "," : "not in force,", forbidden[i].name);
			*good = false;
		}
	}
	if (!*good)
		return strbuf_take(&b);
	strbuf_str(&b, "reading a trace is confined by seccomp");
	if (landlock)
		strbuf_fmt(&b, " and Landlock %d", landlock);
	strbuf_fmt(&b, ": no files, network, programs, signals; %.1f GB of memory", (double)sandbox_memory_default() / (1ull << 30));
	strbuf_fmt(&b, ", %llu GB per file, %llu h of computing", SANDBOX_FILE_SIZE >> 30, SANDBOX_CPU / 3600);
	if (!landlock)
		strbuf_str(&b, " (this kernel has no Landlock)");
	return strbuf_take(&b);
}
