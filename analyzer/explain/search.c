/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The search for an explanation: one loop over scopes and methods.
 *
 * A scope says what may be looked at, a method how. The loop takes the cheapest pair of the two that has not been tried,
 * executes what comes of it, and keeps the better candidate (judge.c). It ends with a proof, or when nothing that the answer
 * at hand is worth is left to be tried. Small scopes cost least: the latest divergence is preferred.
 */
#include "analyzer/explain/judge.h"

#include <string.h>

static const struct method methods[] = {
	{ "core", core_cost, core_run },
	{ "core, another branch", branch_cost, branch_run },
	{ "difference", difference_cost, difference_run },
	{ "earlier cause", earlier_cost, earlier_run },
	{ "lost update", lost_cost, lost_run },
};
#define NMETHODS (sizeof methods / sizeof *methods)
_Static_assert(NMETHODS <= sizeof((struct view){ 0 }.tried) / sizeof(unsigned), "view.tried[] is by method");

/* ---- scopes ---- */

struct view *search_view(struct search *s, const struct explain_scope *scope, double price)
{
	for (size_t i = 0; i < s->views.n; i++)
		if (scope_same(&s->views.v[i]->scope, scope))
			return s->views.v[i];

	struct view *v = xcalloc(1, sizeof *v);

	*v = (struct view){ .scope = *scope, .price = price };
	vec_push(&s->views, v);
	return v;
}

static bool is_at_end(const struct view *v)
{
	return !v->scope.in_middle && !v->scope.focus && !v->scope.onward;
}

/* Too small a window shows neither cause nor alternate. */
static bool is_answered(const struct candidate *c)
{
	const struct sched_answer *a = c->answer;

	return a->found && (a->nalternates > 0 || (a->deterministic && !c->extracted->from));
}

static bool is_largest(const struct view *v)
{
	return !v->extracted->from ||
	       (v->scope.window >= LIMIT_LARGEST_WINDOW && v->extracted->total >= LIMIT_LARGEST_WINDOW);
}

/* The next window, where the solver has exhausted this one. */
static void add_larger(struct search *s, const struct view *v)
{
	struct explain_scope larger = v->scope;

	if (s->chosen || !is_at_end(v) || !v->solved || is_answered(v->solved) || is_answered(s->best) ||
	    v->solved->answer->timed_out || is_largest(v))
		return;
	larger.window = scope_larger(s->e, v->scope.window, v->extracted);
	search_view(s, &larger, v->price + LIMIT_PRICE_LARGER)->executed_only = false;
}

/* Nothing in this window helps, the damage having been done before it: where only execution looks. */
static void add_before(struct search *s, const struct view *v)
{
	struct explain_scope larger = v->scope;
	bool in_vain = v->executed ? judge_passing(s->best) != JUDGE_PASSES : v->solved && v->tried[0] > 1;

	if (s->chosen || !is_at_end(v) || v->scope.model != SCHED_SC || !in_vain || !v->extracted->from ||
	    v->scope.window >= LIMIT_LARGEST_WINDOW || judge_passing(s->best) != JUDGE_DOES_NOT_PASS)
		return;
	larger.window *= (uint64_t)LIMIT_HISTORY_GROWTH;
	if (larger.window > LIMIT_LARGEST_WINDOW)
		larger.window = (uint64_t)LIMIT_LARGEST_WINDOW;
	size_t n = s->views.n;
	struct view *w = search_view(s, &larger, v->price + LIMIT_PRICE_BEFORE);
	w->executed_only |= s->views.n > n;
}

/* The failing thread itself has touched little, be the run ever so long. */
static void add_focus(struct search *s, const struct view *v)
{
	const struct sym_failure *f = &v->extracted->trace->failure;
	struct explain_scope whole = v->scope;

	if (s->chosen || !is_at_end(v) || !v->solved || !v->solved->answer->found || !v->extracted->from ||
	    judge_has_cause(s->best) || v->scope.model != SCHED_SC || f->nblocked || f->thread == SYM_NONE ||
	    mach_length(s->e->run) > LIMIT_FOCUS_RUN)
		return;
	whole.focus = whole.whole = true;
	whole.window = (uint64_t)LIMIT_FOCUS_EVENTS;
	search_view(s, &whole, LIMIT_PRICE_FOCUS);
}

/* What a thread would have done next may be what was missing. */
static void add_onward(struct search *s, const struct view *v)
{
	struct explain_scope onward = v->scope;
	bool passes = judge_passing(s->best) != JUDGE_DOES_NOT_PASS;

	if (!is_at_end(v) || !v->solved || !v->solved->answer->found || !onward_may_help(v->extracted->trace) ||
	    judge_needs_buffers(v->solved) || (v->solved->answer->timed_out && !judge_has_cause(v->solved)) ||
	    (!is_answered(v->solved) && v->extracted->from && !s->chosen) ||
	    (passes && s->e->followed.insns > LIMIT_ONWARD_RUN))
		return;
	onward.onward = true;
	search_view(s, &onward, v->price + LIMIT_PRICE_ONWARD);
}

/*
 * Did a load overtake a store? It did where a store that was still in a buffer explains what it saw, and it may have where
 * the record says what that was, and no order gives it. A value that was only chosen to follow a branch, or a call through a
 * table that the linker fills in, tells nothing of buffers.
 */
