/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cause of a cause. Two threads meet where they could not have met had not something gone wrong before: both took the
 * same number, both found the device free. Turning round what they do there avoids the failure, and so the solver proves it to
 * be the cause; but it is a symptom. What went wrong before is an operation that another thread cut in two. It is the cause
 * when the failing order with nothing but that turned round passes, and passes whatever the order of what was taken for the
 * cause: as it was, turned round as well, and threads going on undisturbed. All of these are executed.
 */
#include "analyzer/explain/judge.h"
#include "analyzer/order/turn.h"

#include <stdlib.h>
#include <string.h>

/* A thread's operation on one variable, from its first access to its last, and the first and the last write of others in between. */
struct cut {
	struct sched_ref first, intruder, later, last;
	bool depends; /* what was read first decides, or is part of, what is written last */
	bool met;     /* both threads are of the cause at hand */
	size_t at;    /* where it ends in the failing order */
};

struct looking {
	const struct candidate *base;
	const struct sym_trace *t;
	const struct sched_order *failing;
	struct order_places places;
	VEC(struct cut) cuts;
	double end; /* in effort */
	unsigned tests;
};

static bool is_in_cause(const struct sched_answer *a, const struct sym_trace *t, const struct sym_event *e)
{
	for (size_t i = 0; i < a->ncause; i++)
		if (order_same_target(order_event(t, a->cause[i].before), e))
			return true;
	return false;
}

static bool meets(const struct sched_answer *a, uint32_t thread)
{
	for (size_t i = 0; i < a->ncause; i++)
		if (a->cause[i].before.thread == thread || a->cause[i].after.thread == thread)
			return true;
	return false;
}

/* One operation: the second access goes on with what the first one saw; or an update, and a look at what came of it. */
static bool is_operation(const struct sym_trace *t, const struct sym_event *first, const struct sym_event *last, bool *depends)
{
	bool reads = first->op == SYM_READ || first->op == SYM_RMW;

	*depends = reads && order_writes(last) &&
		   (dsp_decides_on_way(t, first, last) || dsp_mentions_read(t, last->value, first));
	return *depends || (first->op == SYM_RMW && last->op == SYM_READ);
}

/* The writes of others between the two, in the failing order. */
static bool is_cut(const struct looking *l, struct cut *c)
{
	size_t from = order_place(&l->places, c->first), to = order_place(&l->places, c->last);
	const struct sym_event *first = order_event(l->t, c->first);
	bool any = false;

	if (from == ORDER_NOWHERE || to == ORDER_NOWHERE || to - from > LIMIT_REACH)
		return false;
	for (size_t i = from; i < to; i++) {
		const struct sym_event *e = order_event(l->t, l->failing->refs[i]);

		if (e->thread == first->thread || !order_is_access(e) || !order_writes(e) || e->target != first->target)
			continue;
		c->later = l->failing->refs[i];
		if (!any)
			c->intruder = c->later;
		any = true;
	}
	return any;
}

/* The thread came back to a line (an instruction, where lines are not known) further up: what it does there is another round. */
static bool is_next_round(const struct sym_trace *t, const struct sym_event *first, const struct sym_event *last)
{
	if (first->stack == SYM_NONE || last->stack == SYM_NONE || first->pc == last->pc)
		return first->pc == last->pc;

	const struct sym_stack *a = &t->stacks[first->stack], *b = &t->stacks[last->stack];
	uint32_t n = 1;

	/* Down to where they are in different places of the same function. */
	while (n < a->n && n < b->n && a->frames[a->n - n].pc == b->frames[b->n - n].pc &&
	       a->frames[a->n - n].line == b->frames[b->n - n].line)
		n++;
	if (n > a->n || n > b->n)
		return false;
	const struct sym_frame *f = &a->frames[a->n - n], *g = &b->frames[b->n - n];
	return f->line && g->line ? f->line > g->line : f->pc > g->pc;
}

static void add_cut(struct looking *l, struct cut c, const struct sym_event *first, const struct sym_event *last)
{
	const struct sched_answer *a = l->base->answer;

	c.last = (struct sched_ref){ last->thread, last->index };
	c.at = order_place(&l->places, c.last);
	if (!is_operation(l->t, first, last, &c.depends) || is_next_round(l->t, first, last) || !is_cut(l, &c))
		return;
	c.met = meets(a, c.first.thread) && meets(a, c.intruder.thread);
	vec_push(&l->cuts, c);
}

