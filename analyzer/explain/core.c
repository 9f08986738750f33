/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The solver as a method: the smallest set of orderings that forces the failure within a scope, and orders without it. It is
 * given a little effort at first, then some more, and all that is left only where nothing else has answered.
 */
#include "analyzer/explain/judge.h"

struct asking {
	const struct search *s;
	struct candidate *c;
	err_t bad;
};

/*
 * In an order far from the recorded one mappings lie elsewhere, and system calls come with arguments nobody knows the answer
 * to; and what lies between the last branch and the failure may go another way with other values: then an order that is
 * nearer is wanted, before a cause is looked for.
 */
static bool stands(void *arg, const struct sched_order *failing, enum sched_keeps keeps)
{
	struct asking *x = arg;

	x->c->kept = keeps;
	x->bad = candidate_execute_failing(x->c, failing);
	return x->bad || x->c->failing_proof.by[REPORT_MACHINE].agreed || explain_out_of_time(x->c->e);
}

static bool stops(void *arg, const char *phase, double part)
{
	const struct asking *x = arg;
	const struct explain_options *o = x->s->o;

	return explain_computed_long(x->c->e) || (o->progress && o->progress(o->progress_arg, phase, part));
}

static void count(struct explanation *e, const struct sched_answer *a)
{
	e->solved += a->stats.effort;
	e->asked += a->stats.questions;
	if (a->stats.constraints >= e->clauses) {
		e->clauses = a->stats.constraints;
		e->bools = a->stats.variables;
	}
}

err_t core_solve(struct search *s, const struct view *v, const struct core_options *how, struct candidate **out)
{
	struct explanation *e = s->e;
	struct asking x = { .s = s, .c = candidate_new(e, &v->scope, v->extracted) };
	struct sched_options o;

	sched_options_init(&o);
	o.model = v->scope.model;
	/* 0 would be no limit. */
	o.timeout = e->deadline > 0 ? (explain_out_of_time(e) ? 0.01 : e->deadline - explain_clock()) : 0;
	if (e->effort_end > 0)
		o.effort = e->effort_end > explain_effort(e) ? e->effort_end - explain_effort(e) : 0.01;
	if (how->effort > 0 && (o.effort <= 0 || o.effort > how->effort))
		o.effort = how->effort;
	o.alternates = s->o->alternates;
	o.leave_path = how->leave_path;
	o.unproved = how->unproved;
	o.keeps = how->keeps;
	if (!how->leave_path && v->scope.model == SCHED_SC) {
		o.stands = stands;
		o.stands_arg = &x;
	}
	o.progress = stops;
	o.progress_arg = &x;
	err_t bad = sched_solve(v->extracted->trace, &o, &x.c->answer);
	if (!bad)
		count(e, x.c->answer);
	if (x.bad) {
		err_free(bad);
		bad = x.bad;
	}
	if (bad) {
		candidate_free(x.c);
		x.c = NULL;
	}
	*out = x.c;
	return bad;
}

/* Cut short, or too much for anybody to read: more effort may tell. */
static bool is_hard(const struct candidate *c)
{
	const struct sched_answer *a = c->answer;

	return a->timed_out ? !judge_has_cause(c) : a->found && !a->deterministic && a->ncause > LIMIT_READABLE_PAIRS;
}

/* What was used had been freed: that another order of anything avoids it says little. The solver has all its effort at once. */
static bool is_given_all(const struct view *v)
{
	return v->extracted->misuse.kind != EXT_MISUSE_NONE;
}

double core_cost(const struct search *s, const struct view *v, unsigned tried)
{
	(void)s;
	if (v->scope.in_middle || v->executed_only)
		return NO_USE;
	if (!tried)
		return v->price + LIMIT_SOON;
	if (tried > 2 || !v->solved || is_given_all(v) || !is_hard(v->solved) || (tried == 2 && !v->solved->answer->timed_out))
		return NO_USE;
	return v->price + (tried == 1 ? LIMIT_LATER : LIMIT_REST);
}

/*
 * Where an answer without it passes already it is asked first whether this one would say more; for a larger window to prove
 * it takes longer than everything else.
 */
