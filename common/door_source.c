/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which source files may be shown.
 *
 * Debug information names them, and that comes from whoever built the program: it could name anything. So a file is opened
 *  - below a directory that the user named (--source-root, $CSCHED_SOURCE_PATH), but for hidden files and directories;
 *  - in the directories of the system's headers, when everybody may read it;
 *  - in the program's own tree, when its name is that of a source file and no part of it is hidden. The tree is that of a
 *    program that lies on this disk with the recorded build-id, and of the directories it was compiled in: the file is
 *    right beside it, or shares a directory with it that may be a project's (no home, no directory of the system, not what all can
 *    write to) without leaving a checkout (.git, .hg, .svn).
 * Symbolic links are followed first: what counts is where the file is.
 */
#include "common/door.h"

#include "common/newfile.h"
#include "common/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BASES 1024 /* directories of one program's modules and units */

typedef VEC(char *) dirs_t;

static dirs_t roots; /* named by the user, absolute */
static dirs_t bases; /* of the program, absolute */
static bool asked_environment;

static const char *const suffixes[] = {
	"c", "h", "cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "h++", "C", "H", "inc", "inl", "ipp", "tcc", "tpp", "ixx",
	"cppm", "s", "S", "asm", "rs", "go", "d", "f", "F", "f90", "F90", "f95", "f03", "f08", "for", "adb", "ads", "pas",
	"m", "mm", "swift", "zig", "nim", "ml", "hs", "y", "yy", "l", "ll", "def", "cu", "cuh", "cl", "re", "rl", "v", "vala",
};

/* Their whole trees are of no project; nor are these directories themselves. */
static const char *const system_dirs[] = {
	"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/media", "/mnt", "/opt", "/proc", "/root", "/run",
	"/sbin", "/srv", "/sys", "/tmp", "/usr", "/var", "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/local",
	"/usr/sbin", "/usr/share", "/usr/local/bin", "/usr/local/lib", "/usr/local/share", "/var/lib", "/var/log", "/var/run",
	"/var/spool", "/var/tmp", "/var/cache", "/var/mail",
};

static const char *const header_dirs[] = { "/usr/include", "/usr/local/include", "/usr/lib/gcc", "/usr/lib/llvm", "/usr/src" };

static bool is_in(const char *const *list, size_t n, const char *s)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], s))
			return true;
	return false;
}

/* path is dir or below it; both absolute and without links. */
static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 1)
		return true;
	return !strncmp(path, dir, n) && (path[n] == '/' || !path[n]);
}

static bool has_hidden_part(const char *path)
{
	return strstr(path, "/.") != NULL;
}

static bool has_source_name(const char *path)
{
	const char *name = strrchr(path, '/'), *dot = name ? strrchr(name, '.') : NULL;

	return dot && is_in(suffixes, sizeof suffixes / sizeof *suffixes, dot + 1);
}

/* ---- projects ---- */

static bool is_home(const char *dir)
{
	const char *home = getenv("HOME");
	char *real = home ? realpath(home, NULL) : NULL;
	bool is = (real && !strcmp(real, dir)) || (!strncmp(dir, "/home/", 6) && !strchr(dir + 6, '/'));

	free(real);
	return is;
}

static bool may_be_project(const char *dir)
{
	struct stat st;

	if (!strcmp(dir, "/") || is_in(system_dirs, sizeof system_dirs / sizeof *system_dirs, dir) || is_home(dir))
		return false;
	return !stat(dir, &st) && !(st.st_mode & S_IWOTH) && (st.st_uid == geteuid() || st.st_uid == 0);
}

static bool is_checkout(const char *dir)
{
	static const char *const marks[] = { ".git", ".hg", ".svn" };
	bool is = false;

	for (size_t i = 0; i < sizeof marks / sizeof *marks && !is; i++) {
		char *mark = xasprintf("%s/%s", dir, marks[i]);

		is = !access(mark, F_OK);
		free(mark);
	}
	return is;
}

/* dir becomes its parent; false: it is the root. */
static bool go_up(char *dir)
{
	char *slash = strrchr(dir, '/');

	if (!slash || !dir[1])
		return false;
	slash[slash == dir] = 0;
	return true;
}

