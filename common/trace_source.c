#include "common/trace_source.h"

#include "common/door.h"
#include "common/pack.h"
#include "common/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct source_file {
	char *name;
	int fd; /* -1: not opened yet */
	char *path;
	void *map;
	size_t size;
};

struct trc_source {
	char *path;
	struct pack *pack; /* or NULL */
	VEC(struct source_file) files; /* of a pack: in the order of its index */
};

bool trc_source_packed(const struct trc_source *s)
{
	return s->pack != NULL;
}

size_t trc_source_count(const struct trc_source *s)
{
	return s->files.n;
}

const char *trc_source_name(const struct trc_source *s, size_t i)
{
	return s->files.v[i].name;
}

static void add_file(struct trc_source *s, const char *name)
{
	vec_push(&s->files, (struct source_file){ .name = xstrdup(name), .fd = -1 });
}

/* Takes fd. */
static err_t open_directory(struct trc_source *s, int fd)
{
	DIR *d = fdopendir(fd);
	struct dirent *e;

	if (!d) {
		close(fd);
		return err_errno("%s", s->path);
	}
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			add_file(s, e->d_name);
	closedir(d);
	return NULL;
}

static err_t open_pack(struct trc_source *s)
{
	TRY(pack_open(s->path, &s->pack));
	for (size_t i = 0; i < pack_count(s->pack); i++)
		add_file(s, pack_name(s->pack, i));
	return NULL;
}

err_t trc_source_open(const char *path, struct trc_source **out)
{
	struct stat st;

	*out = NULL;
	if (!door_is_elsewhere())
		door_grant(path);
	int fd = door_open(DOOR_TRACE, path);
	if (fd < 0 && errno == EINVAL)
		return err_new(ERR_INPUT, "%s: neither a trace directory nor a packed trace", path);
	if (fd < 0)
		return err_errno("%s", path);
	bool directory = !fstat(fd, &st) && S_ISDIR(st.st_mode);

	struct trc_source *s = xcalloc(1, sizeof *s);
	s->path = xstrdup(path);
	if (!directory)
		close(fd);
	err_t e = directory ? open_directory(s, fd) : open_pack(s);
	if (e) {
		trc_source_close(s);
		return e;
	}
	*out = s;
	return NULL;
}

void trc_source_close(struct trc_source *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->files.n; i++) {
		struct source_file *f = &s->files.v[i];

		if (f->map)
			munmap(f->map, f->size);
		if (f->fd >= 0)
			close(f->fd);
		free(f->name);
		free(f->path);
	}
	vec_free(&s->files);
	pack_close(s->pack);
	free(s->path);
	free(s);
}

static int open_in(const struct trc_source *s, const char *name)
{
	char *path = xasprintf("%s/%s", s->path, name);
	int fd = door_open(DOOR_TRACE, path), why = errno;

	free(path);
	errno = why;
	return fd;
}

static err_t open_file(struct trc_source *s, size_t i)
{
	struct source_file *f = &s->files.v[i];
	struct stat st;

	if (f->fd >= 0)
		return NULL;
	if (s->pack)
		TRY(pack_extract(s->pack, i, &f->fd));
	else
		f->fd = open_in(s, f->name);
	if (f->fd < 0 && (errno == EINVAL || errno == EISDIR || errno == ELOOP))
		return err_new(ERR_INPUT, "%s/%s: not a regular file%s", s->path, f->name,
			       errno == ELOOP ? ", but a symbolic link: copy there what it leads to if you trust it" : "");
	if (f->fd < 0 || fstat(f->fd, &st))
		return err_errno("%s/%s", s->path, f->name);
	f->size = (size_t)st.st_size;
	return NULL;
}

uint64_t trc_source_size(struct trc_source *s, size_t i)
{
	struct source_file *f = &s->files.v[i];

	if (s->pack)
		return pack_size(s->pack, i);
	err_free(open_file(s, i));
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
	return f->size;
}

err_t trc_source_map(struct trc_source *s, size_t i, const uint8_t **data, size_t *size)
{
	struct source_file *f = &s->files.v[i];

	TRY(open_file(s, i));
	if (f->size && !f->map) {
		void *m = mmap(NULL, f->size, PROT_READ, MAP_PRIVATE, f->fd, 0);

		if (m == MAP_FAILED)
			return err_errno("%s/%s: mmap", s->path, f->name);
		f->map = m;
	}
	/* The mapping keeps the file; a trace of a thousand threads must not
	 * run into the limit on descriptors. */
	if (f->fd >= 0 && !s->pack && !f->path) {
		close(f->fd);
		f->fd = -1;
	}
	*data = f->map;
	*size = f->size;
	return NULL;
}

err_t trc_source_path(struct trc_source *s, size_t i, const char **path)
{
	struct source_file *f = &s->files.v[i];

	if (!f->path) {
		TRY(open_file(s, i));
		f->path = xasprintf("/proc/self/fd/%d", f->fd);
	}
	*path = f->path;
	return NULL;
}
