/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one judge: how good an answer is, as executed. Everything that chooses between answers asks here. */
#include "analyzer/explain/judge.h"

const char *judge_grade_name(enum judge_grade g)
{
	static const char *const names[] = {
		[JUDGE_NOTHING] = "no failing order", [JUDGE_FAILS] = "failing order only",
		[JUDGE_ALWAYS] = "fails in every order", [JUDGE_REFUTED] = "unconfirmed",
		[JUDGE_FAILS_LATER] = "fails later", [JUDGE_CONFIRMED] = "confirmed", [JUDGE_PROVED] = "proved",
	};

	return names[g];
}

enum judge_passing judge_passing(const struct report_proof *machine)
{
	return !machine->agreed ? JUDGE_NOT_EXECUTED :
	       machine->fails_later ? JUDGE_PASSES_AND_FAILS : JUDGE_PASSES;
}

enum judge_grade judge_answer(const struct sched_answer *a, const struct report_proof *failing,
			      const struct report_proof *alternate)
{
	if (!a || !a->found)
		return JUDGE_NOTHING;
	if (a->deterministic)
		return JUDGE_ALWAYS;
	if (!a->ncause && !a->nalternates)
		return JUDGE_FAILS;
	switch (judge_passing(alternate)) {
	case JUDGE_NOT_EXECUTED:
		return JUDGE_REFUTED;
	case JUDGE_PASSES_AND_FAILS:
		return JUDGE_FAILS_LATER;
	default:
		break;
	}
	if (!failing->agreed || !a->ncause)
		return JUDGE_REFUTED;
	return a->cause_minimal && !a->cause_executed ? JUDGE_PROVED : JUDGE_CONFIRMED;
}
