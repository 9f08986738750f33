/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How good an answer is, as executed, and what may be said of it. Everything that chooses between answers asks here. */
#include "analyzer/explain/judge.h"

#include "common/strbuf.h"

const char *judge_grade_name(enum judge_grade g)
{
	static const char *const names[] = {
		[JUDGE_NOTHING] = "no failing order", [JUDGE_FAILS] = "failing order only",
		[JUDGE_ALWAYS] = "fails in every order", [JUDGE_REFUTED] = "unconfirmed",
		[JUDGE_AVOIDED] = "passing order only",
		[JUDGE_FAILS_LATER] = "fails later", [JUDGE_CONFIRMED] = "confirmed", [JUDGE_PROVED] = "proved",
	};

	return names[g];
}

static const struct report_proof *failing(const struct explanation *e)
{
	return &e->failing_proof.by[REPORT_MACHINE];
}

static const struct report_proof *passing(const struct explanation *e)
{
	return &e->alternate_proof.by[REPORT_MACHINE];
}

enum judge_passing judge_passing(const struct explanation *e)
{
	return !e->answer->nalternates || !passing(e)->agreed ? JUDGE_DOES_NOT_PASS :
	       passing(e)->fails_later ? JUDGE_PASSES_AND_FAILS : JUDGE_PASSES;
}

bool judge_is_confirmed(const struct explanation *e)
{
	return explain_has_cause(e) && judge_answer(e) >= JUDGE_CONFIRMED;
}

enum judge_grade judge_answer(const struct explanation *e)
{
	const struct sched_answer *a = e->answer;

	if (!a || !a->found)
		return JUDGE_NOTHING;
	if (a->deterministic)
		return JUDGE_ALWAYS;
	if (!a->ncause && !a->nalternates)
		return JUDGE_FAILS;
	if (judge_passing(e) == JUDGE_DOES_NOT_PASS || !failing(e)->agreed)
		return JUDGE_REFUTED;
	if (!a->ncause)
		return JUDGE_AVOIDED;
	if (judge_passing(e) == JUDGE_PASSES_AND_FAILS)
		return JUDGE_FAILS_LATER;
	return a->cause_minimal && !a->cause_executed && !a->rule ? JUDGE_PROVED : JUDGE_CONFIRMED;
}

/* Some pair of the root cause is about an event that was still to come. */
bool judge_blames_computed(const struct explanation *e)
{
	const struct sched_answer *a = e->answer;

	for (size_t i = 0; i < 2 * a->ncause; i++) {
		struct sched_ref r = i & 1 ? a->cause[i / 2].after : a->cause[i / 2].before;

		if (e->extracted->computed[r.thread] != SYM_NONE &&
		    r.index >= e->extracted->computed[r.thread])
			return true;
	}
	return false;
}

/*
 * The record alone had an answer. When the other thread was in the middle of something (one of two fields written) that
 * answer is half of the truth: the other half was still to come.
 */
static bool tells_more(const struct explanation *e, const struct explain_candidate *was)
{
	return e->scope.onward && !was->scope.onward && judge_blames_computed(e) && !e->answer->timed_out &&
	       e->answer->cause_minimal >= was->answer->cause_minimal && judge_passing(e) == JUDGE_PASSES;
}

bool judge_is_better(const struct explanation *e, const struct explain_candidate *was)
{
	int grade = judge_answer(e);

	return grade > was->grade || (grade == was->grade && tells_more(e, was));
}

/* ---- the last word ---- */

/* Orders that have to fail, executed, before it is said that all that were tried did. */
#define LEAST_FAILING 3

static void conclude(struct explanation *e, enum report_confidence c, char *text)
{
	e->confidence = c;
	e->confidence_text = text;
	vec_push(&e->texts, text);
}

/* No cause, and no order that is said to pass. */
static void withhold(struct sched_answer *a)
{
	for (size_t i = 0; i < a->nalternates; i++)
		sched_order_free(&a->alternates[i].order);
	a->nalternates = 0;
	a->ncause = 0;
	a->cause_minimal = a->cause_executed = false;
}

