// SPDX-License-Identifier: GPL-2.0-or-later
/* csched save: what the flight recorder of a running program holds, as a trace of its own. */
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/confined.h"

#include "common/json.h"
#include "common/trace_read.h"
#include "common/vec.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WAIT_SECONDS 10
#define STEP_NS 20000000l

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n > m && !strcmp(s + n - m, end);
}

/* The trace directory that the process has open; NULL: none. */
static char *trace_of(int pid)
{
	char *where = xasprintf("/proc/%d/fd", pid), target[4096], *found = NULL;
	DIR *d = opendir(where);

	for (struct dirent *e; d && !found && (e = readdir(d));) {
		char *link = xasprintf("%s/%s", where, e->d_name), *number = xasprintf(".%d.csched", pid);
		ssize_t n = readlink(link, target, sizeof target - 1);

		target[n > 0 ? n : 0] = 0;
		if (ends_with(target, number))
			found = xstrdup(target);
		free(link);
		free(number);
	}
	if (d)
		closedir(d);
	free(where);
	return found;
}

static bool is_recorder(int pid)
{
	char *name = xasprintf("/proc/%d/maps", pid), line[4352];
	FILE *f = fopen(name, "r");
	bool found = false;

	while (f && !found && fgets(line, sizeof line, f))
		found = strstr(line, "libcsched.so") != NULL;
	if (f)
		fclose(f);
	free(name);
	return found;
}

/* Somebody catches SIGSEGV there: else it would end the process. */
static bool catches(int pid)
{
	char *name = xasprintf("/proc/%d/status", pid), line[256];
	FILE *f = fopen(name, "r");
	unsigned long long caught = 0;

	while (f && fgets(line, sizeof line, f))
		sscanf(line, "SigCgt: %llx", &caught);
	if (f)
		fclose(f);
	free(name);
	return caught >> (SIGSEGV - 1) & 1;
}

/* It still records, with epochs, says its trace. */
static err_t look_at(const char *trace)
{
	struct trc *t;

	TRY(trc_open(trace, TRC_TOLERANT, &t));
	err_t e = NULL;

	if (!t->epochs.n)
		e = err_new(ERR_NOANSWER, "%s was not recorded with --ring or --last", trace);
	for (size_t i = 0; i < t->notes.n && !e; i++)
		if (t->notes.v[i]->rec.flags & 1)
			e = err_new(ERR_NOANSWER, "%s: recording has ended, see csched info", trace);
	trc_close(t);
	return e;
}

static int look_confined(void *arg)
{
	return cmd_fail("save", look_at(arg));
}

/* The latest NAME.PID.saved-N.csched beside the trace, or 0. */
static unsigned latest(const char *trace, char **path)
{
	char *dir = xasprintf("%.*s", (int)(last_part(trace) - trace), trace);
	char *prefix = xasprintf("%.*s.saved-", (int)(strlen(last_part(trace)) - strlen(".csched")), last_part(trace));
	DIR *d = opendir(*dir ? dir : ".");
	unsigned most = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		unsigned n;

		if (strncmp(e->d_name, prefix, strlen(prefix)) || !ends_with(e->d_name, ".csched") ||
		    sscanf(e->d_name + strlen(prefix), "%u", &n) != 1 || n <= most)
			continue;
		most = n;
		free(*path);
		*path = xasprintf("%s%s", dir, e->d_name);
	}
	if (d)
		closedir(d);
	free(dir);
	free(prefix);
	return most;
}

static err_t ask(int pid)
{
	siginfo_t si = { .si_signo = SIGSEGV, .si_code = TRC_SAVE_CODE };

	if (!is_recorder(pid) || !catches(pid))
		return err_new(ERR_NOANSWER, "process %d is not being recorded any more", pid);
	if (syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGSEGV, &si))
		return err_errno("process %d", pid);
	return NULL;
}

static err_t save(int pid, char **path)
{
	const struct timespec step = { .tv_nsec = STEP_NS };
	char *trace = trace_of(pid);

	if (!trace)
		return err_new(ERR_NOANSWER, "process %d has no trace, or is not yours: is it recorded with csched run --ring?", pid);
	unsigned before = latest(trace, path);
	int status = confined_run(&(struct confined){ .command = "save", .input = trace }, look_confined, trace);

	if (status) {
		free(trace);
		exit(status);
	}
	err_t e = NULL;

	for (int i = 0; !e && i < WAIT_SECONDS * 50 && latest(trace, path) == before; i++) {
		/* One that came while a checkpoint was being taken is lost. */
		if (i % 50 == 0)
			e = ask(pid);
		nanosleep(&step, NULL);
	}
	if (!e && latest(trace, path) == before)
		e = err_new(ERR_NOANSWER, "process %d took no checkpoint within %d seconds", pid, WAIT_SECONDS);
	free(trace);
	return e;
}

static void print(const char *path, bool as_json)
{
	struct json j = { .one_line = true };
	char *text = term_text_of(path, strlen(path));

	json_object(&j, NULL);
	json_int(&j, "schema", CMD_JSON_SCHEMA);
	json_str(&j, "trace", path);
	json_end(&j);
	if (as_json)
		json_print(&j, stdout);
	else
		printf("%s\n", text);
	free(text);
	if (!as_json)
		strbuf_free(&j.out);
}

int cmd_save(int argc, char **argv)
{
	struct cmd_common common = { 0 };
	const struct cmd_spec spec = {
		.name = "save", .usage = "[options] PID",
		.summary = "Saves what the flight recorder of a running program holds, as a trace of its own.",
		.more = "PID runs under csched run --ring or --last, and continues. The trace is a directory\n"
			"NAME.PID.saved-N.csched beside the one that is being recorded.\n",
		.common = &common, .min_args = 1, .max_args = 1,
	};
	struct cmd_args args;
	int status;
	char *end, *path = NULL;

	if (!cmd_parse(&spec, argc, argv, &args, &status))
		return status;
	long pid = strtol(args.v[0], &end, 10);

	if (*end || pid <= 0 || pid > 1 << 22)
		return cmd_fail("save", err_new(ERR_USAGE, "'%s' is no process number", args.v[0]));
	status = cmd_fail("save", save((int)pid, &path));
	if (!status)
		print(path, common.json);
	free(path);
	return status;
}