/* What the thread does with a variable from this access to its next write. */
static void find_of(struct looking *l, const struct sym_thread *th, uint32_t at)
{
	const struct sym_event *first = &th->events[at], *last = first;
	struct cut c = { .first = { first->thread, at } };

	for (uint32_t i = at + 1; i < th->nevents && i - at < LIMIT_CUT_EVENTS; i++) {
		if (!order_is_access(&th->events[i]) || th->events[i].target != first->target)
			continue;
		last = &th->events[i];
		add_cut(l, c, first, last);
		if (order_writes(last) || last->pc == first->pc)
			return;
	}
}

/* What ties most to the cause at hand, and then what comes last, is tried first: the less it leads aside. */
static int by_promise(const void *a, const void *b)
{
	const struct cut *x = a, *y = b;

	if (x->met != y->met)
		return y->met - x->met;
	if (x->depends != y->depends)
		return y->depends - x->depends;
	if (x->at != y->at)
		return x->at < y->at ? 1 : -1;
	/* Of what ends there the whole: the check, too, and not the update alone. */
	return x->first.index < y->first.index ? -1 : x->first.index > y->first.index;
}

static void find_cuts(struct looking *l)
{
	for (size_t i = 0; i < l->t->nthreads; i++) {
		const struct sym_thread *th = &l->t->threads[i];

		for (uint32_t k = 0; k < th->nevents; k++)
			if (order_is_access(&th->events[k]) && !is_in_cause(l->base->answer, l->t, &th->events[k]))
				find_of(l, th, k);
	}
	if (l->cuts.n)
		qsort(l->cuts.v, l->cuts.n, sizeof *l->cuts.v, by_promise);
}

/* ---- executing ---- */

static bool enough(const struct looking *l)
{
	return l->tests >= LIMIT_EARLIER || explain_effort(l->base->e) > l->end || explain_past_deadline(l->base->e);
}

static err_t execute(struct looking *l, const struct sched_order *order, bool others_first, enum order_verdict *how)
{
	struct report_proof proof = { 0 };
	char *why = NULL;

	l->tests++;
	TRY(candidate_execute(l->base, order, MACH_OUT_PASSED, others_first, &proof, &why));
	*how = proof.left ? ORDER_UNRESOLVED : proof.agreed && !proof.fails_later ? ORDER_PASSES : ORDER_FAILS;
	free(why);
	return NULL;
}

/* The first of these pairs turned round, and the one of the cause at hand, or none (SIZE_MAX); all else as it was. */
static bool turned(const struct looking *l, const struct sched_edge *pair, size_t of_cause, struct sched_order *out, size_t *end)
{
	const struct sched_answer *a = l->base->answer;
	struct sched_edge pairs[2] = { *pair };
	const bool marked[2] = { true, true };
	size_t n = 1;

	if (of_cause != SIZE_MAX)
		pairs[n++] = a->cause[of_cause];
	return order_turn(l->t, l->failing, pairs, n, marked, out, end);
}

/* The pair alone turned round, the rest as it was: this is where most fail. *kept: behind so many events it is. */
static err_t passes_alone(struct looking *l, const struct sched_edge *pair, struct sched_order *out, size_t *kept, bool *yes)
{
	enum order_verdict how = ORDER_UNRESOLVED;

	*yes = false;
	if (!turned(l, pair, SIZE_MAX, out, kept))
		return NULL;
	err_t bad = execute(l, out, false, &how);
	*yes = !bad && how == ORDER_PASSES;
	if (!*yes)
		sched_order_free(out);
	return bad;
}

/*
 * No order fails, whatever that of the cause at hand is then; one that goes beyond what was recorded says nothing. *undisturbed: one
 * passes in which threads go on freely.
 */
static err_t none_fails(struct looking *l, const struct sched_edge *pair, const struct sched_order *alone, size_t kept,
			bool *undisturbed, bool *none)
{
	const struct sched_answer *a = l->base->answer;
	struct sched_order begun = { .refs = alone->refs, .n = kept };
	enum order_verdict first, others = ORDER_FAILS, both = ORDER_PASSES;

	TRY(execute(l, &begun, false, &first));
	if (first != ORDER_FAILS)
		TRY(execute(l, &begun, true, &others));
	*none = others != ORDER_FAILS;
	*undisturbed = first == ORDER_PASSES || others == ORDER_PASSES;
	for (size_t i = 0; i < a->ncause && *none; i++) {
		struct sched_order order;
		size_t end;

		/* Where there is no such order there is nothing to pass. */
		if (!turned(l, pair, i, &order, &end))
			continue;
		err_t bad = execute(l, &order, false, &both);
		sched_order_free(&order);
		if (bad)
			return bad;
		*none = both != ORDER_FAILS;
	}
	return NULL;
}