static char *tried_text(const struct explain_tried *t)
{
	struct strbuf b = { 0 };

	strbuf_fmt(&b, "%u other order%s of the same events, and of threads going on first, last or one after the "
		   "other, %s executed: %u came into this failure", t->orders, t->orders == 1 ? "" : "s",
		   t->orders == 1 ? "was" : "were", t->failed);
	if (t->recurred)
		strbuf_fmt(&b, ", %u into the same failure of another thread or round", t->recurred);
	if (t->other)
		strbuf_fmt(&b, ", %u into another one", t->other);
	if (t->left)
		strbuf_fmt(&b, ", %u could not be executed to the end", t->left);
	strbuf_str(&b, "; none passed");
	return strbuf_take(&b);
}

bool judge_fails_always(const struct explanation *e)
{
	const struct explain_tried *t = &e->tried;

	return failing(e)->agreed && !t->passed && t->failed + t->recurred >= LEAST_FAILING &&
	       t->failed + t->recurred >= t->left;
}

/* Executed, and it did not do what was said of it. */
static bool is_refuted(const struct explanation *e)
{
	return e->answer->nalternates && passing(e)->runs && !passing(e)->agreed && !passing(e)->left;
}

static void conclude_always(struct explanation *e)
{
	struct sched_answer *a = e->answer;
	char *tried = tried_text(&e->tried);

	if (a->deterministic)
		conclude(e, REPORT_ALWAYS, xstrdup("no order of the recorded events avoids the failure: proved"));
	else
		conclude(e, REPORT_ALWAYS, tried);
	if (a->deterministic) {
		free(tried);
		return;
	}
	withhold(a);
	free(a->why);
	a->why = NULL;
	a->tried_always = true;
}

static void conclude_unconfirmed(struct explanation *e)
{
	const char *why = passing(e)->why;

	if (!e->answer->nalternates)
		conclude(e, REPORT_UNCONFIRMED, xstrdup("no order that passes was found to compare with"));
	else if (!failing(e)->agreed)
		conclude(e, REPORT_UNCONFIRMED, xstrdup("the failing order was not executed into the failure"));
	else if (passing(e)->agreed && passing(e)->fails_later)
		conclude(e, REPORT_UNCONFIRMED, xasprintf("the passing order fails later: %s", why ? why : "?"));
	else if (is_refuted(e))
		conclude(e, REPORT_UNCONFIRMED, xasprintf("the cause that was found is withheld, because the order "
							  "without it fails all the same: %s", why ? why : "?"));
	else
		conclude(e, REPORT_UNCONFIRMED, xasprintf("the passing order was not executed to its end%s%s",
							  why ? ": " : "", why ? why : ""));
	if (is_refuted(e)) {
		withhold(e->answer);
		e->alternate_proof = (struct report_validation){ 0 };
	}
}

void judge_conclude(struct explanation *e)
{
	const struct sched_answer *a = e->answer;
	enum judge_grade g = judge_answer(e);

	switch (g) {
	case JUDGE_PROVED:
		conclude(e, REPORT_PROVED, xstrdup("both orders were executed, and within what was looked at every "
						   "order with these orderings fails"));
		return;
	case JUDGE_CONFIRMED:
		conclude(e, REPORT_CONFIRMED, xstrdup("both orders were executed; that every order with these "
						      "orderings fails is not proved"));
		return;
	case JUDGE_NOTHING:
		return;
	default:
		break;
	}
	if (e->scope.model == SCHED_TSO && a->ndelays) {
		conclude(e, REPORT_UNCONFIRMED, xstrdup("it needs store buffers, which the machine does not have: both "
							"orders were executed by the checker alone"));
		return;
	}
	if (g == JUDGE_ALWAYS || (g != JUDGE_FAILS_LATER && judge_fails_always(e)))
		conclude_always(e);
	else if (a->ncause)
		conclude_unconfirmed(e);
}
