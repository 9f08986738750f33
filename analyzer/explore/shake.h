/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs of the real program with delays, as csched hunt makes them, for a part of the time: late stores, timing
 * and the answers of the world are nothing that the machine could show in another order.
 */
#ifndef CSCHED_EXPLORE_SHAKE_H
#define CSCHED_EXPLORE_SHAKE_H

#include "analyzer/explore/enforce.h"

struct xpl_shake {
	double since;  /* CLOCK_MONOTONIC: when exploring was taken up again; 0: nothing is shaken */
	double explore; /* seconds until the next runs */
	uint64_t turns, runs;
	bool busy;
};

/* From now on. */
void xpl_shake_begin(struct xpl_shake *k);
bool xpl_shake_is_due(const struct xpl_shake *k);
/*
 * Runs, for half of the time that was explored (open: patterns are; else for twice that time), but no longer than until `until'
 * (CLOCK_MONOTONIC). *trace: of one that failed, below n->work, with its enum trc_failure_kind; NULL: none did. A run that only takes long is no failure here.
 */
err_t xpl_shake(struct xpl_shake *k, const struct xpl_native *n, double until, bool open, uint64_t seed,
		char **trace, uint32_t *kind);

#endif
