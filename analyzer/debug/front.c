/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process between gdb and the confined stub. */
#include "analyzer/debug/front.h"

#include "analyzer/debug/filter.h"
#include "analyzer/debug/gdb.h"
#include "analyzer/hunt/files.h"
#include "analyzer/sandbox/sandbox.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_MODULES 4096u         /* files that gdb is shown: more than a process maps */
#define MOST_LINE (PATH_MAX + 64u) /* bytes of a line on the control socket */

/* ---- what the confined process announces ---- */

/* The next line without its end, byte by byte: nothing behind "ready" may be taken from the socket. */
static bool read_line(int control, char *line)
{
	for (size_t n = 0; n < MOST_LINE; n++) {
		if (!sandbox_receive(control, line + n, 1) || !line[n])
			return false;
		if (line[n] == '\n') {
			line[n] = 0;
			return true;
		}
	}
	return false;
}

/* The confined process is our parent's child, or (--no-sandbox) our parent. */
static bool is_theirs(int pid)
{
	char name[64], text[512] = "";
	int parent = 0;

	if (pid == getppid())
		return true;
	snprintf(name, sizeof name, "/proc/%d/stat", pid);
	FILE *f = fopen(name, "re");
	size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
	const char *rest = n ? strrchr(text, ')') : NULL;

	if (f)
		fclose(f);
	return rest && sscanf(rest, ") %*c %d", &parent) == 1 && parent == getppid();
}

/* False: it is gone, or says something else. */
static bool read_announcement(int control, struct gdb_run *r)
{
	char line[MOST_LINE], *end;

	while (read_line(control, line)) {
		if (!strcmp(line, "ready"))
			return r->pid != 0;
		if (!strncmp(line, "pid ", 4)) {
			r->pid = atoi(line + 4);
			if (!is_theirs(r->pid))
				return false;
		} else if (!strncmp(line, "frame ", 6)) {
			r->frame = (unsigned)strtoul(line + 6, NULL, 10);
		} else if (!strncmp(line, "file 0x", 7) && r->modules.n < MOST_MODULES) {
			uint64_t bias = strtoull(line + 5, &end, 16);

			if (*end != ' ' || end[1] != '/')
				return false;
			vec_push(&r->modules, (struct gdb_module){ xstrdup(end + 1), bias });
		} else {
			return false;
		}
	}
	return false;
}

/* ---- monitor explain ---- */

