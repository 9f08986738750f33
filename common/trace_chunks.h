/* Chunks of a stream: inside the reader only (trace_read.c, trace_iter.c). */
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

#endif
