/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The catalogue of bug patterns: one fixture for each new one, and what all hints have in common. */
#include "tests/lib/dsp_expect.h"

/* Two threads find `table' unset and set it; what T0.2 set is lost. */
static void lazy(struct fixture *fx)
{
	fixture_init(fx, "/home/u/lazy", "/src/lazy.c");
	struct sym_trace *t = fx->trace;
	uint32_t table = fixture_var(fx, "table", "int", 0);
	expr_id zero = expr_const(t->pool, 32, 0);
	uint32_t look[2], set[2];

	fixture_children(fx);
	for (uint32_t i = 0; i < 2; i++) {
		look[i] = fixture_event(fx, i + 1, SYM_READ, table, "get", 10);
		fixture_cond(fx, i + 1, look[i], expr_binary(t->pool, EX_EQ, fixture_sym(fx, i + 1, look[i]), zero));
		set[i] = fixture_event(fx, i + 1, SYM_WRITE, table, "get", 12);
		fixture_at(fx, i + 1, set[i])->value = expr_const(t->pool, 32, 7 + i);
	}
	uint32_t end = fixture_event(fx, 2, SYM_READ, table, "use", 20);
	fixture_event(fx, 2, SYM_FAIL, SYM_NONE, "use", 21);
	fixture_fails(fx, SYM_FAIL_ASSERT, 2, "Assertion failed",
		      expr_binary(t->pool, EX_EQ, fixture_sym(fx, 2, end), expr_const(t->pool, 32, 7)));
	fixture_order(fx, &fx->answer.failing, "00 1 22 1 22");
	fixture_cause(fx, 2, set[1], 1, set[0]);
	fixture_alternate(fx, "00 11");
}

/* Two threads find a place left and count it, atomically each; both did. */
static void checked_atomically(struct fixture *fx)
{
	fixture_init(fx, "/home/u/seats", "/src/seats.c");
	struct sym_trace *t = fx->trace;
	uint32_t taken = fixture_var(fx, "taken", "int", 0);
	expr_id zero = expr_const(t->pool, 32, 0), one = expr_const(t->pool, 32, 1);
	uint32_t look[2], count[2];

	fixture_children(fx);
	for (uint32_t i = 0; i < 2; i++) {
		look[i] = fixture_event(fx, i + 1, SYM_READ, taken, "book", 10);
		fixture_cond(fx, i + 1, look[i], expr_binary(t->pool, EX_EQ, fixture_sym(fx, i + 1, look[i]), zero));
		count[i] = fixture_event(fx, i + 1, SYM_RMW, taken, "book", 12);
		fixture_at(fx, i + 1, count[i])->value = expr_binary(t->pool, EX_ADD, fixture_sym(fx, i + 1, count[i]), one);
	}
	uint32_t end = fixture_event(fx, 1, SYM_READ, taken, "book", 14);
	fixture_event(fx, 1, SYM_FAIL, SYM_NONE, "book", 14);
	fixture_fails(fx, SYM_FAIL_ASSERT, 1, "Assertion `taken <= 1' failed",
		      expr_binary(t->pool, EX_EQ, fixture_sym(fx, 1, end), expr_const(t->pool, 32, 2)));
	fixture_order(fx, &fx->answer.failing, "00 1 22 111");
	fixture_cause(fx, 2, count[1], 1, count[0]);
	fixture_alternate(fx, "00 1111");
}

/* Three are counted, and two come. */
static void wrong_count(struct fixture *fx)
{
	fixture_init(fx, "/home/u/phases", "/src/phases.c");
	struct sym_object barrier = { .name = (char *)"phase", .kind = SYM_BARRIER, .owner = SYM_NONE, .count = 3 };
	uint32_t b = sym_add_object(fx->trace, &barrier);
	struct sym_failure *f = &fx->trace->failure;

	fixture_children(fx);
	uint32_t x = fixture_event(fx, 1, SYM_BARRIER_ENTER, b, "work", 10);
	uint32_t y = fixture_event(fx, 2, SYM_BARRIER_ENTER, b, "work", 10);
	fixture_fails(fx, SYM_FAIL_DEADLOCK, SYM_NONE, "deadlock", EXPR_NONE);
	f->blocked = xcalloc(2, sizeof *f->blocked);
	f->nblocked = 2;
	f->blocked[0] = (struct sym_blocked){ 1, x };
	f->blocked[1] = (struct sym_blocked){ 2, y };
	fixture_order(fx, &fx->answer.failing, "00 12");
	fixture_cause(fx, 1, x, 2, y);
	fixture_alternate(fx, "00 21");
}

