/*
 * Packed traces: one file NAME.cspack with everything a bug report needs.
 *
 *   header (64 bytes) | entries, each one zstd frame | index
 *
 * The index is a sequence of struct pack_entry, each followed by its name and
 * zero bytes up to a multiple of 8. Entries are the streams of the trace under
 * their own names, and ELF files as "elf/BUILD-ID". Numbers are little-endian.
 * Readers check everything: the index by its checksum, each entry by its own,
 * and no entry unpacks to more than its index row says.
 */
#ifndef CSCHED_COMMON_PACK_H
#define CSCHED_COMMON_PACK_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACK_MAGIC 0x6b63617068637363ull /* "cschpack" */
#define PACK_VERSION 1

struct pack_header {
	uint64_t magic;
	uint32_t version;
	uint32_t nentries;
	uint64_t index_offset;
	uint64_t index_size;
	uint64_t index_sum; /* trc_checksum() of the index */
	uint64_t reserved[2];
	uint64_t header_sum; /* trc_checksum() of the 56 bytes above */
};
_Static_assert(sizeof(struct pack_header) == 64, "pack header is 64 bytes");

struct pack_entry {
	uint64_t offset;      /* of the zstd frame */
	uint64_t packed_size;
	uint64_t size;        /* unpacked */
	uint64_t sum;         /* trc_checksum() of the packed bytes */
	uint32_t name_len;
	uint32_t reserved;
};

/* ---- reading ---- */

struct pack;

/*
 * How much room all that is unpacked of one pack may take; 0: PACK_LEAST_MOST, or PACK_MOST_RATIO times the pack's size when that is
 * more. What would go beyond is ERR_INPUT.
 */
#define PACK_LEAST_MOST (1ull << 30)
#define PACK_MOST_RATIO 100 /* memory is mostly zeros: recorded traces stay below 60 */
void pack_set_most_unpacked(uint64_t bytes);

/* Is this the beginning of a packed trace? */
bool pack_is(const char *path);
err_t pack_open(const char *path, struct pack **out);
void pack_close(struct pack *p);
size_t pack_count(const struct pack *p);
const char *pack_name(const struct pack *p, size_t i);
uint64_t pack_size(const struct pack *p, size_t i);        /* unpacked */
uint64_t pack_packed_size(const struct pack *p, size_t i);
/* Unpacks entry i into an unnamed file; the caller closes *fd. */
err_t pack_extract(struct pack *p, size_t i, int *fd);

/* ---- writing ---- */

struct pack_writer;

/* The name appears when pack_finish() succeeds (newfile.h); only its owner may read the file. */
err_t pack_create(const char *path, int level, struct pack_writer **out);
/* These bytes as `name`: printable ASCII, shorter than 256. */
err_t pack_add(struct pack_writer *w, const char *name, const void *data, uint64_t size);
/* Both free the writer. */
err_t pack_finish(struct pack_writer *w, uint64_t *size); /* of the whole file; may be NULL */
void pack_abandon(struct pack_writer *w);

#endif
