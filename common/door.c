/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which files may be opened: everything but sources. */
#include "common/door.h"

#include "common/newfile.h"
#include "common/vec.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static door_asker *elsewhere, *more_kinds;
static VEC(char *) granted;

static int refused(int error)
{
	errno = error;
	return -1;
}

void door_ask_elsewhere(door_asker *ask)
{
	elsewhere = ask;
}

bool door_is_elsewhere(void)
{
	return elsewhere != NULL;
}

void door_serve_with(door_asker *more)
{
	more_kinds = more;
}

/* A descriptor of this process under its name in /proc; -1: that is no such name. */
static int own_descriptor(const char *name)
{
	static const char prefix[] = "/proc/self/fd/";
	char *end;

	if (strncmp(name, prefix, sizeof prefix - 1) || strspn(name + sizeof prefix - 1, "0123456789") > 8)
		return -1;
	long fd = strtol(name + sizeof prefix - 1, &end, 10);

	return *end || end == name + sizeof prefix - 1 ? -1 : (int)fd;
}

int door_open(enum door_kind kind, const char *name)
{
	int fd = own_descriptor(name);

	if (fd >= 0)
		return kind == DOOR_TRACE || kind == DOOR_ELF ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : refused(EPERM);
	return elsewhere ? elsewhere(kind, name) : door_serve(kind, name);
}

/* Of a name without the slashes at its end. */
static int bare_length(const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	return (int)n;
}

void door_grant(const char *path)
{
	vec_push(&granted, xasprintf("%.*s", bare_length(path), path));
}

void door_grant_alone(const char *path)
{
	while (granted.n)
		free(granted.v[--granted.n]);
	door_grant(path);
}

/* ---- traces ---- */

/* Right in a directory that was named? */
static bool is_inside(const char *path)
{
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; slash && i < granted.n; i++) {
		size_t n = strlen(granted.v[i]);

		if (n == (size_t)(slash - path) && !memcmp(granted.v[i], path, n))
			return strcmp(slash, "/..") && strcmp(slash, "/.");
	}
	return false;
}

static bool is_granted(const char *path)
{
	for (size_t i = 0; i < granted.n; i++)
		if (!strncmp(granted.v[i], path, (size_t)bare_length(path)) && !granted.v[i][bare_length(path)])
			return true;
	return false;
}

static int open_trace(const char *path)
{
	struct stat st;

	/* A link in a directory made by somebody else could lead to any file of ours. */
	if (is_inside(path))
		return newfile_open_regular(AT_FDCWD, path, false);
	if (granted.n && !is_granted(path))
		return refused(EPERM);
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return newfile_open_regular(AT_FDCWD, path, true);
}

/* ---- ELF files ---- */

/* Core dumps are memory of other programs. */
static int open_elf(const char *path)
{
	int fd = strncmp(path, "/proc/", 6) ? newfile_open_regular(AT_FDCWD, path, true) : refused(EPERM);
	Elf64_Ehdr h;

	if (fd < 0)
		return -1;
	ssize_t n = pread(fd, &h, sizeof h, 0);
	if (n == sizeof h && !memcmp(h.e_ident, ELFMAG, SELFMAG) && h.e_type != ET_CORE)
		return fd;
	close(fd);
	return refused(ENOEXEC);
}

/* ---- temporary files ---- */

/* On disk rather than in memory: traces can be larger than RAM. */
static int open_temp(void)
{
	const char *dirs[] = { getenv("TMPDIR"), "/var/tmp", "/tmp" };

	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		int fd = dirs[i] ? open(dirs[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;

		if (fd >= 0)
			return fd;
	}
	return memfd_create("csched-unpacked", MFD_CLOEXEC);
}

/* ---- what explain keeps ---- */

static struct {
	struct newfile file;
	bool open;
} fresh;

/* fingerprint, tried, failing.schedule, alternate-12.schedule: nothing else. */
static bool is_kept_name(const char *name)
{
	static const char *const stems[] = { "failing", "alternate" };

	if (!strcmp(name, "fingerprint") || !strcmp(name, "tried"))
		return true;
	for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
		size_t n = strlen(stems[i]);

		if (strncmp(name, stems[i], n))
			continue;
		const char *p = name + n;
		if (*p == '-' && strspn(p + 1, "0123456789") - 1 < 3)
			p += 1 + strspn(p + 1, "0123456789");
		return !strcmp(p, ".schedule");
	}
	return false;
}

static int new_kept(const char *name)
{
	struct stat st;

	if (fresh.open || !granted.n || !is_kept_name(name))
		return refused(EPERM);
	if (stat(granted.v[0], &st) || !S_ISDIR(st.st_mode))
		return refused(ENOTDIR);
	char *path = xasprintf("%s/%s", granted.v[0], name);
	err_t bad = newfile_open(&fresh.file, path, NEWFILE_DERIVED, 0666);

	free(path);
	if (bad) {
		err_free(bad);
		return refused(EACCES);
	}
	fresh.open = true;
	int fd = fcntl(fileno(fresh.file.f), F_DUPFD_CLOEXEC, 3);
	return fd;
}

static int end_kept(const char *name, bool keeps)
{
	const char *ours = fresh.open ? strrchr(fresh.file.path, '/') : NULL;

	if (!ours || strcmp(ours + 1, name))
		return refused(EPERM);
	fresh.open = false;
	if (keeps) {
		err_t bad = newfile_keep(&fresh.file);

		err_free(bad);
		return bad ? refused(EIO) : 0;
	}
	newfile_abandon(&fresh.file);
	return 0;
}

static int remove_kept(const char *name)
{
	if (!granted.n || !is_kept_name(name))
		return refused(EPERM);
	char *path = xasprintf("%s/%s", granted.v[0], name);
	int failed = unlink(path);

	free(path);
	return failed;
}

/* ---- the table ---- */

int door_serve(enum door_kind kind, const char *name)
{
	switch (kind) {
	case DOOR_TRACE:
		return open_trace(name);
	case DOOR_ELF:
		return open_elf(name);
	case DOOR_SOURCE:
		return door_serve_source(name);
	case DOOR_SOURCE_TAIL:
		return door_serve_source_tail(name);
	case DOOR_TEMP:
		return open_temp();
	case DOOR_NEW:
		return new_kept(name);
	case DOOR_KEEP:
	case DOOR_DROP:
		return end_kept(name, kind == DOOR_KEEP);
	case DOOR_REMOVE:
		return remove_kept(name);
	case DOOR_WRITTEN:
		return newfile_keep_held(name) ? 0 : refused(EIO);
	case DOOR_OWN:
	case DOOR_COMPILED:
		return door_serve_base(kind, name);
	default:
		return more_kinds ? more_kinds(kind, name) : refused(ENOENT);
	}
}