static const struct dsp_hint *named(const struct dsp *d, const char *pattern)
{
	for (size_t i = 0; i < d->nmore; i++)
		if (!strcmp(d->more[i].pattern, pattern))
			return &d->more[i];
	return NULL;
}

static struct dsp *project(void (*make)(struct fixture *fx), struct fixture *fx)
{
	struct dsp *d = NULL;

	make(fx);
	err_t e = dsp_build(fx->trace, &fx->answer, &d);
	CHECK(!e, "it projects");
	return d;
}

/* All matchers look: the general ones stand behind the hint. */
static void all_look(void)
{
	struct fixture fx;
	struct dsp *d = project(lazy, &fx);
	const struct dsp_hint *region = named(d, "region"), *order = named(d, "order");

	CHECK(!strcmp(d->hint.pattern, "lazy-init"), "the special pattern is the hint (is %s)", d->hint.pattern);
	CHECK(region && region->kind == DSP_HINT_ATOMIC, "the general one stands behind it");
	CHECK(order && order->kind == DSP_HINT_ORDER && order->nsteps == 1, "and the most general");
	CHECK(d->hint.nsteps >= 2 && d->hint.step[0].kind == DSP_STEP_HOLD, "it says what it would enforce");
	dsp_free(d);
	fixture_free(&fx);
}

static void tried(struct dsp_hint *h, enum dsp_tried verdict)
{
	h->trial = (struct dsp_trial){ .verdict = verdict, .runs = 60, .without_runs = 50, .without_failures = 9,
				       .failures = verdict == DSP_STILL_FAILS ? 10 : 0 };
}

/* What was shown to help comes first; what did not is not called advice any more. */
static void ranked_by_trial(void)
{
	struct fixture fx;
	struct dsp *d = project(lazy, &fx);
	char *said = d->hint.text, *text;

	tried(&d->hint, DSP_STILL_FAILS);
	tried(&d->more[0], DSP_STILL_FAILS);
	tried(&d->more[1], DSP_HOLDS);
	char *better = d->more[1].text;
	dsp_rank_hints(d);
	CHECK(d->hint.text == better, "what holds is the hint");
	CHECK(d->also.text == said && dsp_is_refuted(&d->also), "what was the hint is told as refuted");
	text = dsp_trial_text(&d->also.trial);
	CHECK(text && strstr(text, "10 failures in 60 runs (without: 9 in 50)") && strstr(text, "symptom"),
	      "it says so (says %s)", text);
	free(text);
	text = dsp_trial_text(&d->hint.trial);
	CHECK(text && !strcmp(text, "With this fix applied by csched: 0 failures in 60 runs (without: 9 in 50)."),
	      "and what holds too (says %s)", text);
	free(text);
	dsp_rank_hints(d);
	CHECK(d->hint.text == better, "ranking again changes nothing");
	dsp_free(d);
	fixture_free(&fx);
}

static const struct expected table[] = {
	{ "lazy initialisation", lazy, DSP_HINT_ATOMIC,
	  { "Initialise `table' once, with pthread_once()", "lazy.c:10 to 12", "finds it unset", "T0.2 writes `table' at lazy.c:12" },
	  DSP_HINT_NONE, 1 },
	{ "a barrier that waits for one too many", wrong_count, DSP_HINT_NONE,
	  { "Set the count of `phase'", "it is 3, and only 2 ever come", "phases.c:10" }, DSP_HINT_NONE, 0 },
	{ "a check and an atomic update", checked_atomically, DSP_HINT_ATOMIC,
	  { "a compare-exchange of `taken'", "seats.c:10 to 12", "T0.2 updates `taken' at seats.c:12" }, DSP_HINT_NONE, 1 },
};

int main(void)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		check_hint(&table[i]);
	all_look();
	ranked_by_trial();
	for (size_t i = 0; dsp_pattern_name(i); i++)
		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(dsp_pattern_name(i), dsp_pattern_name(k)), "pattern %s is listed once", dsp_pattern_name(i));
	CHECK_END();
}
