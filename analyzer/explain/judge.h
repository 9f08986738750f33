/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one judge of answers: judge.c.
 *
 * An answer is two orders and the difference between them. How good it is follows from what the machine made of the two
 * when it executed them, and then from how the difference was found; from nothing else.
 */
#ifndef CSCHED_EXPLAIN_JUDGE_H
#define CSCHED_EXPLAIN_JUDGE_H

#include "analyzer/explain/candidate.h"

/* How good an answer is, from worst to best. */
enum judge_grade {
	JUDGE_NOTHING,     /* no failing order */
	JUDGE_FAILS,       /* a failing order, and nothing that avoids it */
	JUDGE_ALWAYS,      /* and no order of the scope avoids it: proved */
	JUDGE_REFUTED,     /* what is to avoid it fails all the same, executed; or it was not executed to its end */
	JUDGE_AVOIDED,     /* an order that passes, executed, and no cause */
	JUDGE_FAILS_LATER, /* it passes this failure, and comes to another */
	JUDGE_DIFFERS,     /* both orders executed; that the pairs named make the difference was not */
	JUDGE_CONFIRMED,   /* both orders executed, and the difference */
	JUDGE_PROVED,      /* and the orderings that differ are a minimal core of the scope */
};

/* What the machine made of its passing order, from worst to best. */
enum judge_passing { JUDGE_DOES_NOT_PASS, JUDGE_PASSES_AND_FAILS, JUDGE_PASSES };

const char *judge_grade_name(enum judge_grade g);
enum judge_grade judge_grade(const struct candidate *c);
/*
 * The one comparison: by grade, where a cause that can be read comes before a proof; then by what was still to come, by
 * whether the failure point is passed, by the cause.
 */
bool judge_is_better(const struct candidate *c, const struct candidate *than);
enum judge_passing judge_passing(const struct candidate *c);
bool judge_has_cause(const struct candidate *c); /* one that was shown to be minimal */
bool judge_is_readable(const struct candidate *c); /* of few enough orderings for anybody to read them */
/* The machine has no store buffers: what needs them is executed by the checker alone. */
bool judge_needs_buffers(const struct candidate *c);

/* Enough other orders were executed, and none of them passes. */
bool judge_fails_always(const struct explanation *e);

/*
 * The last word, after everything was tried: how sure the answer is. What was refuted is taken out of it. After this only
 * the projection and the report are to be made.
 */
void judge_conclude(struct explanation *e);

#endif
