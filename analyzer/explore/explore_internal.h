/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between explore.c, one exploration from beginning to end, and confirm.c, which says what failed. */
#ifndef CSCHED_EXPLORE_EXPLORE_INTERNAL_H
#define CSCHED_EXPLORE_EXPLORE_INTERNAL_H

#include "analyzer/explore/explore.h"
#include "analyzer/explore/shake.h"

struct session {
	const struct explore_options *o;
	struct explore_result *res;
	struct xpl_native native;
	struct xpl_runner runner;
	struct xpl_executor executor;
	struct xpl_drive_options drive;
	double follow_until; /* CLOCK_MONOTONIC; 0: nothing is followed */
	double began, saved; /* CLOCK_MONOTONIC */
	double save_seconds; /* how long saving took the last time */
	size_t confirmed;    /* failures, when it was saved */
	bool caught_up;      /* what its files said is read: they may be written again */
	err_t unsaved;       /* why not */
	struct xpl_shake shake;
};

/* For struct xpl_drive_options: an order failed; does the real program fail so, too? */
bool confirm_failed(void *arg, const struct xpl_seen *seen, enum xpl_bad bad, bool *stop);
/* How many failures the real program showed. */
size_t confirm_count(const struct explore_result *r);
/* What an enum trc_failure_kind is called here. */
enum xpl_bad confirm_bad(uint32_t kind);
/* Runs with delays, when it is time; true: one failed, and that is enough. */
bool confirm_shake(struct session *s);

#endif
