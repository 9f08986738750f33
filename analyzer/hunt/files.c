#include "analyzer/hunt/files.h"

#include "common/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

void files_remove_tree(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	char sub[PATH_MAX];

	if (!d) {
		unlink(path);
		return;
	}
	while ((e = readdir(d))) {
		struct stat st;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if ((size_t)snprintf(sub, sizeof sub, "%s/%s", path, e->d_name) >= sizeof sub)
			continue;
		if (!lstat(sub, &st) && S_ISDIR(st.st_mode))
			files_remove_tree(sub);
		else
			unlink(sub);
	}
	closedir(d);
	rmdir(path);
}

err_t files_move_tree(const char *from, const char *to)
{
	if (!rename(from, to))
		return NULL;
	if (errno != EXDEV)
		return err_errno("%s", to);
	TRY(files_copy_tree(from, to));
	files_remove_tree(from);
	return NULL;
}

err_t files_copy_tree(const char *from, const char *to)
{
	pid_t pid = fork();
	if (!pid) {
		/* One message, and it is ours. */
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(null, STDERR_FILENO);
		/* Not into a directory that is there already. */
		execlp("cp", "cp", "-aT", "--", from, to, (char *)NULL);
		_exit(127);
	}
	int status = 0;
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status) {
		files_remove_tree(to);
		return err_new(ERR_INPUT, "could not copy %s to %s (is there room?)", from, to);
	}
	return NULL;
}

#define MOST_NAMES 1000000u

char *files_numbered(const char *dir, const char *name, unsigned n)
{
	const char *dot = strrchr(name, '.');
	size_t stem = dot && dot != name ? (size_t)(dot - name) : strlen(name);

	return n < 2 ? xasprintf("%s/%s", dir, name) : xasprintf("%s/%.*s-%u%s", dir, (int)stem, name, n, name + stem);
}

err_t files_reserve(const char *dir, const char *name, char **out)
{
	for (unsigned n = 1;; n++) {
		*out = files_numbered(dir, name, n);
		if (!mkdir(*out, 0777))
			return NULL;
		err_t e = errno != EEXIST || n == MOST_NAMES ? err_errno("%s", *out) : NULL;
		if (e)
			return e;
		free(*out);
	}
}

err_t files_move_into(const char *from, const char *dir, char **path)
{
	const char *slash = strrchr(from, '/');

	TRY(files_reserve(dir ? dir : ".", slash ? slash + 1 : from, path));
	err_t e = files_move_tree(from, *path);
	if (e)
		rmdir(*path);
	if (!dir)
		memmove(*path, *path + 2, strlen(*path + 2) + 1); /* without the "./" */
	return e;
}

/* Traces come and go with every run: memory is three times as fast as the disk. */
#define ROOM_WANTED (1ull << 30)

static const char *work_root(void)
{
	const char *tmp = getenv("TMPDIR");
	struct statvfs v;

	if (tmp && *tmp)
		return tmp;
	if (!statvfs("/dev/shm", &v) && (uint64_t)v.f_bavail * v.f_frsize >= ROOM_WANTED &&
	    !access("/dev/shm", W_OK | X_OK))
		return "/dev/shm";
	return "/tmp";
}

err_t files_make_work(const char *name, char *out, size_t size)
{
	snprintf(out, size, "%s/%s.XXXXXX", work_root(), name);
	return mkdtemp(out) ? NULL : err_errno("%s", out);
}

err_t files_make_file(const char *name, char **path, FILE **out)
{
	char *made = xasprintf("%s/%s.XXXXXX", work_root(), name);
	int fd = mkostemp(made, O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (f) {
		*path = made;
		*out = f;
		return NULL;
	}
	err_t e = err_errno("%s", made);
	if (fd >= 0) {
		close(fd);
		unlink(made);
	}
	free(made);
	return e;
}

#define PATIENCE_MS 2000

/* A pipe that nobody closes would be waited for without a word. */
static void say_if_it_takes_long(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };

	if (!poll(&in, 1, PATIENCE_MS))
		fprintf(stderr, "csched: waiting for the end of standard input, which every run gets; "
				"</dev/null when there is none\n");
}

static err_t copy_input(int to, const char *path)
{
	char buf[65536];
	ssize_t n;

	say_if_it_takes_long();
	while ((n = read(0, buf, sizeof buf)) > 0)
		if (write(to, buf, (size_t)n) != n)
			return err_errno("%s", path);
	return NULL;
}

err_t files_keep_input(const char *path, bool *was_terminal)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool terminal = isatty(0);

	if (fd < 0)
		return err_errno("%s", path);
	err_t e = terminal ? NULL : copy_input(fd, path);
	close(fd);
	if (was_terminal)
		*was_terminal = terminal;
	return e;
}

#define OUTPUT_KEPT (1 << 20)

void files_thin_output(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	struct stat st;

	/* The room it takes, not its size: what was thinned before stays thin. */
	if (fd >= 0 && !fstat(fd, &st) && (long long)st.st_blocks * 512 > 4 * OUTPUT_KEPT)
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, st.st_size - OUTPUT_KEPT);
	if (fd >= 0)
		close(fd);
}

err_t files_make_dirs(const char *path)
{
	char *part = xstrdup(path);
	err_t e = NULL;

	for (char *p = part + 1; !e; p++) {
		bool end = !*p;

		if (!end && *p != '/')
			continue;
		*p = 0;
		if (mkdir(part, 0777) && errno != EEXIST)
			e = err_errno("%s", part);
		if (end)
			break;
		*p = '/';
	}
	free(part);
	return e;
}
