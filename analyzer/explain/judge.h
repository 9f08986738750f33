/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one judge of answers: judge.c.
 *
 * An answer is two orders and the difference between them. How good it is follows from what the machine made of the two
 * when it executed them, and then from how the difference was found; from nothing else.
 */
#ifndef CSCHED_EXPLAIN_JUDGE_H
#define CSCHED_EXPLAIN_JUDGE_H

#include "analyzer/explain/explain.h"

/* How good an answer is, from worst to best. */
enum judge_grade {
	JUDGE_NOTHING,     /* no failing order */
	JUDGE_FAILS,       /* a failing order, and nothing that avoids it */
	JUDGE_ALWAYS,      /* and no order of the scope avoids it: proved */
	JUDGE_REFUTED,     /* what is to avoid it fails all the same, executed; or it was not executed to its end */
	JUDGE_AVOIDED,     /* an order that passes, executed, and no cause */
	JUDGE_FAILS_LATER, /* it passes this failure, and comes to another */
	JUDGE_CONFIRMED,   /* both orders executed */
	JUDGE_PROVED,      /* and the orderings that differ are a minimal core of the scope */
};

/* What the machine made of its passing order, from worst to best. */
enum judge_passing { JUDGE_DOES_NOT_PASS, JUDGE_PASSES_AND_FAILS, JUDGE_PASSES };

const char *judge_grade_name(enum judge_grade g);
/* Of the answer at hand. */
enum judge_grade judge_answer(const struct explanation *e);
/* Than the one put aside: by grade; of two that are as good, the one whose cause has to do with what was still to come. */
bool judge_is_better(const struct explanation *e, const struct explain_candidate *was);
/* Some pair of the root cause is about an event that was still to come when the run failed. */
bool judge_blames_computed(const struct explanation *e);
enum judge_passing judge_passing(const struct explanation *e);
/* Both its orders were executed, and it names a cause of which nothing can be left out: no need to look further. */
bool judge_is_confirmed(const struct explanation *e);

/* Enough other orders were executed, and none of them passes. */
bool judge_fails_always(const struct explanation *e);

/*
 * The last word, after everything was tried: how sure the answer is. What was refuted is taken out of it. After this only
 * the projection and the report are to be made.
 */
void judge_conclude(struct explanation *e);

#endif
