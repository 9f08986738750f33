/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Orders for the real program: which orderings of an answer a live run has to keep, as schedule files that the shim enforces. */
#ifndef CSCHED_ENFORCE_H
#define CSCHED_ENFORCE_H

#include "analyzer/dsp/dsp.h"
#include "analyzer/symtrace/extract.h"

#include <stdio.h>

/* What is enforced: an answer, the symbolic trace that it is about, and where that came from. Nothing is owned. */
struct enforce {
	const struct trc *t;
	struct img_set *images;
	struct ext_result *extracted;
	struct sched_answer *answer;
	struct dsp *dsp;
};

#define ENFORCE_FAILING_WAYS 2
#define ENFORCE_PASSING_WAYS 9

/*
 * The orderings that matter, of the failing or of the passing order. Both can be enforced in several ways, counted from
 * 0, the likeliest first; ERR_NOANSWER: there is no such way. A failing order also with the synchronisation that led to
 * where its window begins.
 */
err_t enforce_write_failing(const struct enforce *e, unsigned way, FILE *f);
err_t enforce_write_alternate(const struct enforce *e, unsigned way, FILE *f);
/* The file beside the trace that holds it; malloc'd. */
char *enforce_file_name(const char *trace, bool alternate, unsigned way);
/* All of them, beside the streams of a trace that is a directory; those that cannot be written are not there then. */
void enforce_keep_files(const struct enforce *e, const char *trace);

/* Are there two system calls on the same file whose order nothing decided, as far as threads were made and waited for? */
bool enforce_calls_race(const struct ext_result *r);

#endif
