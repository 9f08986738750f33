/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The 17 memory-access patterns (three of length 2, five of length 3, nine over two variables), as
 * instances in a trace.
 *
 * An instance is a choice of events of two threads. An order shows it when the steps come in that
 * order and, between the first and the last step on a variable, nobody else writes it. Steps of one
 * thread are consecutive: between them it does not access their variables.
 */
#ifndef CSCHED_EXPLORE_PATTERNS_H
#define CSCHED_EXPLORE_PATTERNS_H

#include "analyzer/explore/model.h"

#define XPL_KINDS 17

/* Why a candidate is not worth solving, in the order of the paper's Table 2. */
enum xpl_rule {
	XPL_RULE_NONE,
	XPL_RULE_UNDEFINED,   /* none of the 17 */
	XPL_RULE_COVERED,
	XPL_RULE_ORDER,       /* program order, creation or joining contradict it */
	XPL_RULE_OLD_STATE,   /* no read sees, and no write leaves, anything new */
	XPL_RULE_INTERRUPTED, /* the thread itself accesses the variable in between */
	XPL_RULE_REDUNDANT,   /* only events of different variables change places */
	XPL_RULES
};

struct xpl_pattern {
	uint8_t kind, n;    /* 1..17; steps */
	uint32_t steps[4];  /* events of the trace */
	uint64_t places[4]; /* pcs */
	uint64_t key;       /* of kind and places: the same in every order of one run */
	enum xpl_rule rule; /* the first that is against it; COVERED: the trace's own order shows it */
	uint32_t score;     /* the more the sooner */
};

extern const char *const xpl_rule_name[XPL_RULES];
/* "R(x) W(x) R(x)", with who does what: "a", "b" */
extern const struct xpl_kind {
	const char *steps;   /* "RWR": what each does */
	const char *threads; /* "aba" */
	const char *vars;    /* "xxx" */
} xpl_kinds[XPL_KINDS + 1];

/*
 * Candidates are built as in the paper's algorithm 3 (two accesses that conflict; three from two of those; four from two of
 * different variables), and each is counted by the first rule that is against it. Of length 4 those are left out, and not
 * counted, in which a thread accesses one of its two variables between its own steps.
 *
 * All instances of a trace that are in the table and that program order allows, one by one. Numbers of
 * others are added to filtered[rule]. false: there were more than anyone looks at, or tell() had enough
 * (true).
 */
bool xpl_patterns(const struct xpl_trace *t, bool (*tell)(void *arg, const struct xpl_pattern *p),
		  void *arg, uint64_t filtered[XPL_RULES]);

/* The paper's estimate of how many there are, from the places that read and write each variable. */
double xpl_patterns_estimate(const struct xpl_trace *t, double by_kind[XPL_KINDS + 1]);

#endif
