/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What executes an order: the machine, the real program, or processes that do it at the same time. */
#ifndef CSCHED_EXPLORE_RUNNER_H
#define CSCHED_EXPLORE_RUNNER_H

#include "analyzer/explore/live.h"
#include "analyzer/explore/workers.h"

enum explore_on {
	EXPLORE_AUTO,    /* the machine; the real program what that cannot know */
	EXPLORE_MACHINE,
	EXPLORE_NATIVE,  /* the real program everything */
};

struct xpl_runner {
	enum explore_on on;
	struct xpl_live live;         /* the first run; without a program `on' is EXPLORE_MACHINE */
	struct mach_run *run;
	const struct xpl_drive *drive;
	uint64_t most;                /* instructions of one order */
	uint64_t native_orders;       /* executed by the real program */
	struct xpl_workers *workers;  /* NULL: orders are executed here */
};

/* For struct xpl_executor. */
err_t xpl_runner_run(void *runner, const struct xpl_order *order, struct xpl_seen *out);
err_t xpl_runner_run_all(void *runner, const struct xpl_order *orders, size_t n, struct xpl_seen *out);

/* So many at a time from here on. The followed run must not change any more. */
err_t xpl_runner_start(struct xpl_runner *r, unsigned jobs);
void xpl_runner_end(struct xpl_runner *r);

#endif
