#include "common/pack.h"

#include "common/door.h"
#include "common/trace_format.h"
#include "common/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

/* zstd cannot do better than one 128 KiB block in 4 bytes: more is a lie. */
#define MAX_RATIO 40000u

struct row {
	char *name;
	struct pack_entry entry;
};

struct pack {
	char *path;
	const uint8_t *data;
	size_t size;
	VEC(struct row) rows;
	uint64_t unpacked; /* bytes, so far */
};

static uint64_t most_unpacked;

void pack_set_most_unpacked(uint64_t bytes)
{
	most_unpacked = bytes;
}

bool pack_is(const char *path)
{
	uint64_t magic = 0;
	int fd = door_open(DOOR_TRACE, path);
	bool yes = fd >= 0 && read(fd, &magic, sizeof magic) == sizeof magic && magic == PACK_MAGIC;

	if (fd >= 0)
		close(fd);
	return yes;
}

size_t pack_count(const struct pack *p)
{
	return p->rows.n;
}

const char *pack_name(const struct pack *p, size_t i)
{
	return p->rows.v[i].name;
}

uint64_t pack_size(const struct pack *p, size_t i)
{
	return p->rows.v[i].entry.size;
}

uint64_t pack_packed_size(const struct pack *p, size_t i)
{
	return p->rows.v[i].entry.packed_size;
}

static err_t damaged(const struct pack *p, const char *what)
{
	return err_new(ERR_INPUT, "%s: damaged packed trace: %s", p->path, what);
}

static err_t map_file(struct pack *p)
{
	int fd = door_open(DOOR_TRACE, p->path);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		err_t e = err_errno("%s", p->path);

		if (fd >= 0)
			close(fd);
		return e;
	}
	p->size = (size_t)st.st_size;
	void *m = p->size ? mmap(NULL, p->size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
	close(fd);
	if (m == MAP_FAILED)
		return err_errno("%s", p->path);
	p->data = m;
	return NULL;
}

static err_t read_header(const struct pack *p, struct pack_header *h)
{
	if (p->size < sizeof h->magic || memcmp(p->data, &(uint64_t){ PACK_MAGIC }, 8))
		return err_new(ERR_INPUT, "%s: not a csched trace", p->path);
	if (p->size < sizeof *h)
		return damaged(p, "the file ends inside its header");
	memcpy(h, p->data, sizeof *h);
	if (h->version != PACK_VERSION)
		return err_new(ERR_INPUT, "%s: packed in format version %u, this csched reads %d",
			       p->path, h->version, PACK_VERSION);
	if (h->header_sum != trc_checksum(h, offsetof(struct pack_header, header_sum)))
		return damaged(p, "the header's checksum is wrong");
	if (h->index_offset > p->size || h->index_size > p->size - h->index_offset)
		return damaged(p, "the file is truncated");
	if (trc_checksum(p->data + h->index_offset, h->index_size) != h->index_sum)
		return damaged(p, "the index's checksum is wrong");
	return NULL;
}

static bool name_is_safe(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] > '~')
			return false;
	return n > 0 && n < 256;
}

/* Takes one row off the index; *at and *left move behind it. */
static err_t read_row(struct pack *p, const uint8_t **at, uint64_t *left)
{
	struct row r = { 0 };

	if (*left < sizeof r.entry)
		return damaged(p, "the index ends inside an entry");
	memcpy(&r.entry, *at, sizeof r.entry);
	uint64_t need = sizeof r.entry + (((uint64_t)r.entry.name_len + 7) & ~7ull);
	const char *name = (const char *)*at + sizeof r.entry;

	if (need > *left || !name_is_safe(name, r.entry.name_len))
		return damaged(p, "an entry of the index has a bad name");
	if (r.entry.offset > p->size || r.entry.packed_size > p->size - r.entry.offset)
		return damaged(p, "an entry lies outside the file");
	if (r.entry.size / MAX_RATIO > r.entry.packed_size)
		return damaged(p, "an entry claims an impossible size");
	r.name = xasprintf("%.*s", (int)r.entry.name_len, name);
	vec_push(&p->rows, r);
	*at += need;
	*left -= need;
	return NULL;
}

