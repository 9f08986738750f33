/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several orders at a time: processes like this one, each with the followed run and its compiled code. */
#ifndef CSCHED_EXPLORE_WORKERS_H
#define CSCHED_EXPLORE_WORKERS_H

#include "analyzer/explore/drive.h"

struct xpl_workers;

struct xpl_work {
	void *arg;
	/* In the new process, before its first order. */
	void (*begin)(void *arg, unsigned number);
	/* events: see xpl_workers_run(); its own from then on. */
	err_t (*run)(void *arg, const struct xpl_order *order, const struct xpl_trace *events, struct xpl_seen *out);
};

err_t xpl_workers_start(unsigned n, const struct xpl_work *work, struct xpl_workers **out);
/* All of them, each by whoever has time. events[i] is passed on with order i; NULL, or a NULL in it: none. */
err_t xpl_workers_run(struct xpl_workers *w, const struct xpl_order *orders, size_t n, struct xpl_trace *const *events,
		      struct xpl_seen *out);
void xpl_workers_end(struct xpl_workers *w);

#endif