/* ---- the candidate ---- */

static char *told(const struct looking *l, const struct candidate *base)
{
	const struct sym_event *e = order_event(l->t, base->answer->cause[0].before);
	const char *name = order_is_access(e) ? l->t->vars[e->target].name : NULL;

	return xasprintf("The failure needs %s%s%s as well; but with the root cause turned round no order failed that was "
			 "executed, whatever that one is then: it is a consequence.", name ? "an order of accesses of `" : "a later ordering",
			 name ? name : "", name ? "'" : "");
}

static err_t make_candidate(struct looking *l, const struct sched_edge *pair, struct sched_order *alone, size_t kept,
			    struct candidate **out)
{
	struct candidate *c = candidate_copy(l->base);
	struct sched_answer *a = c->answer;
	struct report_proof *proof = &c->alternate_proof.by[REPORT_MACHINE];

	a->cause = xrealloc(a->cause, sizeof *a->cause);
	a->cause[0] = *pair;
	a->ncause = 1;
	a->cause_minimal = a->cause_tested = a->cause_executed = a->cause_earlier = true;
	a->cause_events = 0;
	a->rule = NULL;
	for (size_t i = 0; i < a->nalternates; i++)
		sched_order_free(&a->alternates[i].order);
	a->alternates = xrealloc(a->alternates, sizeof *a->alternates);
	a->nalternates = 1;
	a->alternates[0] = (struct sched_alternate){
		.order = { .refs = alone->refs, .n = kept }, .inverted = *pair, .left = { .thread = SYM_NONE },
		.path_differs = kept < alone->n, .executed = true,
	};
	alone->refs = NULL;
	c->note = told(l, l->base);
	err_t bad = candidate_execute_alternate(c, &a->alternates[0], proof, &c->alternate_why);
	if (bad)
		candidate_free(c);
	else
		*out = c;
	return bad;
}

/* ---- the method ---- */

double earlier_cost(const struct search *s, const struct view *v, unsigned tried)
{
	const struct candidate *c = s->best;

	if (tried > 1 || !c || c->answer->cause_earlier || c->extracted != v->extracted || !c->answer->ncause ||
	    judge_grade(c) < JUDGE_FAILS_LATER || c->scope.model != SCHED_SC || c == v->traced ||
	    c->answer->failing.n > LIMIT_BEFORE_SOLVED || v->extracted->trace->failure.nblocked)
		return NO_USE;
	return LIMIT_PRICE_EARLIER;
}

/* Nothing but this pair turned round: *out, if that is the cause of the one at hand. */
static err_t try_pair(struct looking *l, const struct sched_edge *pair, struct candidate **out)
{
	struct sched_order alone = { 0 };
	bool yes, undisturbed;
	size_t kept;

	TRY(passes_alone(l, pair, &alone, &kept, &yes));
	if (!yes)
		return NULL;
	err_t bad = none_fails(l, pair, &alone, kept, &undisturbed, &yes);
	if (!bad && yes)
		bad = make_candidate(l, pair, &alone, undisturbed ? kept : alone.n, out);
	sched_order_free(&alone);
	return bad;
}

static err_t try_cuts(struct looking *l, struct candidate **out)
{
	for (size_t i = 0; i < l->cuts.n && !*out; i++) {
		const struct cut *c = &l->cuts.v[i];
		const struct sched_edge pairs[] = { { c->first, c->intruder }, { c->later, c->last }, { c->intruder, c->last } };
		size_t n = memcmp(&c->intruder, &c->later, sizeof c->later) ? 3 : 2;

		for (size_t k = 0; k < n && !*out && !enough(l); k++)
			TRY(try_pair(l, &pairs[k], out));
	}
	return NULL;
}

err_t earlier_run(struct search *s, struct view *v, unsigned tried, struct candidate **out, char **outcome)
{
	struct looking l = { .base = s->best, .t = v->extracted->trace, .failing = &s->best->answer->failing,
			     .end = explain_effort(s->e) + LIMIT_EARLIER_EFFORT };

	(void)tried;
	v->traced = s->best;
	l.places = order_places_of(l.t, l.failing);
	find_cuts(&l);
	err_t bad = try_cuts(&l, out);
	if (!*out)
		*outcome = xasprintf("%u orders executed with one of %zu operations before it not cut: the cause at hand stays",
				     l.tests, l.cuts.n);
	order_places_free(&l.places);
	vec_free(&l.cuts);
	return bad;
}
