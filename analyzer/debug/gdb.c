/* SPDX-License-Identifier: GPL-2.0-or-later */
/* gdb in front of the stub: a script with the modules, a private socket, and gdb as our child. */
#include "analyzer/debug/gdb.h"

#include "analyzer/hunt/files.h"

#include <errno.h>
#include <fcntl.h>
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

#define WAIT_MS 100 /* between two looks whether gdb is still there before it connects */

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

void gdb_symbols(struct dbg *d, struct strbuf *script)
{
	struct img_module *const *modules;
	size_t n = img_modules(d->images, &modules);
	bool first = true;

	for (size_t i = 0; i < n; i++) {
		const char *file = img_module_file(modules[i]);
		struct strbuf quoted = { 0 };

		if (file && add_quoted(&quoted, file)) {
			strbuf_fmt(script, "%s -o 0x%" PRIx64 " %s\n", first ? "symbol-file" : "add-symbol-file",
				   img_module_bias(modules[i]), quoted.s);
			first = false;
		}
		strbuf_free(&quoted);
	}
}

/* gdb's number of the innermost frame outside the C and C++ run-time: an assertion fails deep inside abort(). */
static unsigned frame_of_interest(struct dbg *d)
{
	struct img_memory memory = mach_img_memory(d->run);
	struct img_frame frames[16];
	uint64_t pcs[32];
	struct img_regs regs;
	struct dbg_stop at;
	unsigned number = 0;

	dbg_where(d, &at);
	size_t n = mach_img_regs(d->run, at.thread, &regs) ? img_unwind(d->images, &regs, &memory, pcs, 32) : 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = img_frames(d->images, pcs[i], frames, 16);

		for (size_t j = 0; j < k && j < 16; j++, number++)
			if (frames[j].file && !img_runtime_frame(&frames[j]))
				return number;
	}
	return 0;
}

static err_t write_script(struct dbg *d, const char *path, const char *address)
{
	struct strbuf b = { 0 };
	FILE *f = fopen(path, "wxe");

	strbuf_str(&b, "set confirm off\nset auto-solib-add off\nset sysroot\nset style enabled off\n");
	gdb_symbols(d, &b);
	/* Compiled in another place than it is debugged in, sources are looked for by their names. */
	strbuf_fmt(&b, "set style enabled on\nset confirm on\ntarget remote %s\n"
		       "define csched-goto\nmonitor goto $arg0\nmaintenance flush register-cache\nframe\nend\n"
		       "document csched-goto\nGo to a position of the recorded run: THREAD:N, begin, end or a mark.\n"
		       "end\necho \\n\nbacktrace\n", address);
	unsigned frame = frame_of_interest(d);

	if (frame)
		strbuf_fmt(&b, "frame %u\n", frame);
	bool good = f && fputs(b.s, f) >= 0;

	if (f && fclose(f))
		good = false;
	strbuf_free(&b);
	return good ? NULL : err_errno("%s", path);
}

/* ---- sockets ---- */

static err_t listen_at_path(const char *path, int *fd)
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

/* A second client is told so at once, by being hung up on. */
static void serve_one(struct dbg *d, int listener, int client, const struct stub_help *help)
{
	shutdown(listener, SHUT_RD);
	stub_serve(d, client, help);
	close(client);
}

err_t gdb_listen(struct dbg *d, const char *address, const struct stub_help *help)
{
	bool port = strchr(address, ':') && !strchr(address, '/');
	int fd = -1;
	err_t e = port ? listen_at_port(address, &fd) : listen_at_path(address, &fd);

	if (!e) {
		fprintf(stderr, "Waiting for one gdb: target remote %s\n", address);
		int client;

		do
			client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		while (client < 0 && errno == EINTR);
		if (client < 0)
			e = err_errno("%s", address);
		else
			serve_one(d, fd, client, help);
		if (!port)
			unlink(address);
	}
	if (fd >= 0)
		close(fd);
	return e;
}

/* ---- gdb ---- */

/* Waits until gdb connects; < 0: it ended before. */
static int wait_for_client(int listener, pid_t gdb, int *ended)
{
	for (;;) {
		struct pollfd f = { .fd = listener, .events = POLLIN };

		if (poll(&f, 1, WAIT_MS) > 0)
			return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (waitpid(gdb, ended, WNOHANG) == gdb)
			return -1;
	}
}

static pid_t start(const char *script, char **arguments)
{
	VEC(char *) argv = { 0 };
	pid_t pid;

	vec_push(&argv, (char *)"gdb");
	vec_push(&argv, (char *)"-q");
	vec_push(&argv, (char *)"-x");
	vec_push(&argv, (char *)script);
	for (; *arguments; arguments++)
		vec_push(&argv, *arguments);
	vec_push(&argv, NULL);
	pid = fork();
	if (!pid) {
		execvp("gdb", argv.v);
		_exit(127);
	}
	vec_free(&argv);
	return pid;
}

static err_t serve_gdb(struct dbg *d, int listener, pid_t pid, const struct stub_help *help, int *status)
{
	int ended = 0, client;

	signal(SIGINT, SIG_IGN); /* ^C is gdb's, and comes to us as a packet */
	client = wait_for_client(listener, pid, &ended);
	if (client >= 0) {
		serve_one(d, listener, client, help);
		while (waitpid(pid, &ended, 0) < 0 && errno == EINTR)
			;
	}
	signal(SIGINT, SIG_DFL);
	if (WIFEXITED(ended) && WEXITSTATUS(ended) == 127)
		return err_new(ERR_NOANSWER, "gdb could not be started; install it, or use --listen for a debugger of "
					     "your own");
	*status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 1;
	return NULL;
}

err_t gdb_run(struct dbg *d, char **arguments, const struct stub_help *help, int *status)
{
	char dir[4096];
	int listener = -1;

	TRY(files_make_work("csched-debug", dir, sizeof dir));
	char *address = xasprintf("%s/gdb", dir), *script = xasprintf("%s/script", dir);
	err_t e = listen_at_path(address, &listener);

	if (!e)
		e = write_script(d, script, address);
	pid_t pid = e ? -1 : start(script, arguments);

	if (!e)
		e = pid < 0 ? err_errno("fork") : serve_gdb(d, listener, pid, help, status);
	if (listener >= 0)
		close(listener);
	free(address);
	free(script);
	files_remove_tree(dir);
	return e;
}
