/*
 * Where the bytes of a trace come from: the files of a directory, or the
 * entries of a packed file. Used by trace_read.c; others open traces there.
 */
#ifndef CSCHED_COMMON_TRACE_SOURCE_H
#define CSCHED_COMMON_TRACE_SOURCE_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trc_source;

/* ERR_INPUT when path is neither a directory nor a packed trace. */
err_t trc_source_open(const char *path, struct trc_source **out);
void trc_source_close(struct trc_source *s);
bool trc_source_packed(const struct trc_source *s);

/* Names of the files in it, in no particular order. */
size_t trc_source_count(const struct trc_source *s);
const char *trc_source_name(const struct trc_source *s, size_t i);

/* 0 when it cannot be told. */
uint64_t trc_source_size(struct trc_source *s, size_t i);

/* Maps file i (unpacking it when needed). Belongs to the source. */
err_t trc_source_map(struct trc_source *s, size_t i, const uint8_t **data, size_t *size);

/* A path under which file i can be opened while the source lives, or an error. */
err_t trc_source_path(struct trc_source *s, size_t i, const char **path);

#endif