static err_t load(struct pack *p)
{
	struct pack_header h;

	TRY(map_file(p));
	TRY(read_header(p, &h));
	const uint8_t *at = p->data + h.index_offset;
	uint64_t left = h.index_size;

	for (uint32_t i = 0; i < h.nentries; i++)
		TRY(read_row(p, &at, &left));
	return NULL;
}

err_t pack_open(const char *path, struct pack **out)
{
	struct pack *p = xcalloc(1, sizeof *p);

	*out = NULL;
	p->path = xstrdup(path);
	err_t e = load(p);
	if (e) {
		pack_close(p);
		return e;
	}
	*out = p;
	return NULL;
}

void pack_close(struct pack *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->rows.n; i++)
		free(p->rows.v[i].name);
	vec_free(&p->rows);
	if (p->data)
		munmap((void *)p->data, p->size);
	free(p->path);
	free(p);
}

static err_t write_all(const struct pack *p, int fd, const uint8_t *data, size_t n)
{
	while (n) {
		ssize_t w = write(fd, data, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return err_errno("%s: unpacking into a temporary file", p->path);
		data += w;
		n -= (size_t)w;
	}
	return NULL;
}

static err_t unpack(const struct pack *p, const struct row *r, ZSTD_DStream *z, int fd)
{
	static uint8_t buf[1 << 17];
	ZSTD_inBuffer in = { p->data + r->entry.offset, r->entry.packed_size, 0 };
	uint64_t total = 0;
	size_t hint = 1;

	while (hint) {
		ZSTD_outBuffer out = { buf, sizeof buf, 0 };
		size_t before = in.pos;

		hint = ZSTD_decompressStream(z, &out, &in);
		if (ZSTD_isError(hint))
			return err_new(ERR_INPUT, "%s: damaged packed trace: %s: %s", p->path,
				       r->name, ZSTD_getErrorName(hint));
		if (!out.pos && in.pos == before && hint)
			return err_new(ERR_INPUT, "%s: damaged packed trace: %s ends too early",
				       p->path, r->name);
		total += out.pos;
		if (total > r->entry.size)
			break;
		TRY(write_all(p, fd, buf, out.pos));
	}
	if (total != r->entry.size)
		return err_new(ERR_INPUT, "%s: damaged packed trace: %s has the wrong size",
			       p->path, r->name);
	return NULL;
}

static err_t check_room(struct pack *p, const struct row *r)
{
	uint64_t most = most_unpacked;

	if (!most)
		most = p->size > PACK_LEAST_MOST / PACK_MOST_RATIO ? p->size * PACK_MOST_RATIO : PACK_LEAST_MOST;
	if (r->entry.size > most || p->unpacked > most - r->entry.size)
		return err_new(ERR_INPUT, "%s: unpacked it takes more than %.1f GB, the limit for a pack of its size; if you trust it, "
			       "--max-unpacked raises the limit", p->path, (double)most / (1ull << 30));
	p->unpacked += r->entry.size;
	return NULL;
}

err_t pack_extract(struct pack *p, size_t i, int *fd)
{
	const struct row *r = &p->rows.v[i];

	if (trc_checksum(p->data + r->entry.offset, r->entry.packed_size) != r->entry.sum)
		return err_new(ERR_INPUT, "%s: damaged packed trace: the checksum of %s is wrong",
			       p->path, r->name);
	TRY(check_room(p, r));
	*fd = door_open(DOOR_TEMP, "");
	if (*fd < 0)
		return err_errno("%s: no place for a temporary file", p->path);
	ZSTD_DStream *z = ZSTD_createDStream();
	err_t e = z ? unpack(p, r, z, *fd) : err_new(ERR_INTERNAL, "out of memory");
	ZSTD_freeDStream(z);
	if (e) {
		close(*fd);
		*fd = -1;
	}
	return e;
}
