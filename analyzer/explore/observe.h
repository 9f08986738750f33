/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Watching an execution and making a model of it: which memory is shared, and what happened to it. */
#ifndef CSCHED_EXPLORE_OBSERVE_H
#define CSCHED_EXPLORE_OBSERVE_H

#include "analyzer/explore/model.h"
#include "analyzer/execute/orders.h"

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

/* An order that is to be executed. */
struct xpl_order {
	struct mach_step *steps;
	size_t n;
	bool expects;            /* it is to show ... */
	struct xpl_event expect; /* ... this event with its value */
	bool onward;             /* its last step lets a thread go on as far as it can; it is no event */
	uint64_t key;            /* pcr: of the pattern it is for */
};

struct xpl_seen {
	struct mach_tried tried;
	struct xpl_trace *trace; /* NULL: it was executed, but what it did is not known */
	bool native;       /* by the real program */
	bool showed;       /* what was expected, as an access of memory that only this thread used, or in the trace */
	char *left;        /* its trace below the work directory, when it is of a failure; else NULL */
	char *output;      /* what it wrote to its standard output and error, up to a limit */
	size_t output_len;
	bool output_full; /* it wrote more */
};

/* An order, executed and watched. */
err_t xpl_observe(struct mach_run *run, struct img_set *images, const struct xpl_prelude *p,
		  const struct xpl_order *order, uint64_t most, struct xpl_seen *out);
/* Each thread's part without others in between, in this order of all threads: see struct mach_try. */
err_t xpl_observe_serial(struct mach_run *run, struct img_set *images, const struct xpl_prelude *p,
			 const uint32_t *order, uint64_t most, struct xpl_seen *out);
/*
 * Another run of the same program in the terms of the first one: places where that has them, threads by its
 * numbers (UINT32_MAX: it has no such thread).
 */
struct xpl_terms {
	struct img_set *images;
	const uint32_t *threads; /* by this run's numbers */
	uint32_t nthreads;       /* of the first run */
};

/* The recorded order; tried has no meaning then. terms NULL: its own; expect: what it is to show, or NULL. */
err_t xpl_observe_recorded(struct mach_run *run, struct img_set *images, const struct xpl_prelude *p,
			   const struct xpl_terms *terms, const struct xpl_event *expect, struct xpl_seen *out);
void xpl_seen_free(struct xpl_seen *s);

#endif
