/*
 * The record types as a table: names, where they may stand, how long they
 * must be, and what inside them has to hold. The readers check every record
 * against it; csched dump prints the names.
 */
#ifndef CSCHED_COMMON_TRACE_TYPES_H
#define CSCHED_COMMON_TRACE_TYPES_H

#include "common/trace_format.h"

#include <stdbool.h>

/* "sync", "fragment"; NULL: no such type. */
const char *trc_type_name(unsigned type);
/* The type with this name, or 0. */
unsigned trc_type_named(const char *name);

/*
 * Is the record whole and sound? rec->size is known to lie inside the stream.
 * Returns NULL, or what is wrong in words.
 */
const char *trc_rec_wrong(const struct trc_rec *rec, enum trc_stream stream);

/* Names for people; "?" for values out of range. */
const char *trc_op_name(unsigned op);            /* "lock" */
const char *trc_at_name(unsigned at);            /* "done", "block", "begin" */
const char *trc_failure_name(unsigned kind);     /* "assertion" */
const char *trc_nondet_name(unsigned kind);      /* "rdtsc" */
const char *trc_frag_kind_name(unsigned kind);   /* "direct" */
const char *trc_effect_name(unsigned kind);      /* "write" */
const char *trc_stream_name(unsigned kind);      /* "process" */
extern const char *const trc_reg_names[TRC_NREGS];

#endif
