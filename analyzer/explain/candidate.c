/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Candidates: made, copied, freed. */
#include "analyzer/explain/candidate.h"

struct candidate *candidate_new(struct explanation *e, const struct explain_scope *scope, const struct ext_result *extracted)
{
	struct candidate *c = xcalloc(1, sizeof *c);

	*c = (struct candidate){ .e = e, .scope = *scope, .extracted = extracted };
	return c;
}

struct candidate *candidate_copy(const struct candidate *of)
{
	struct candidate *c = candidate_new(of->e, &of->scope, of->extracted);

	c->answer = sched_answer_copy(of->answer);
	candidate_failed_as(c, of);
	return c;
}

void candidate_failed_as(struct candidate *c, const struct candidate *of)
{
	c->kept = of->kept;
	c->failing_proof = of->failing_proof;
	free(c->failing_why);
	c->failing_why = of->failing_why ? xstrdup(of->failing_why) : NULL;
	c->failing_proof.by[REPORT_MACHINE].why = c->failing_why;
}

void candidate_free(struct candidate *c)
{
	if (!c)
		return;
	sched_answer_free(c->answer);
	free(c->failing_why);
	free(c->alternate_why);
	free(c->note);
	free(c);
}
