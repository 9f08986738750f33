/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Outside: a socket for gdb, its script with the modules, and gdb as our child. */
#include "analyzer/debug/gdb.h"

#include "common/door.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 100 /* between two looks whether gdb and the confined process are still there */

/* ---- the script ---- */

/* A path from a trace is a stranger's: one that gdb could take for another command is left out. */
static bool add_quoted(struct strbuf *b, const char *path)
{
	for (const char *c = path; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return false;
	strbuf_char(b, '"');
	for (; *path; path++) {
		if (*path == '"' || *path == '\\')
			strbuf_char(b, '\\');
		strbuf_char(b, *path);
	}
	strbuf_char(b, '"');
	return true;
}

/*
 * A file that only the confined process has open (from a pack, say) is named by its descriptor. gdb is shown ELF files only:
 * it opens them unconfined.
 */
static char *path_for_gdb(const char *path, int pid)
{
	static const char own[] = "/proc/self/fd/";
	const char *number = path + sizeof own - 1;

	if (!strncmp(path, own, sizeof own - 1))
		return *number && strspn(number, "0123456789") == strlen(number) ? xasprintf("/proc/%d/fd/%s", pid, number) : NULL;
	int fd = door_serve(DOOR_ELF, path);
	if (fd < 0)
		return NULL;
	close(fd);
	return xstrdup(path);
}

static void add_module(struct strbuf *script, const struct gdb_module *m, int pid, bool *first)
{
	char *path = path_for_gdb(m->file, pid);
	struct strbuf quoted = { 0 };

	if (path && add_quoted(&quoted, path)) {
		/* Without an exec-file gdb warns that it could not find one. */
		if (*first)
			strbuf_fmt(script, "exec-file %s\n", quoted.s);
		strbuf_fmt(script, "%s -o 0x%" PRIx64 " %s\n", *first ? "symbol-file" : "add-symbol-file", m->bias, quoted.s);
		*first = false;
	}
	strbuf_free(&quoted);
	free(path);
}

err_t gdb_write_script(const struct gdb_run *r, const char *path, const char *address)
{
	struct strbuf b = { 0 };
	FILE *f = fopen(path, "wxe");
	bool first = true;

	strbuf_str(&b, "set confirm off\nset auto-solib-add off\nset sysroot\nset style enabled off\n");
	for (size_t i = 0; i < r->modules.n; i++)
		add_module(&b, &r->modules.v[i], r->pid, &first);
	/* Compiled in another place than it is debugged in, sources are looked for by their names. */
	strbuf_fmt(&b, "set style enabled on\nset confirm on\ntarget remote %s\n"
		       "define csched-goto\nmonitor jump $arg0\nstepi\nend\n"
		       "define csched-event\nmonitor jump #$arg0\nstepi\nend\n"
		       "document csched-event\nGo to an event of the report by its number ('monitor event' lists them).\nend\n"
		       "document csched-goto\nGo to a position of the recorded run: THREAD:N, begin, end or a mark.\n"
		       "end\necho \\n\nbacktrace\n", address);
	if (r->frame)
		strbuf_fmt(&b, "frame %u\n", r->frame);
	bool good = f && fputs(b.s, f) >= 0;

	if (f && fclose(f))
		good = false;
	strbuf_free(&b);
	return good ? NULL : err_errno("%s", path);
}

/* ---- sockets ---- */

err_t gdb_listen_at_path(const char *path, int *fd)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof a.sun_path)
		return err_new(ERR_USAGE, "%s is too long for the name of a socket", path);
	strcpy(a.sun_path, path);
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0 || bind(*fd, (struct sockaddr *)&a, sizeof a) || listen(*fd, 4))
		return err_errno("%s", path);
	return NULL;
}

static err_t listen_at_port(const char *address, int *fd)
{
	struct addrinfo want = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found;
	const char *colon = strrchr(address, ':');
	char host[256] = "127.0.0.1";
	int on = 1, bad;

	if ((size_t)(colon - address) >= sizeof host)
		return err_new(ERR_USAGE, "%s: no such address", address);
	if (colon != address)
		snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
	bad = getaddrinfo(host, colon + 1, &want, &found);
	if (bad)
		return err_new(ERR_USAGE, "%s: %s", address, gai_strerror(bad));
	*fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd >= 0)
		setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	bad = *fd < 0 || bind(*fd, found->ai_addr, found->ai_addrlen) || listen(*fd, 4);
	freeaddrinfo(found);
	return bad ? err_errno("%s", address) : NULL;
}

err_t gdb_listen(const char *address, int *fd, bool *is_path)
{
	*is_path = !strchr(address, ':') || strchr(address, '/');
	return *is_path ? gdb_listen_at_path(address, fd) : listen_at_port(address, fd);
}

/* ---- gdb ---- */

int gdb_accept(int listener, int gone, int gdb, int *ended)
{
	for (;;) {
		struct pollfd f[] = { { .fd = listener, .events = POLLIN }, { .fd = gone } };

		if (poll(f, 2, WAIT_MS) > 0 && f[0].revents)
			return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (f[1].revents)
			return -1;
		if (gdb > 0 && waitpid(gdb, ended, WNOHANG) == gdb)
			return -1;
	}
}

int gdb_start(const char *script, char **arguments)
{
	VEC(char *) argv = { 0 };
	int pid;

	vec_push(&argv, (char *)"gdb");
	vec_push(&argv, (char *)"-q");
	vec_push(&argv, (char *)"-x");
	vec_push(&argv, (char *)script);
	for (; *arguments; arguments++)
		vec_push(&argv, *arguments);
	vec_push(&argv, NULL);
	pid = fork();
	if (!pid) {
		signal(SIGPIPE, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		execvp("gdb", argv.v);
		_exit(127);
	}
	vec_free(&argv);
	return pid;
}
