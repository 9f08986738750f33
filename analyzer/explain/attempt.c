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

/* What is looked at now, in words; malloc'd. */
static char *scope_text(const struct explanation *e)
{
	const struct ext_result *x = e->extracted;
	struct strbuf b = { 0 };

	if (e->scope.in_middle)
		strbuf_fmt(&b, "%" PRIu64 " events around an update that was lost", x->total);
	else if (x->from)
		strbuf_fmt(&b, "the last %" PRIu64 " shared events", x->total);
	else
		strbuf_fmt(&b, "the whole run, %" PRIu64 " shared events", x->total);
	if (e->scope.focus)
		strbuf_fmt(&b, ", only what %s touched", x->trace->threads[x->trace->failure.thread].id);
	if (e->scope.onward)
		strbuf_str(&b, ", and what threads do next");
	if (e->scope.model == SCHED_TSO)
		strbuf_str(&b, ", with store buffers");
	return strbuf_take(&b);
}

static char *outcome_text(const struct explanation *e)
{
	const struct report_proof *fails = &e->failing_proof.by[REPORT_MACHINE];
	const struct report_proof *passes = &e->alternate_proof.by[REPORT_MACHINE];
	const struct sched_answer *a = e->answer;
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

static void describe(struct explanation *e, struct report_attempt *t)
{
	t->outcome = owned(e, outcome_text(e));
	t->grade = judge_grade_name(judge_answer(e));
}

void explain_attempt(struct explanation *e, const char *method, double since, const char *outcome, bool taken)
{
	struct report_attempt t = { .method = method, .effort = explain_effort(e) - since };

	if (!e->extracted || !e->answer)
		return;
	t.scope = owned(e, scope_text(e));
	describe(e, &t);
	if (outcome)
		t.outcome = owned(e, xstrdup(outcome));
	if (taken)
		e->attempt = e->attempts.n;
	else
		t.grade = "none";
	vec_push(&e->attempts, t);
	log_line(LOG_EXPLAIN, 1, "%s, %s, effort %.2f: %s (%s)", t.scope, t.method, t.effort, t.outcome, t.grade);
}

void explain_attempt_executed(struct explanation *e, double since)
{
	if (!e->attempts.n || !e->answer)
		return;
	struct report_attempt *t = &e->attempts.v[e->attempts.n - 1];

	t->effort += explain_effort(e) - since;
	describe(e, t);
	log_line(LOG_EXPLAIN, 1, "  executed: %s (%s)", t->outcome, t->grade);
}
