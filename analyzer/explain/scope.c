/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looking in another scope without losing the answer at hand: candidates, and which of two stays. */
#include "analyzer/explain/judge.h"

struct explain_candidate explain_put_aside(struct explanation *e)
{
	struct explain_candidate c = { e->scope, e->extracted, e->answer, e->failing_proof, e->alternate_proof,
				       e->failing_why, e->alternate_why, e->attempt, judge_answer(e) };

	e->extracted = NULL;
	e->answer = NULL;
	e->failing_proof = e->alternate_proof = (struct report_validation){ 0 };
	e->failing_why = e->alternate_why = NULL;
	return c;
}

void explain_forget(struct explain_candidate *c)
{
	ext_result_free(c->extracted);
	sched_answer_free(c->answer);
	free(c->failing_why);
	free(c->alternate_why);
}

void explain_put_back(struct explanation *e, struct explain_candidate *c)
{
	struct explain_candidate worse = explain_put_aside(e);

	explain_forget(&worse);
	e->scope = c->scope;
	e->extracted = c->extracted;
	e->answer = c->answer;
	e->failing_proof = c->failing_proof;
	e->alternate_proof = c->alternate_proof;
	e->failing_why = c->failing_why;
	e->alternate_why = c->alternate_why;
	e->attempt = c->attempt;
}

/* Which memory is shared was surveyed for the windows at the run's end; elsewhere it is another. */
static bool is_elsewhere(const struct explain_scope *s, const struct explain_scope *was)
{
	return s->in_middle != was->in_middle || s->focus != was->focus || s->whole != was->whole;
}

bool explain_try(struct explanation *e, const struct explain_scope *s, const struct explain_options *o,
		 err_t (*look)(struct explanation *e, const struct explain_options *o, void *arg), void *arg)
{
	struct explain_candidate was = explain_put_aside(e);
	bool elsewhere = is_elsewhere(s, &was.scope);
	struct ext_survey *survey = e->survey;

	if (elsewhere)
		e->survey = NULL;
	e->scope = *s;
	err_t bad = explain_extract(e, o);
	if (!bad)
		bad = look(e, o, arg);
	if (elsewhere) {
		ext_survey_free(e->survey);
		e->survey = survey;
	}
	bool better = !bad && judge_is_better(e, &was);
	if (better)
		explain_forget(&was);
	else
		explain_put_back(e, &was);
	err_free(bad);
	return better;
}
