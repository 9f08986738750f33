/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cores: why no order of a trace shows a pattern, kept so that other patterns with the same reason
 * are not searched for.
 *
 * A search for a pattern that fails reached some of its steps and no more. The core is the
 * shortest beginning of the steps that holds every step the search used to refuse an event, with the variables that
 * stay between two steps when that beginning is done. A pattern contains the core when those steps are among its own, in
 * the same order, with no other step on one of their variables in between, and those variables stay
 * between two steps there too. Whatever the failed search refused, a search for that pattern refuses in the same state:
 *
 * - a step before its turn: the same steps are its own, and their turn comes no earlier;
 * - a write of a variable between two of its steps: the variable is between two steps of the pattern as well;
 * - another value seen by a thread that has a step to come: it has it in the pattern too;
 * - what locks, program order, creation and values refuse does not depend on the pattern.
 *
 * So every way through the trace's states that the pattern leaves was open to the failed search, which went
 * through all of them to no avail: the pattern is impossible in that trace for the same reason.
 */
#ifndef CSCHED_EXPLORE_CORES_H
#define CSCHED_EXPLORE_CORES_H

#include "analyzer/explore/search.h"

struct xpl_core {
	uint32_t trace;
	uint8_t n, open;  /* steps; which of their variables have a later step: a bit for each step */
	uint32_t steps[XPL_STEPS];
	uint8_t reason;   /* enum xpl_reason of the search that failed, for the caller */
	uint64_t object;
};

struct xpl_cores {
	VEC(struct xpl_core) v;
	uint32_t *table; /* 1 + number in v */
	size_t cap;
};

/* Of a search in this trace that ended with XPL_IMPOSSIBLE; reason and object are kept with it. */
void xpl_cores_add(struct xpl_cores *c, const struct xpl_trace *t, uint32_t trace, const uint32_t *steps, unsigned n,
		   const struct xpl_obstacles *o, uint8_t reason, uint64_t object);
/* One that the pattern contains, or NULL. */
const struct xpl_core *xpl_cores_find(const struct xpl_cores *c, const struct xpl_trace *t, uint32_t trace,
				      const uint32_t *steps, unsigned n);
void xpl_cores_free(struct xpl_cores *c);

#endif
