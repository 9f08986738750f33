/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The current directory before and after a run, and the command that says whether what the run did was right. */
#include "analyzer/hunt/around.h"

#include "analyzer/hunt/child.h"
#include "analyzer/hunt/interrupt.h"
#include "common/trace_sum.h"
#include "common/vec.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* What is looked at: enough to see that a program writes here, and never long. */
#define MOST_ENTRIES 4096
#define MOST_DEPTH 3

/* Traces, shard files and where our own standard output and error go may lie here, too. */
static bool is_ours(const char *name, const struct stat *st)
{
	struct stat own;

	if (strstr(name, ".csched"))
		return true;

	for (int fd = 1; fd <= 2; fd++)
		if (!fstat(fd, &own) && own.st_dev == st->st_dev && own.st_ino == st->st_ino)
			return true;
	return false;
}

static uint64_t sum_of(const char *path, unsigned depth, unsigned *entries)
{
	DIR *d = opendir(path);
	struct dirent *e;
	uint64_t sum = 0;

	while (d && (e = readdir(d)) && *entries < MOST_ENTRIES) {
		char name[PATH_MAX];
		struct stat st;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if ((size_t)snprintf(name, sizeof name, "%s/%s", path, e->d_name) >= sizeof name ||
		    lstat(name, &st) || is_ours(e->d_name, &st))
			continue;
		++*entries;
		bool directory = S_ISDIR(st.st_mode);
		uint64_t facts[6] = { trc_checksum(name, strlen(name)), st.st_mode, directory ? 0 : (uint64_t)st.st_size,
				      directory ? 0 : (uint64_t)st.st_mtim.tv_sec,
				      directory ? 0 : (uint64_t)st.st_mtim.tv_nsec, st.st_ino };
		/* The order in which a directory lists its entries means nothing. */
		sum += trc_checksum(facts, sizeof facts);
		if (directory && depth < MOST_DEPTH)
			sum += sum_of(name, depth + 1, entries);
	}
	if (d)
		closedir(d);
	return sum;
}

uint64_t around_directory(const char *path)
{
	unsigned entries = 0;

	return sum_of(path ? path : ".", 0, &entries);
}

err_t around_check(const char *command, const char *output, int wait_status, double limit, int *status)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)command, NULL };
	int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
	char *env[] = { xasprintf("CSCHED_RUN_OUTPUT=%s", output), xasprintf("CSCHED_RUN_STATUS=%d", code), NULL };
	struct child_spec spec = { argv, output, "/dev/null", env, NULL, NULL };
	struct child c;
	err_t e = child_start(&c, &spec, limit);

	while (!e && child_wait_any(&c, 1, 0.5) < 0 && !interrupt_pending())
		;
	if (!e) {
		c.timed_out |= interrupt_pending() != 0;
		bool late = c.timed_out;
		int end = child_finish(&c);
		*status = late ? 124 : WIFEXITED(end) ? WEXITSTATUS(end) : 128 + WTERMSIG(end);
	}
	free(env[0]);
	free(env[1]);
	return e;
}
