/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Room for the first chunks of threads, in the file of the process stream: see slots.c. */
#ifndef CSCHED_PRELOAD_RECORD_SLOTS_H
#define CSCHED_PRELOAD_RECORD_SLOTS_H

#include "preload/record/stream.h"

/* A first chunk for the stream, its header written. False: it needs a file of its own, or has begun already. */
bool slots_take(const struct rec_stream *s, struct rec_chunk_map *map);
/* Nobody writes to it any more; sealed or not, it stays in the file. */
void slots_give(const struct rec_chunk_map *map);
/* They belong to a trace that is no longer ours: after fork, or because it was removed. */
void slots_forget(void);
/* Of the process stream's file, taken or not. */
uint64_t slots_bytes(void);

#endif