static bool overtook(const struct explanation *e)
{
	const struct mach_forced *forced;

	for (size_t n = mach_forced(e->run, &forced); n-- > 0;)
		if (forced[n].buffered || forced[n].logged)
			return true;
	return false;
}

/* Store buffers come first where something points to them, and last where nothing else explains the failure. */
static void add_first(struct search *s)
{
	struct explain_scope first = { .window = s->chosen ? s->o->window : (uint64_t)LIMIT_WINDOW, .whole = s->o->whole };
	struct explain_scope tso = first;
	bool points = s->o->model == SCHED_TSO || overtook(s->e);

	tso.model = SCHED_TSO;
	if (!s->chosen)
		tso.window = (uint64_t)LIMIT_WINDOW_TSO;
	if (s->o->model != SCHED_TSO)
		search_view(s, &first, 0);
	search_view(s, &tso, points ? -LIMIT_PRICE_TSO : LIMIT_PRICE_TSO);
}

/* ---- the loop ---- */

struct pair {
	struct view *view;
	const struct method *method;
	double cost;
};

/* When all effort that nobody asked for is used up, some is left for what looks far back. */
static bool may_exceed(const struct view *v, const struct method *m)
{
	return v->scope.focus || m->run == lost_run;
}

static struct pair cheapest(const struct search *s)
{
	struct pair best = { .cost = NO_USE };
	bool spent = s->best && explain_out_of_time(s->e);

	for (size_t i = 0; i < s->views.n; i++)
		for (size_t k = 0; k < NMETHODS && !s->views.v[i]->closed; k++) {
			struct view *v = s->views.v[i];
			double cost = spent && !may_exceed(v, &methods[k]) ? NO_USE : methods[k].cost(s, v, v->tried[k]);

			if (cost < best.cost)
				best = (struct pair){ v, &methods[k], cost };
		}
	return best;
}

/* What another look may cost, when there is this answer. */
static double worth(const struct search *s)
{
	static const double by_grade[] = {
		[JUDGE_NOTHING] = INFINITY, [JUDGE_FAILS] = LIMIT_PRICE_TSO, [JUDGE_ALWAYS] = LIMIT_LATER,
		[JUDGE_REFUTED] = LIMIT_PRICE_TSO, [JUDGE_AVOIDED] = LIMIT_PRICE_TSO, [JUDGE_FAILS_LATER] = LIMIT_PRICE_TSO,
		[JUDGE_DIFFERS] = LIMIT_PRICE_TSO, [JUDGE_CONFIRMED] = LIMIT_LATER, [JUDGE_PROVED] = LIMIT_LATER,
	};

	if (!s->best)
		return INFINITY;
	return judge_needs_buffers(s->best) ? -INFINITY : by_grade[judge_grade(s->best)];
}

static bool is_solving(const struct method *m)
{
	return m->run == core_run || m->run == branch_run;
}

static void take(struct search *s, struct view *v, const struct method *m, struct candidate *c)
{
	vec_push(&s->found, c);
	if (m->run == core_run)
		v->solved = c;
	if (is_solving(m))
		v->last = c;
	if (is_solving(m) && (!v->base || judge_is_better(c, v->base) || m->run == core_run))
		v->base = c;
	if (!s->best || judge_is_better(c, s->best))
		s->best = c;
}

static err_t look(struct search *s, const struct pair *p, struct candidate **out, char **outcome)
{
	struct view *v = p->view;
	unsigned tried = v->tried[p->method - methods]++;
	double enough = explain_effort(s->e) + LIMIT_FOCUS_EFFORT;

	if (v->scope.focus && s->e->effort_end > 0 && s->e->effort_end < enough)
		s->e->effort_end = enough;
	if (!v->extracted)
		TRY(scope_extract(s->e, s->o, &v->scope, &v->extracted));
	if (v->scope.focus && v->extracted->total > LIMIT_FOCUS_EVENTS) {
		v->closed = true;
		*outcome = xstrdup("the failing thread touched too much");
		return NULL;
	}
	return p->method->run(s, v, tried, out, outcome);
}

/* One pair. That a look elsewhere fails is no reason to lose what was found. */
static err_t try_pair(struct search *s, const struct pair *p)
{
	struct view *v = p->view;
	struct candidate *c = NULL;
	char *outcome = NULL;
	double since = explain_effort(s->e);
	err_t bad = look(s, p, &c, &outcome);

	if (bad && !s->best)
		return bad;
	if (bad) {
		free(outcome);
		outcome = xstrdup(bad->msg);
		err_free(bad);
		v->closed = true;
		candidate_free(c);
		c = NULL;
	}
	attempt_note(s->e, v, p->method->name, since, c, outcome);
	free(outcome);
	if (c)
		take(s, v, p->method, c);
	if (!s->best || !v->extracted || v->closed)
		return NULL;
	add_larger(s, v);
	add_before(s, v);
	add_focus(s, v);
	add_onward(s, v);
	return NULL;
}

err_t search_run(struct search *s)
{
	add_first(s);
	for (;;) {
		struct pair p = cheapest(s);

		if (!p.method || p.cost > worth(s) || (s->best && explain_past_deadline(s->e)))
			return NULL;
		TRY(try_pair(s, &p));
	}
}