static err_t look_onward(struct search *s, const struct view *v, struct core_options *how, struct candidate **out, bool *more)
{
	how->unproved = true;
	TRY(core_solve(s, v, how, out));
	how->unproved = false;
	*more = candidate_blames_computed(*out);
	/* What was hard to find is harder to prove, and there may be nothing left for it. */
	if (!*more || (*out)->answer->stats.effort >= LIMIT_HARD)
		return NULL;
	candidate_free(*out);
	*out = NULL;
	return core_solve(s, v, how, out);
}

/* Store buffers are named only where they are needed, unless they were asked for or nothing else explains it. */
static bool is_of_buffers(const struct search *s, const struct candidate *c)
{
	return c->answer->ndelays || s->o->model == SCHED_TSO ||
	       (s->best && s->best->scope.model == SCHED_SC && !s->best->answer->found);
}

err_t core_run(struct search *s, struct view *v, unsigned tried, struct candidate **out, char **outcome)
{
	const double efforts[] = { LIMIT_SOON, LIMIT_LATER, 0 };
	struct core_options how = { .effort = efforts[tried] };
	bool more = true;

	if (is_given_all(v))
		how.effort = 0;
	if (v->scope.onward && s->best && judge_passing(s->best) != JUDGE_DOES_NOT_PASS) {
		how.effort = LIMIT_ONWARD_EFFORT;
		TRY(look_onward(s, v, &how, out, &more));
	} else {
		TRY(core_solve(s, v, &how, out));
	}
	struct candidate *c = *out;

	if (v->scope.model == SCHED_TSO && c->answer->found) {
		if (!is_of_buffers(s, c)) {
			*outcome = xstrdup("no store buffers are needed");
			candidate_free(c);
			*out = NULL;
			return NULL;
		}
		if (judge_needs_buffers(c))
			return NULL;
		TRY(candidate_execute_failing(c, &c->answer->failing));
	}
	if (!more || (tried < 2 && how.effort > 0 && is_hard(c)))
		return NULL;
	return candidate_execute_alternates(c);
}

/* ---- another branch ---- */

static bool can_turn(const struct candidate *c)
{
	const struct sched_answer *a = c->answer;

	return a->nalternates && a->alternates[0].path_differs && a->alternates[0].left.thread != SYM_NONE;
}

/*
 * An alternate that leaves the recorded path may fail behind that all the same: only its execution tells. Then the next branch
 * is turned.
 */
double branch_cost(const struct search *s, const struct view *v, unsigned tried)
{
	const struct explain_scope *scope = &v->scope;

	if (!v->last || scope->onward || scope->focus || scope->in_middle || scope->model != SCHED_SC ||
	    tried >= LIMIT_BRANCHES || v->branch_effort >= LIMIT_BRANCH_EFFORT || !can_turn(v->last) ||
	    judge_passing(v->last) == JUDGE_PASSES || judge_passing(s->best) == JUDGE_PASSES ||
	    !v->last->alternate_proof.by[REPORT_MACHINE].runs)
		return NO_USE;
	return v->price + (v->last->answer->stats.effort > LIMIT_HARD ? LIMIT_PRICE_BRANCH_HARD : LIMIT_PRICE_BRANCH);
}

/* For the time of a question: the branches behind which it failed all the same are not turned again. */
static void set_firm(const struct view *v, bool firm)
{
	for (size_t k = 0; k < v->firm.n; k++) {
		struct sym_thread *t = &v->extracted->trace->threads[v->firm.v[k].thread];

		for (size_t i = 0; i < t->nconds; i++)
			if (t->conds[i].after == v->firm.v[k].index)
				t->conds[i].firm = firm;
	}
}

err_t branch_run(struct search *s, struct view *v, unsigned tried, struct candidate **out, char **outcome)
{
	struct sched_ref left = v->last->answer->alternates[0].left;
	struct core_options how = { .keeps = v->last->kept, .leave_path = true };
	double since = explain_effort(s->e);

	(void)tried;
	(void)outcome;
	left.index = v->extracted->trace->threads[left.thread].conds[left.index].after;
	vec_push(&v->firm, left);
	set_firm(v, true);
	err_t bad = core_solve(s, v, &how, out);
	set_firm(v, false);
	v->branch_effort += explain_effort(s->e) - since;
	if (bad)
		return bad;
	/* The failing order is the one that has been executed: only the branch is another. */
	candidate_failed_as(*out, v->last);
	return candidate_execute_alternates(*out);
}
