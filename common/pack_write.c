#include "common/pack.h"

#include "common/newfile.h"
#include "common/strbuf.h"
#include "common/trace_format.h"
#include "common/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

struct pack_writer {
	struct newfile file;
	ZSTD_CCtx *z;
	int level;
	uint64_t at; /* bytes written */
	uint32_t nentries;
	struct strbuf index;
};

static void writer_free(struct pack_writer *w)
{
	ZSTD_freeCCtx(w->z);
	strbuf_free(&w->index);
	free(w);
}

void pack_abandon(struct pack_writer *w)
{
	newfile_abandon(&w->file);
	writer_free(w);
}

static err_t put(struct pack_writer *w, const void *data, size_t n)
{
	if (n && fwrite(data, 1, n, w->file.f) != n)
		return err_errno("%s", w->file.path);
	w->at += n;
	return NULL;
}

err_t pack_create(const char *path, int level, struct pack_writer **out)
{
	static const struct pack_header empty;
	struct pack_writer *w = xcalloc(1, sizeof *w);

	*out = NULL;
	w->level = level;
	w->z = ZSTD_createCCtx();
	/* Memory contents go into this file: for its owner's eyes only. */
	err_t e = newfile_open(&w->file, path, NEWFILE_DERIVED, 0600);
	if (!e)
		e = !w->z ? err_new(ERR_INTERNAL, "out of memory") : put(w, &empty, sizeof empty);
	if (e) {
		pack_abandon(w);
		return e;
	}
	*out = w;
	return NULL;
}

static err_t compress(struct pack_writer *w, const char *name, const uint8_t *data, uint64_t size)
{
	static uint8_t buf[1 << 17];
	ZSTD_inBuffer in = { data, size, 0 };
	size_t left = 1;

	ZSTD_CCtx_reset(w->z, ZSTD_reset_session_only);
	ZSTD_CCtx_setParameter(w->z, ZSTD_c_compressionLevel, w->level);
	while (left) {
		ZSTD_outBuffer out = { buf, sizeof buf, 0 };

		left = ZSTD_compressStream2(w->z, &out, &in, ZSTD_e_end);
		if (ZSTD_isError(left))
			return err_new(ERR_INTERNAL, "%s: %s", name, ZSTD_getErrorName(left));
		TRY(put(w, buf, out.pos));
	}
	return NULL;
}

/* The checksum of what was just written: read back through the page cache. */
static err_t sum_of(struct pack_writer *w, uint64_t offset, uint64_t *sum)
{
	uint64_t from = offset & ~4095ull, size = w->at - from;

	if (fflush(w->file.f))
		return err_errno("%s", w->file.path);
	uint8_t *m = mmap(NULL, size, PROT_READ, MAP_SHARED, fileno(w->file.f), (off_t)from);
	if (m == MAP_FAILED)
		return err_errno("%s", w->file.path);
	*sum = trc_checksum(m + (offset - from), w->at - offset);
	munmap(m, size);
	return NULL;
}

err_t pack_add(struct pack_writer *w, const char *name, const void *data, uint64_t size)
{
	static const char zeros[8];
	struct pack_entry e = { .offset = w->at, .size = size, .name_len = (uint32_t)strlen(name) };

	TRY(compress(w, name, data, size));
	e.packed_size = w->at - e.offset;
	TRY(sum_of(w, e.offset, &e.sum));
	strbuf_add(&w->index, &e, sizeof e);
	strbuf_add(&w->index, name, e.name_len);
	strbuf_add(&w->index, zeros, -e.name_len & 7);
	w->nentries++;
	return NULL;
}

static err_t finish(struct pack_writer *w)
{
	struct pack_header h = {
		.magic = PACK_MAGIC, .version = PACK_VERSION, .nentries = w->nentries,
		.index_offset = w->at, .index_size = w->index.n,
		.index_sum = trc_checksum(w->index.s, w->index.n),
	};

	h.header_sum = trc_checksum(&h, offsetof(struct pack_header, header_sum));
	TRY(put(w, w->index.s, w->index.n));
	if (fseek(w->file.f, 0, SEEK_SET))
		return err_errno("%s", w->file.path);
	TRY(put(w, &h, sizeof h));
	if (fflush(w->file.f))
		return err_errno("%s", w->file.path);
	return newfile_keep(&w->file);
}

err_t pack_finish(struct pack_writer *w, uint64_t *size)
{
	uint64_t total = w->at + w->index.n;
	err_t e = finish(w);

	if (e)
		pack_abandon(w);
	else
		writer_free(w);
	if (size)
		*size = total;
	return e;
}
