/* Recording for real: nothing else tells whether it works. */
#include "analyzer/cmd/doctor.h"

#include "analyzer/launch.h"
#include "common/trace_read.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRY_SECONDS 20

/* Removes a directory and the files in it, and one level of directories. */
static void remove_tree(const char *path, int depth)
{
	DIR *d = opendir(path);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		char *name = xasprintf("%s/%s", path, e->d_name);

		if (unlink(name) && depth > 0)
			remove_tree(name, depth - 1);
		free(name);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

/* The trace in dir, malloc'd, or NULL. */
static char *find_trace(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char *found = NULL;

	while (d && !found && (e = readdir(d)))
		if (strstr(e->d_name, ".csched"))
			found = xasprintf("%s/%s", dir, e->d_name);
	if (d)
		closedir(d);
	return found;
}

static void become_true(const char *shim, const char *mode, const char *dir)
{
	struct strbuf options = { 0 };
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; null >= 0 && fd < 3; fd++)
		dup2(null, fd);
	launch_option(&options, "mode", mode);
	launch_option(&options, "dir", dir);
	launch_option(&options, "keep", "always");
	launch_option(&options, "quiet", "1");
	unsetenv("CSCHED_OPTIONS");
	if (!launch_set_environment(shim, options.s))
		execlp("true", "true", (char *)NULL);
	_exit(126);
}

/* Runs it; the wait status, or -1 when it did not end in time. */
static int run_true(const char *shim, const char *mode, const char *dir)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		become_true(shim, mode, dir);
	for (int tries = 0; pid > 0 && tries < TRY_SECONDS * 100; tries++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	return -1;
}

/* Every record of the trace must be readable, and it must tell of an end. */
static err_t read_back(const char *path, bool wants_path)
{
	struct trc *t;
	err_t e;

	TRY(trc_open(path, 0, &t));
	e = NULL;
	for (size_t i = 0; i < t->streams.n && !e; i++)
		e = trc_verify(t->streams.v[i], NULL);
	if (!e && !t->end)
		e = err_new(ERR_INPUT, "the trace does not say how the run ended");
	if (!e && wants_path && !trc_stream(t, TRC_STREAM_PATH, 0))
		e = err_new(ERR_INPUT, "the trace has no path");
	trc_close(t);
	return e;
}

static enum doctor_verdict judge(struct strbuf *text, const char *dir, int status, bool wants_path)
{
	if (status != 0) {
		strbuf_fmt(text, "true ended with wait status 0x%x under the shim", status);
		return DOCTOR_BAD;
	}
	char *trace = find_trace(dir);
	err_t e = trace ? read_back(trace, wants_path)
			: err_new(ERR_INPUT, "no trace was written");
	enum doctor_verdict v = e ? DOCTOR_BAD : DOCTOR_OK;

	strbuf_str(text, e ? e->msg : "true was recorded and its trace read back");
	err_free(e);
	free(trace);
	return v;
}

static enum doctor_verdict try_mode(struct strbuf *text, const char *mode)
{
	const char *tmp = getenv("TMPDIR");
	char *dir = xasprintf("%s/csched-doctor.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	enum doctor_verdict v = DOCTOR_BAD;
	char *shim = NULL;
	err_t e = launch_find_shim(&shim);

	if (e) {
		strbuf_str(text, "not tried: there is no libcsched.so");
	} else if (!mkdtemp(dir)) {
		strbuf_fmt(text, "not tried: cannot make %s", dir);
	} else {
		v = judge(text, dir, run_true(shim, mode, dir), !strcmp(mode, "path"));
		remove_tree(dir, 1);
	}
	err_free(e);
	free(shim);
	free(dir);
	return v;
}

enum doctor_verdict doctor_try_sync(struct strbuf *text)
{
	return try_mode(text, "sync");
}

enum doctor_verdict doctor_try_path(struct strbuf *text)
{
	return try_mode(text, "path");
}
