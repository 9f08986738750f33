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
		[JUDGE_FAILS_LATER] = "fails later", [JUDGE_DIFFERS] = "confirmed, perhaps by another ordering",
		[JUDGE_CONFIRMED] = "confirmed", [JUDGE_PROVED] = "proved",
	};

	return names[g];
}

static const struct report_proof *failing(const struct candidate *c)
{
	return &c->failing_proof.by[REPORT_MACHINE];
}

static const struct report_proof *passing(const struct candidate *c)
{
	return &c->alternate_proof.by[REPORT_MACHINE];
}

bool judge_has_cause(const struct candidate *c)
{
	return c->answer->ncause && c->answer->cause_minimal;
}

bool judge_is_readable(const struct candidate *c)
{
	return c->answer->ncause <= LIMIT_READABLE_PAIRS;
}

bool judge_needs_buffers(const struct candidate *c)
{
	return c->scope.model == SCHED_TSO && c->answer->ndelays > 0;
}

enum judge_passing judge_passing(const struct candidate *c)
{
	return !c->answer->nalternates || !passing(c)->agreed ? JUDGE_DOES_NOT_PASS :
	       passing(c)->fails_later ? JUDGE_PASSES_AND_FAILS : JUDGE_PASSES;
}

enum judge_grade judge_grade(const struct candidate *c)
{
	const struct sched_answer *a = c->answer;

	if (!a->found)
		return JUDGE_NOTHING;
	/* That nothing avoids the failure is proved only where the scope holds the whole run. */
	if (a->deterministic)
		return c->extracted->from ? JUDGE_FAILS : JUDGE_ALWAYS;
	if (!a->ncause && !a->nalternates)
		return JUDGE_FAILS;
	if (judge_passing(c) == JUDGE_DOES_NOT_PASS || !failing(c)->agreed)
		return JUDGE_REFUTED;
	if (!a->ncause)
		return JUDGE_AVOIDED;
	if (judge_passing(c) == JUDGE_PASSES_AND_FAILS)
		return JUDGE_FAILS_LATER;
	if (a->cause_executed && !a->cause_minimal)
		return JUDGE_DIFFERS;
	return a->cause_minimal && !a->cause_executed && !a->rule ? JUDGE_PROVED : JUDGE_CONFIRMED;
}

/*
 * Where the other thread was in the middle of something (one of two fields written) an answer of the record alone is half of
 * the truth: the other half was still to come.
 */
static bool tells_what_was_to_come(const struct candidate *c)
{
	return c->scope.onward && candidate_blames_computed(c) && !c->answer->timed_out && judge_passing(c) == JUDGE_PASSES;
}

/* An answer as a list of numbers, the most important first; each is the better, the larger it is. */
#define KEYS 7

static void keys_of(const struct candidate *c, int *key)
{
	enum judge_grade grade = judge_grade(c);
	size_t k = 0;

	/* A proof comes before what only was executed; a core that nobody can read does not, nor one of a consequence. */
	key[k++] = grade < JUDGE_CONFIRMED ? grade : JUDGE_CONFIRMED;
	key[k++] = judge_is_readable(c);
	key[k++] = c->answer->cause_earlier;
	key[k++] = grade;
	key[k++] = tells_what_was_to_come(c);
	/* It comes to where it was decided, and the condition holds there; or it never comes there. */
	key[k++] = judge_passing(c) != JUDGE_DOES_NOT_PASS && passing(c)->met;
	key[k++] = judge_has_cause(c);
}

bool judge_is_better(const struct candidate *c, const struct candidate *than)
{
	int is[KEYS], was[KEYS];

	keys_of(c, is);
	keys_of(than, was);
	for (size_t i = 0; i < KEYS; i++)
		if (is[i] != was[i])
			return is[i] > was[i];
	return false;
}

/* ---- the last word ---- */

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
	a->cause_minimal = a->cause_executed = a->cause_tested = false;
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

/* One thread used what another had freed, before the stretch that was looked at: no order of that stretch tells. */
static bool misused_before(const struct explanation *e)
{
	const struct ext_misuse *m = e->extracted ? &e->extracted->misuse : NULL;

	return m && m->kind == EXT_MISUSE_FREED && m->thread != m->freed_by && (m->event == SYM_NONE || m->freed_event == SYM_NONE);
}

bool judge_fails_always(const struct explanation *e)
{
	const struct explain_tried *t = &e->tried;

	if (misused_before(e) || t->unknown || (e->extracted && e->extracted->inside.where))
		return false;

	return e->failing_proof.by[REPORT_MACHINE].agreed && !t->passed && t->failed + t->recurred >= LIMIT_LEAST_FAILING &&
	       t->failed + t->recurred >= t->left;
}

/* Executed, and it did not do what was said of it. */
static bool is_refuted(const struct explanation *e)
{
	const struct report_proof *passing = &e->alternate_proof.by[REPORT_MACHINE];

	return e->answer->nalternates && passing->runs && !passing->agreed && !passing->left;
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
	const struct report_proof *passing = &e->alternate_proof.by[REPORT_MACHINE];
	const char *why = passing->why;

	if (!e->answer->nalternates)
		conclude(e, REPORT_UNCONFIRMED, xstrdup("no order that passes was found to compare with"));
	else if (!e->failing_proof.by[REPORT_MACHINE].agreed)
		conclude(e, REPORT_UNCONFIRMED, xstrdup("the failing order was not executed into the failure"));
	else if (passing->agreed && passing->fails_later)
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
	const struct candidate c = { .e = e, .scope = e->scope, .extracted = e->extracted, .answer = e->answer,
				     .failing_proof = e->failing_proof, .alternate_proof = e->alternate_proof };
	enum judge_grade g = judge_grade(&c);

	switch (g) {
	case JUDGE_PROVED:
		conclude(e, REPORT_PROVED, xstrdup("both orders were executed, and within what was looked at every "
						   "order with these orderings fails"));
		return;
	case JUDGE_DIFFERS:
	case JUDGE_CONFIRMED:
		conclude(e, REPORT_CONFIRMED, xstrdup("both orders were executed; that every order with these "
						      "orderings fails is not proved"));
		return;
	case JUDGE_NOTHING:
		return;
	default:
		break;
	}
	if (judge_needs_buffers(&c)) {
		conclude(e, REPORT_UNCONFIRMED, xstrdup("it needs store buffers, which the machine does not have: both "
							"orders were executed by the checker alone"));
		return;
	}
	if (g == JUDGE_ALWAYS || a->deterministic || (g != JUDGE_FAILS_LATER && judge_fails_always(e)))
		conclude_always(e);
	else if (a->ncause)
		conclude_unconfirmed(e);
}
