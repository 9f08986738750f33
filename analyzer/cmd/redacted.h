/*
 * Redacted packs: what was found out about a failure, without the memory it was
 * found in. They hold the symbolic trace and the reports, no stream of the trace.
 */
#ifndef CSCHED_CMD_REDACTED_H
#define CSCHED_CMD_REDACTED_H

#include "analyzer/report/report_options.h"
#include "common/pack.h"

/* Names of entries; reports are report.txt, report.json, ... */
#define REDACTED_MARK "redacted"
#define REDACTED_SYM "trace.sym"

/* Is this a packed file of that kind? */
bool redacted_is(const char *path);

/* Explains the trace and adds what was found; *raw counts bytes. */
err_t redacted_fill(struct pack_writer *w, const char *trace, uint64_t *raw);

/* The stored reports that the options ask for. */
err_t redacted_report(const char *path, const struct report_options *o);
/* The symbolic trace, to a file or (NULL) standard output. */
err_t redacted_sym(const char *path, const char *out);
/* What is in it, for csched info. */
err_t redacted_info(const char *path, bool json);

#endif
