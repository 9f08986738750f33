/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The real program: recording a run of it, and bringing it into an order that was found. */
#ifndef CSCHED_EXPLORE_ENFORCE_H
#define CSCHED_EXPLORE_ENFORCE_H

#include "analyzer/explore/observe.h"

#include <limits.h>

struct xpl_native {
	char **argv;
	const char *shim, *fail_exit;
	double limit;          /* seconds for one run */
	char work[PATH_MAX - 64];
	char input[PATH_MAX];
	uint64_t runs;
	int status;            /* of the last run, as wait() has it */
	bool timed_out;        /* the last run was ended by that limit */
};

err_t xpl_native_open(struct xpl_native *n);
void xpl_native_close(struct xpl_native *n);
/*
 * One run, with this schedule file (NULL: as it likes). *trace: what it left, below n->work; NULL: nothing.
 * *output: the end of what it printed.
 */
err_t xpl_native_run(struct xpl_native *n, const char *schedule, char **trace, char **output);
/*
 * The order of a trace as a schedule file. next[thread]: what it would have done next, as other traces
 * show it, or NULL; `fails' is the thread that failed, XPL_NONE: none can go on.
 * ERR_NOANSWER: nothing in it can be enforced.
 */
err_t xpl_native_write(const struct xpl_trace *t, const struct xpl_event *const *next, uint32_t fails,
		       const struct trc *recorded, struct img_set *images, const struct xpl_prelude *p,
		       const char *path);
/* Did the last run print this at the end of its output? */
bool xpl_native_printed(const struct xpl_native *n, const char *bytes, size_t len);
/* What a run left is not needed any more. */
void xpl_native_drop(const char *trace);
/* Moves a trace of xpl_native_run() to a directory; its new path, malloc'd. */
err_t xpl_native_keep(const char *trace, const char *out, char **path);

#endif
