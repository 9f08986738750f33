/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Executing an order on the real program, where the machine cannot know what the world would answer. */
#ifndef CSCHED_EXPLORE_LIVE_H
#define CSCHED_EXPLORE_LIVE_H

#include "analyzer/explore/drive.h"
#include "analyzer/explore/enforce.h"

struct xpl_live {
	struct xpl_native *native;
	const struct trc *first;       /* the first run, and what is known of it */
	struct img_set *images;
	const struct xpl_prelude *prelude;
	uint64_t most;                 /* instructions of a run that are followed */
};

/* The steps as events, as the traces of d show them. */
struct xpl_trace *xpl_live_events(const struct xpl_drive *d, const struct mach_step *steps, size_t n);
/*
 * The order, enforced; what it did is followed and told in the first run's terms. tried.steps: of the order that
 * came in a row; fewer than were asked for when it could not be enforced. tried.why then says why.
 */
err_t xpl_live_run(struct xpl_live *l, const struct xpl_order *order, const struct xpl_trace *events,
		   struct xpl_seen *out);

#endif