static bool is_beside(const char *path, const char *base)
{
	size_t n = strlen(base);

	return is_below(path, base) && path[n] == '/' && !strchr(path + n + 1, '/');
}

/* Up from the base to the directory it shares with the file. */
static bool shares_project(const char *path, const char *base)
{
	char *dir = xstrdup(base);
	bool good = true;

	while (good && !is_below(path, dir))
		good = !is_checkout(dir) && go_up(dir);
	good = good && may_be_project(dir) && !has_hidden_part(path + strlen(dir));
	free(dir);
	return good;
}

static bool is_own(const char *path)
{
	const char *name = strrchr(path, '/');

	if (!has_source_name(path) || !name || name[1] == '.')
		return false;
	for (size_t i = 0; i < bases.n; i++)
		if (is_beside(path, bases.v[i]) || shares_project(path, bases.v[i]))
			return true;
	return false;
}

/* ---- the rules ---- */

static bool below_root(const char *path)
{
	for (size_t i = 0; i < roots.n; i++)
		if (is_below(path, roots.v[i]) && !has_hidden_part(path + strlen(roots.v[i])))
			return true;
	return false;
}

static bool is_header(const char *path, const struct stat *st)
{
	for (size_t i = 0; i < sizeof header_dirs / sizeof *header_dirs; i++)
		if (is_below(path, header_dirs[i]))
			return st->st_uid == 0 && (st->st_mode & S_IROTH) && !has_hidden_part(path);
	return false;
}

/* The name may have become a link since it was looked at. */
static bool is_still(int fd, const char *path)
{
	char *link = xasprintf("/proc/self/fd/%d", fd), *real = realpath(link, NULL);
	bool same = real && !strcmp(real, path);

	free(link);
	free(real);
	return same;
}

int door_serve_source(const char *path)
{
	char *real = realpath(path, NULL);
	struct stat st;
	int fd = -1;

	door_sources_from_environment();
	if (!real)
		return -1;
	if (stat(real, &st))
		fd = -1;
	else if (!S_ISREG(st.st_mode))
		errno = EINVAL;
	else if (!below_root(real) && !is_header(real, &st) && !is_own(real))
		errno = EPERM;
	else
		fd = newfile_open_regular(AT_FDCWD, real, false);
	if (fd >= 0 && !is_still(fd, real)) {
		close(fd);
		fd = -1;
		errno = EPERM;
	}
	int why = errno;
	free(real);
	errno = why;
	return fd;
}

/* Below each directory the whole path and every shorter tail of it. */
int door_serve_source_tail(const char *path)
{
	int fd = -1;

	door_sources_from_environment();
	for (size_t i = 0; i < roots.n && fd < 0; i++)
		for (const char *tail = path; tail && fd < 0; tail = strchr(tail, '/')) {
			tail += strspn(tail, "/");
			char *full = xasprintf("%s/%s", roots.v[i], tail);

			fd = door_serve_source(full);
			free(full);
		}
	if (fd < 0)
		errno = ENOENT;
	return fd;
}

static void add(dirs_t *v, const char *dir)
{
	char *real = realpath(dir, NULL);

	for (size_t i = 0; real && i < v->n; i++)
		if (!strcmp(v->v[i], real)) {
			free(real);
			return;
		}
	if (real && v->n < MAX_BASES)
		vec_push(v, real);
	else
		free(real);
}

int door_serve_base(enum door_kind kind, const char *path)
{
	struct stat st;

	/* Somebody else's directory is nobody's project; a program of somebody else vouches for nothing. */
	if (stat(path, &st) || (st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & S_IWOTH)) {
		errno = EPERM;
		return -1;
	}
	char *dir = realpath(path, NULL);
	bool good = dir && (kind == DOOR_COMPILED ? !has_hidden_part(dir) : go_up(dir));
	if (good)
		add(&bases, dir);
	free(dir);
	return good ? 0 : -1;
}

void door_add_sources(const char *dir)
{
	add(&roots, dir);
}

void door_sources_from_environment(void)
{
	const char *list = asked_environment ? NULL : getenv("CSCHED_SOURCE_PATH");
	char *copy, *rest, *dir;

	asked_environment = true;
	if (!list)
		return;
	rest = copy = xstrdup(list);
	while ((dir = strsep(&rest, ":")))
		if (*dir)
			door_add_sources(dir);
	free(copy);
}
