/* Chunks of a stream: inside the reader only (trace_read.c, trace_iter.c, trace_epochs.c, trace_bases.c). */
#ifndef CSCHED_COMMON_TRACE_CHUNKS_H
#define CSCHED_COMMON_TRACE_CHUNKS_H

#include "common/trace_read.h"

/*
 * Fills s->spans from s->data, behind guests that were taken. Damage ends the spans and is left in s->damage;
 * only a foreign format version is an error at once.
 */
err_t trc_find_chunks(struct trc_stream_file *s);

/* Begins `s` with a chunk that lies in the process stream's file. */
void trc_take_guest(struct trc_stream_file *s, const struct trc_stream_file *host, uint64_t offset);

/* Compares the payload of span i with its checksum, once. */
err_t trc_check_span(struct trc_stream_file *s, size_t i);

/* What a file name says; false: not a stream of ours. *epoch: 0 none. */
bool trc_parse_name(const char *name, enum trc_stream *kind, uint32_t *thread, uint32_t *epoch);

/* Fills t->epochs and t->epoch. */
err_t trc_find_epochs(struct trc *t);
/* Fills t->bases. */
err_t trc_open_bases(struct trc *t);
/* A checkpoint that later ones are differences to, and whose epoch is gone. */
bool trc_is_base(const char *name);
/* The later epoch's chunks come behind those of the stream. */
void trc_continue_stream(struct trc_stream_file *s, struct trc_stream_file *later);

#endif
