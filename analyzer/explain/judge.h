/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one judge of answers: judge.c. */
#ifndef CSCHED_EXPLAIN_JUDGE_H
#define CSCHED_EXPLAIN_JUDGE_H

#include "analyzer/report/report.h"

/* What the machine made of a passing order, from worst to best. */
enum judge_passing { JUDGE_NOT_EXECUTED, JUDGE_PASSES_AND_FAILS, JUDGE_PASSES };

/* How good an answer is as a whole, from worst to best. */
enum judge_grade {
	JUDGE_NOTHING,     /* no failing order */
	JUDGE_FAILS,       /* a failing order, and nothing that avoids it */
	JUDGE_REFUTED,     /* what is to avoid it did not, when it was executed, or could not be executed */
	JUDGE_FAILS_LATER, /* it passes this failure, and fails further on */
	JUDGE_ALWAYS,      /* proved: no order of the scope avoids it */
	JUDGE_CONFIRMED,   /* both orders executed */
	JUDGE_PROVED,      /* and the orderings that differ are a minimal core of the scope */
};

const char *judge_grade_name(enum judge_grade g);
enum judge_passing judge_passing(const struct report_proof *machine);
enum judge_grade judge_answer(const struct sched_answer *a, const struct report_proof *failing,
			      const struct report_proof *alternate);

#endif
