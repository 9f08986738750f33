/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Moments of a failing order from which threads that go on undisturbed do not fail: moments.c finds them, telling.c says what they tell. */
#ifndef CSCHED_EXPLAIN_MOMENTS_H
#define CSCHED_EXPLAIN_MOMENTS_H

#include "analyzer/explain/candidate.h"

/*
 * How much of an order can be told: what it turns round of the root cause or where the same was
 * done at another time; something else, which leads aside; or nothing, because it avoids the
 * failure by what was never recorded.
 */
enum telling { TELLS_NOTHING, LEADS_ASIDE, TELLS };

/* How good an order is, as executed and told, from worst to best. */
enum grade { FAILS, MUTE_AND_FAILS_LATER, MUTE, ASIDE, FAILS_LATER, CLEAN };

struct executed {
	struct sched_order order;
	size_t kept;            /* so many of its events are as in the failing order */
	struct sched_edge pair; /* that it turns round; index SYM_NONE: none */
	size_t end;             /* where both of these are behind */
	size_t from;            /* the place in the failing order from which threads go freely */
	enum telling told;
	bool met;               /* see struct report_proof */
	enum grade grade;
	char *why;
};

struct moments {
	const struct candidate *base;
	struct explanation *e;
	const struct sched_order *failing;
	struct mach_point *points;
	size_t npoints;
	size_t *of;       /* by event of the failing order, see explain_points() */
	size_t *previous; /* by event of the failing order: the one of its thread before it, + 1; 0: none */
	size_t *at_point; /* events of the failing order, by point: those of point p (from 1) are ... */
	size_t *first;    /* ... at_point[first[p] .. first[p + 1]) */
	size_t *switches; /* places in the failing order where another thread goes on; 0 first */
	size_t nswitches;
	size_t bad;       /* from this switch on none helps */
	bool known;       /* there is a root cause that orders are compared with */
	unsigned tries;
	double end;       /* in effort; 0: none */
	size_t minimal;   /* so many pairs make the difference, as executed; 0: not known */
	struct executed best;
};

/*
 * Looks before event `before` of base's failing order (SIZE_MAX: anywhere), within so much effort (0: no limit). known: the
 * order is to be about base's root cause. s->best.grade is FAILS when there is none. To be freed in any case.
 */
err_t moments_find(const struct candidate *base, bool known, size_t before, double effort, struct moments *s);
void moments_free(struct moments *s);

const struct sym_event *moments_event(const struct moments *s, struct sched_ref r);
/* The first pair about the root cause that this order turns round, of the closest there are; it is put into `new`. */
enum telling telling_pair(const struct moments *s, struct executed *new);
/* Without a root cause to compare with: what happened from the switch on, until it is too late. */
enum telling telling_own_pair(const struct moments *s, size_t which, struct executed *new);

#endif
