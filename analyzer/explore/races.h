/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Data races as a by-product: pairs of conflicting accesses that no operation orders, each executed in both
 * orders, and told by what the other order does.
 */
#ifndef CSCHED_EXPLORE_RACES_H
#define CSCHED_EXPLORE_RACES_H

#include "analyzer/explore/drive.h"

/* The worst first. */
enum xpl_race_outcome { XPL_RACE_FAILS, XPL_RACE_DIFFERS, XPL_RACE_SAME, XPL_RACE_NOT_EXECUTED, XPL_RACE_OUTCOMES };
extern const char *const xpl_race_words[XPL_RACE_OUTCOMES];

struct xpl_race_end {
	uint64_t pc;
	uint32_t thread;
	bool reads, writes;
};

struct xpl_race {
	struct xpl_race_end first, second; /* as they came when the race was seen */
	uint64_t address;
	uint64_t pairs;          /* instances in the traces that were seen */
	enum xpl_race_outcome outcome;
	bool decides;            /* one of its orders fails and the other does not */
	char *why;               /* how the order that is worse ended, malloc'd */
	/* private */
	uint32_t trace, events[2];
};

struct xpl_races {
	VEC(struct xpl_race) v;  /* the worst first */
	uint64_t orders;         /* executed for them */
	bool more;               /* than are looked at */
};

/*
 * All races of the traces of d, executed on exec, as long as d's options give it time. Of those with one outcome the ones
 * that decide it come first, then those that come earlier in an execution: what comes later may be a consequence.
 */
err_t xpl_races_find(struct xpl_drive *d, const struct xpl_executor *exec, struct xpl_races *out);
void xpl_races_free(struct xpl_races *r);

#endif
