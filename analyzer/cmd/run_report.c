#include "analyzer/cmd/run_report.h"

#include "analyzer/cmd/cmd.h"
#include "analyzer/launch.h"
#include "analyzer/trace_image.h"
#include "common/json.h"
#include "common/trace_read.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the child ---- */

/* What somebody may send to us and mean the program. */
static const int passed_on[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM };

static void child(char **command, const sigset_t *mask)
{
	sigprocmask(SIG_SETMASK, mask, NULL);
	_exit(launch_exec("csched run", command));
}

/* Its wait status. The keyboard's signals reach the program without us. */
static int wait_for(pid_t pid, const sigset_t *signals)
{
	siginfo_t info;
	int status;

	for (;;) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		int signal = sigwaitinfo(signals, &info);

		if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL)
			kill(pid, signal);
	}
}

static void die_by(int signal)
{
	const struct rlimit no_core = { 0, 0 };
	struct sigaction dflt = { .sa_handler = SIG_DFL };
	sigset_t one;

	fflush(stdout);
	/* The program's own core was the one worth having. */
	setrlimit(RLIMIT_CORE, &no_core);
	sigaction(signal, &dflt, NULL);
	sigemptyset(&one);
	sigaddset(&one, signal);
	raise(signal);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
}

/* ---- its traces ---- */

struct found {
	char *path;
	struct trc *t;
	uint64_t pid, ppid;
	bool ours;
};

struct traces {
	VEC(struct found) v;
};

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Those recorded since `since`; one that cannot be read is nobody's. */
static void consider(struct traces *all, const char *dir, const char *name, uint64_t since)
{
	struct found f = { .path = strcmp(dir, ".") ? xasprintf("%s/%s", dir, name)
						    : xstrdup(name) };
	err_t e = trc_open(f.path, TRC_TOLERANT, &f.t);

	if (!e && trc_identity_uint(f.t, "mono_start", 0) >= since) {
		f.pid = trc_identity_uint(f.t, "pid", 0);
		f.ppid = trc_identity_uint(f.t, "ppid", 0);
		vec_push(&all->v, f);
		return;
	}
	if (!e)
		trc_close(f.t);
	err_free(e);
	free(f.path);
}

static void collect(struct traces *all, const char *dir, uint64_t since)
{
	static const char suffix[] = ".csched";
	DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		size_t n = strlen(entry->d_name);

		if (n >= sizeof suffix && !strcmp(entry->d_name + n - (sizeof suffix - 1), suffix))
			consider(all, dir, entry->d_name, since);
	}
	if (d)
		closedir(d);
}

/* The program's, its children's, and so on; others may record in the same place. */
static void mark_ours(struct traces *all, uint64_t pid)
{
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < all->v.n; i++) {
			struct found *f = &all->v.v[i];
			bool ours = f->pid == pid || f->ppid == pid;

			for (size_t k = 0; k < all->v.n && !ours; k++)
				ours = all->v.v[k].ours && all->v.v[k].pid == f->ppid;
			more |= ours && !f->ours;
			f->ours |= ours;
		}
	}
}

/* ---- the answer ---- */

static void trace_json(const struct found *f, struct json *j)
{
	const struct trc_failure *failure = f->t->failure;

	json_object(j, NULL);
	json_str(j, "path", f->path);
	json_uint(j, "pid", f->pid);
	char *text = failure ? trace_failure_text(failure) : NULL;

	json_str(j, "failure", text);
	free(text);
	json_end(j);
}

static void answer(char **command, const char *obstacle, pid_t pid, int status,
		   const struct traces *all)
{
	struct json j = { .one_line = true };

	json_object(&j, NULL);
	json_int(&j, "schema", CMD_JSON_SCHEMA);
	json_array(&j, "command");
	for (char **a = command; *a; a++)
		json_str(&j, NULL, *a);
	json_end(&j);
	json_int(&j, "pid", pid);
	if (WIFEXITED(status))
		json_int(&j, "status", WEXITSTATUS(status));
	else
		json_int(&j, "signal", WTERMSIG(status));
	json_str(&j, "not_recorded", obstacle);
	json_array(&j, "traces");
	for (size_t i = 0; i < all->v.n; i++)
		if (all->v.v[i].ours)
			trace_json(&all->v.v[i], &j);
	json_end(&j);
	json_end(&j);
	/* The program may have left its last line open. */
	putchar('\n');
	json_print(&j, stdout);
}

static void traces_free(struct traces *all)
{
	for (size_t i = 0; i < all->v.n; i++) {
		trc_close(all->v.v[i].t);
		free(all->v.v[i].path);
	}
	vec_free(&all->v);
}

err_t run_and_report(char **command, const char *obstacle, int *status)
{
	uint64_t since = now();
	struct traces all = { 0 };
	sigset_t signals, before;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
		sigaddset(&signals, passed_on[i]);
	sigprocmask(SIG_BLOCK, &signals, &before);
	pid_t pid = fork();

	if (pid < 0)
		return err_errno("fork");
	if (!pid)
		child(command, &before);
	int end = wait_for(pid, &signals);
	char *absolute = launch_trace_dir(), *dir = launch_relative(absolute);

	free(absolute);
	collect(&all, dir, since);
	mark_ours(&all, (uint64_t)pid);
	answer(command, obstacle, pid, end, &all);
	traces_free(&all);
	free(dir);
	if (WIFSIGNALED(end))
		die_by(WTERMSIG(end));
	*status = WIFEXITED(end) ? WEXITSTATUS(end) : ERR_INTERNAL;
	return NULL;
}