/* What `csched explain` prints; it reads the trace itself, confined. */
static void explain(const char *trace, bool json, struct strbuf *out)
{
	char self[PATH_MAX], piece[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	int ends[2];

	if (n <= 0 || pipe(ends))
		return;
	self[n] = 0;
	pid_t pid = fork();

	if (!pid) {
		dup2(ends[1], 1);
		if (!json)
			dup2(ends[1], 2);
		close(ends[0]);
		close(ends[1]);
		execl(self, "csched", "explain", "--color=never", trace, json ? "--json" : (char *)NULL, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	while (pid > 0 && (n = read(ends[0], piece, sizeof piece)) > 0)
		strbuf_add(out, piece, (size_t)n);
	close(ends[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static bool answer_explain(const struct front *o, int control)
{
	struct strbuf text = { 0 };
	char line[MOST_LINE];

	if (!read_line(control, line) || (strcmp(line, "explain") && strcmp(line, "explain json")))
		return false;
	explain(o->trace, line[strlen("explain")], &text);
	uint32_t n = (uint32_t)text.n;
	bool sent = sandbox_send(control, &n, sizeof n) && sandbox_send(control, text.s, text.n);
	strbuf_free(&text);
	return sent;
}

/* ---- packets ---- */

static bool pass_to_stub(int client, int packets)
{
	char piece[4096];
	ssize_t n = read(client, piece, sizeof piece);

	return n > 0 ? sandbox_send(packets, piece, (size_t)n) : n < 0 && errno == EINTR;
}

static bool pass_to_gdb(struct filter *f, int packets, int client)
{
	struct strbuf out = { 0 };
	char piece[4096];
	ssize_t n = read(packets, piece, sizeof piece);

	if (n <= 0)
		return n < 0 && errno == EINTR;
	bool good = filter_add(f, piece, (size_t)n, &out);
	if (!good)
		fprintf(stderr, "csched debug: the process that follows the run sent gdb something that no stub sends; this is a trace made "
				"to attack its reader, or a bug: SECURITY.md says how to report it\n");
	bool passed = sandbox_send(client, out.s, out.n) && good;
	strbuf_free(&out);
	return passed;
}

static void relay(const struct front *o, int control, int client)
{
	struct filter f = { { 0 } };
	struct pollfd p[] = { { .fd = client, .events = POLLIN }, { .fd = o->packets, .events = POLLIN },
			      { .fd = control, .events = POLLIN } };
	bool goes_on = true;

	while (goes_on) {
		if (poll(p, 3, -1) < 0)
			continue;
		if (p[1].revents)
			goes_on = pass_to_gdb(&f, o->packets, client);
		if (goes_on && p[0].revents)
			goes_on = pass_to_stub(client, o->packets);
		if (goes_on && p[2].revents)
			goes_on = answer_explain(o, control);
	}
	filter_free(&f);
	close(client);
	shutdown(o->packets, SHUT_RDWR);
}

/* ---- one client ---- */

static err_t serve_listener(const struct front *o, int control)
{
	int fd = -1, ended;
	bool is_path = false;
	err_t e = gdb_listen(o->listen, &fd, &is_path);

	if (!e) {
		fprintf(stderr, "Waiting for one gdb: target remote %s\n", o->listen);
		int client = gdb_accept(fd, control, 0, &ended);

		shutdown(fd, SHUT_RD); /* a second client is hung up on */
		if (client >= 0)
			relay(o, control, client);
		if (is_path)
			unlink(o->listen);
	}
	if (fd >= 0)
		close(fd);
	return e;
}

static err_t serve_gdb(const struct front *o, int control, int listener, int gdb, int *status)
{
	int ended = 0, client = gdb_accept(listener, control, gdb, &ended);

	shutdown(listener, SHUT_RD);
	if (client >= 0)
		relay(o, control, client);
	else if (!ended)
		kill(gdb, SIGTERM);
	if (client >= 0 || !ended)
		while (waitpid(gdb, &ended, 0) < 0 && errno == EINTR)
			;
	if (WIFEXITED(ended) && WEXITSTATUS(ended) == 127)
		return err_new(ERR_NOANSWER, "gdb could not be started; install it, or use --listen for a debugger of "
					     "your own");
	*status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 1;
	return NULL;
}

static err_t start_gdb(const struct front *o, const struct gdb_run *r, int control, int *status)
{
	char dir[PATH_MAX];
	int listener = -1;

	TRY(files_make_work("csched-debug", dir, sizeof dir));
	char *address = xasprintf("%s/gdb", dir), *script = xasprintf("%s/script", dir);
	err_t e = gdb_listen_at_path(address, &listener);

	if (!e)
		e = gdb_write_script(r, script, address);
	int pid = e ? -1 : gdb_start(script, o->gdb);

	if (!e)
		e = pid < 0 ? err_errno("fork") : serve_gdb(o, control, listener, pid, status);
	if (listener >= 0)
		close(listener);
	free(address);
	free(script);
	files_remove_tree(dir);
	return e;
}

int front_serve(int control, void *front)
{
	const struct front *o = front;
	struct gdb_run r = { 0 };
	int status = 0;
	err_t e = NULL;

	close(o->others);
	signal(SIGINT, SIG_IGN); /* ^C is gdb's; the confined process obeys it before gdb is there */
	if (read_announcement(control, &r))
		e = o->listen ? serve_listener(o, control) : start_gdb(o, &r, control, &status);
	for (size_t i = 0; i < r.modules.n; i++)
		free(r.modules.v[i].file);
	vec_free(&r.modules);
	if (!e)
		return status;
	fprintf(stderr, "csched debug: %s\n", e->msg);
	status = (int)e->code;
	err_free(e);
	return status;
}
