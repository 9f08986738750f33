/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Watching an execution and making a model of it: which memory is shared, and what happened to it. */
#ifndef CSCHED_EXPLORE_OBSERVE_H
#define CSCHED_EXPLORE_OBSERVE_H

#include "analyzer/explore/model.h"
#include "analyzer/machine/machine.h"

/* What is known of the run before the first thread was made. */
struct xpl_prelude;
/*
 * Executes the followed run once: where does the first thread come into being? Orders begin
 * there (mach_try_from()). ERR_NOANSWER: no thread was made.
 */
err_t xpl_prelude_find(struct mach_run *run, struct img_set *images, struct xpl_prelude **out);
void xpl_prelude_free(struct xpl_prelude *p);
/* How often the thread had executed this instruction before that. */
uint64_t xpl_prelude_count(const struct xpl_prelude *p, uint32_t thread, uint64_t pc);

struct xpl_seen {
	struct mach_tried tried;
	struct xpl_trace *trace;
	char *output;      /* what it wrote to its standard output and error, up to a limit */
	size_t output_len;
	bool output_full; /* it wrote more */
};

/* An order of the steps, executed and watched. */
err_t xpl_observe(struct mach_run *run, struct img_set *images, const struct xpl_prelude *p,
		  const struct mach_step *steps, size_t nsteps, uint64_t most, struct xpl_seen *out);
/* Each thread's part without others in between, in this order of all threads: see struct mach_try. */
err_t xpl_observe_serial(struct mach_run *run, struct img_set *images, const struct xpl_prelude *p,
			 const uint32_t *order, uint64_t most, struct xpl_seen *out);
/* The recorded order; tried has no meaning then. */
err_t xpl_observe_recorded(struct mach_run *run, struct img_set *images, const struct xpl_prelude *p,
			   struct xpl_seen *out);
void xpl_seen_free(struct xpl_seen *s);

#endif
