/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creating files beside what stands at their name already. */
#include "common/newfile.h"

#include "common/door.h"
#include "common/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 16 /* at a name nobody has: one is enough */

static VEC(struct newfile) held;

static void forget(struct newfile *n)
{
	if (n->f)
		fclose(n->f);
	if (n->dir >= 0)
		close(n->dir);
	free(n->path);
	free(n->name);
	free(n->tmp);
	*n = (struct newfile){ .dir = -1 };
}

void newfile_abandon(struct newfile *n)
{
	if (n->held)
		n->f = NULL; /* the process outside does it */
	if (n->asked)
		door_open(DOOR_DROP, n->name);
	if (n->tmp && n->f)
		unlinkat(n->dir, n->tmp, 0);
	forget(n);
}

/* Devices, pipes and sockets are written to where they are, and so is everything that /dev and /proc name. */
static bool is_special(const char *path, const char *dir)
{
	struct stat st;

	if (!stat(path, &st))
		if (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISBLK(st.st_mode))
			return true;
	char *real = realpath(dir, NULL);
	bool is = real && (!strcmp(real, "/dev") || !strncmp(real, "/dev/fd", 7) || !strncmp(real, "/proc/", 6));

	free(real);
	return is;
}

/* A file of ours that stands there already says who may read it. */
static void keep_mode(const struct newfile *n, int fd)
{
	struct stat st;

	if (!fstatat(n->dir, n->name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) && st.st_uid == geteuid())
		fchmod(fd, st.st_mode & 0777);
}

static err_t open_tmp(struct newfile *n, mode_t mode, bool keeps)
{
	int fd = -1;

	for (int i = 0; i < TRIES && fd < 0; i++) {
		uint64_t random = 0;

		if (getrandom(&random, sizeof random, 0) != sizeof random)
			break;
		free(n->tmp);
		n->tmp = xasprintf(".csched-%016llx.tmp", (unsigned long long)random);
		fd = openat(n->dir, n->tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	if (fd >= 0 && keeps)
		keep_mode(n, fd);
	n->f = fd < 0 ? NULL : fdopen(fd, "w+");
	return n->f ? NULL : err_errno("%s", n->path);
}

/* Confined: what was opened beforehand, or what explain keeps. */
static err_t open_elsewhere(struct newfile *n, const char *path, enum newfile_name named)
{
	const char *slash = strrchr(path, '/');

	*n = (struct newfile){ .path = xstrdup(path), .name = xstrdup(slash ? slash + 1 : path), .dir = -1 };
	for (size_t i = 0; i < held.n && !n->f; i++)
		if (!strcmp(held.v[i].path, path))
			n->f = held.v[i].f;
	if (n->f) {
		n->held = true;
		return NULL;
	}
	int fd = named == NEWFILE_DERIVED ? door_open(DOOR_NEW, n->name) : (errno = EPERM, -1);
	n->f = fd < 0 ? NULL : fdopen(fd, "w");
	n->asked = n->f != NULL;
	if (n->f)
		return NULL;
	err_t bad = err_errno("%s", path);
	forget(n);
	return bad;
}

err_t newfile_open(struct newfile *n, const char *path, enum newfile_name named, mode_t mode)
{
	if (door_is_elsewhere())
		return open_elsewhere(n, path, named);

	const char *slash = strrchr(path, '/');
	char *dir = slash ? xasprintf("%.*s", slash == path ? 1 : (int)(slash - path), path) : xstrdup(".");
	struct stat st;
	err_t bad = NULL;

	*n = (struct newfile){ .path = xstrdup(path), .name = xstrdup(slash ? slash + 1 : path), .dir = -1 };
	if (named == NEWFILE_GIVEN && is_special(path, dir)) {
		int fd = open(path, O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC);

		n->f = fd < 0 ? NULL : fdopen(fd, "w");
		bad = n->f ? NULL : err_errno("%s", path);
	} else {
		n->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (n->dir < 0)
			bad = err_errno("%s", path);
		else if (!*n->name || (!fstatat(n->dir, n->name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode)))
			bad = err_new(ERR_INPUT, "%s: is a directory", path);
		else
			bad = open_tmp(n, mode, named == NEWFILE_GIVEN);
	}
	free(dir);
	if (bad)
		newfile_abandon(n);
	return bad;
}

/* Its name, from whoever can give it. */
static bool give_name(struct newfile *n)
{
	if (n->held || n->asked)
		return !door_open(n->held ? DOOR_WRITTEN : DOOR_KEEP, n->held ? n->path : n->name);
	return !n->tmp || !renameat(n->dir, n->tmp, n->dir, n->name);
}

err_t newfile_keep(struct newfile *n)
{
	bool good = !fflush(n->f) && !ferror(n->f) && give_name(n);
	err_t bad = good ? NULL : err_errno("cannot write %s", n->path);

	if (good) {
		n->f = n->held ? NULL : n->f;
		forget(n);
	} else {
		newfile_abandon(n);
	}
	return bad;
}

void newfile_remove(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (door_is_elsewhere())
		door_open(DOOR_REMOVE, slash ? slash + 1 : path);
	else
		unlink(path);
}

/* ---- files held for a confined process ---- */

err_t newfile_hold(const char *path, enum newfile_name named, mode_t mode)
{
	struct newfile n;

	TRY(newfile_open(&n, path, named, mode));
	vec_push(&held, n);
	return NULL;
}

bool newfile_is_held(int fd)
{
	for (size_t i = 0; i < held.n; i++)
		if (held.v[i].f && fileno(held.v[i].f) == fd)
			return true;
	return false;
}

bool newfile_keep_held(const char *path)
{
	for (size_t i = 0; i < held.n; i++)
		if (held.v[i].f && !strcmp(held.v[i].path, path)) {
			err_t bad = newfile_keep(&held.v[i]);

			err_free(bad);
			return !bad;
		}
	return false;
}

void newfile_abandon_held(void)
{
	for (size_t i = 0; i < held.n; i++)
		newfile_abandon(&held.v[i]);
	vec_free(&held);
}

err_t newfile_write(const char *path, enum newfile_name named, mode_t mode, err_t (*write)(FILE *f, void *arg), void *arg)
{
	struct newfile n;

	TRY(newfile_open(&n, path, named, mode));
	err_t bad = write(n.f, arg);
	if (bad)
		newfile_abandon(&n);
	else
		bad = newfile_keep(&n);
	return bad;
}

int newfile_open_regular(int dir, const char *path, bool follow)
{
	struct stat st;

	if (fstatat(dir, path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW))
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = S_ISDIR(st.st_mode) ? EISDIR : S_ISLNK(st.st_mode) ? ELOOP : EINVAL;
		return -1;
	}
	/* What it is may have changed since: it must not hang us, or become our terminal. */
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW));
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	return fd;
}
