/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was tried to explain a failure, in what scope and with what result: `csched explain --why`, CSCHED_LOG=explain. */
#include "analyzer/explain/judge.h"

#include "common/log.h"
#include "common/strbuf.h"

#include <inttypes.h>

static const char *owned(struct explanation *e, char *text)
{
	vec_push(&e->texts, text);
	return text;
}

static char *outcome_text(const struct candidate *c)
{
	const struct report_proof *fails = &c->failing_proof.by[REPORT_MACHINE];
	const struct report_proof *passes = &c->alternate_proof.by[REPORT_MACHINE];
	const struct sched_answer *a = c->answer;
	struct strbuf b = { 0 };

	if (!a->found) {
		strbuf_fmt(&b, "no failing order%s%s", a->why ? ": " : "", a->why ? a->why : "");
		return strbuf_take(&b);
	}
	strbuf_fmt(&b, "failing order %s", fails->agreed ? "executed" : fails->runs ? "refuted" : "not executed");
	if (a->deterministic)
		strbuf_str(&b, "; nothing avoids it");
	else if (a->ncause)
		strbuf_fmt(&b, "; %zu ordering%s%s", a->ncause, a->ncause == 1 ? "" : "s",
			   a->cause_executed ? " found by executing" : a->cause_minimal ? ", minimal" : "");
	else
		strbuf_str(&b, "; no cause");
	if (a->nalternates)
		strbuf_fmt(&b, "; passing order %s%s%s",
			   passes->agreed ? (passes->fails_later ? "fails later" : "executed") :
			   passes->runs ? "refuted" : "not executed",
			   passes->why && (passes->runs && (!passes->agreed || passes->fails_later)) ? ": " : "",
			   passes->why && (passes->runs && (!passes->agreed || passes->fails_later)) ? passes->why : "");
	if (a->timed_out)
		strbuf_str(&b, "; cut short");
	return strbuf_take(&b);
}

void attempt_note(struct explanation *e, const struct view *v, const char *method, double since, struct candidate *c,
		  const char *outcome)
{
	struct report_attempt t = { .method = method, .effort = explain_effort(e) - since, .grade = "none" };

	t.scope = owned(e, scope_text(c ? &c->scope : &v->scope, c ? c->extracted : v->extracted));
	t.outcome = owned(e, outcome ? xstrdup(outcome) : c ? outcome_text(c) : xstrdup("nothing"));
	if (c) {
		t.grade = judge_grade_name(judge_grade(c));
		c->attempt = e->attempts.n;
	}
	vec_push(&e->attempts, t);
	log_line(LOG_EXPLAIN, 1, "%s, %s, effort %.2f: %s (%s)", t.scope, t.method, t.effort, t.outcome, t.grade);
}
