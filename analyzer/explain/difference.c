/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Execution as a method: a passing order that keeps as much of the failing one as it can (moments.c), and of the pairs in which
 * the two differ the smallest set that makes the difference, by delta debugging. Where that is too large to be read, or too
 * much to be executed, one pair is told that the passing order turns round.
 */
#include "analyzer/explain/judge.h"
#include "analyzer/explain/moments.h"
#include "analyzer/order/turn.h"

#include <stdlib.h>
#include <string.h>

/* It passes, and has every ordering of the root cause: then these are not why the run fails. */
static bool refutes_cause(const struct moments *s)
{
	const struct sched_answer *a = s->base->answer;
	struct order_places there = order_places_of(s->base->extracted->trace, &s->best.order);
	bool all = a->ncause > 0;

	for (size_t i = 0; i < a->ncause && all; i++) {
		size_t after = order_place(&there, a->cause[i].after);

		all = after != SIZE_MAX && order_place(&there, a->cause[i].before) < after;
	}
	order_places_free(&there);
	return all;
}

/* ---- the smallest difference ---- */

/* The pairs that the passing order turns round in the stretch that decides, and what becomes of sets of them. */
struct delta {
	struct moments *s;
	struct candidate *c;  /* to execute on */
	struct sched_edge *pairs;
	size_t n;
	double end;           /* in effort */
	struct sched_alternate best; /* the last order that passes */
	struct report_proof proof;
	char *why;
	err_t bad;
};

/*
 * The control: as long a part of the failing order, nothing turned round. Where threads that go on from there pass as well it
 * is not the pairs that make the difference.
 */
static bool passes_unturned(struct delta *d, const bool *marked)
{
	struct order_places failing = order_places_of(d->c->extracted->trace, d->s->failing);
	struct sched_alternate part = { .order.refs = d->s->failing->refs, .left = { .thread = SYM_NONE }, .path_differs = true };
	struct report_proof proof = { 0 };
	char *why = NULL;

	for (size_t i = 0; i < d->n; i++)
		if (marked[i] && order_place(&failing, d->pairs[i].after) >= part.order.n)
			part.order.n = order_place(&failing, d->pairs[i].after) + 1;
	order_places_free(&failing);
	d->bad = candidate_execute_alternate(d->c, &part, &proof, &why);
	free(why);
	return d->bad || (proof.agreed && !proof.fails_later);
}

static enum order_verdict execute_set(void *arg, const bool *marked)
{
	struct delta *d = arg;
	struct sched_alternate alt = { .left = { .thread = SYM_NONE }, .executed = true };
	struct report_proof proof = { 0 };
	char *why = NULL;

	if (d->bad || explain_effort(d->s->e) > d->end || explain_past_deadline(d->s->e) ||
	    !order_turn(d->c->extracted->trace, d->s->failing, d->pairs, d->n, marked, &alt.order, &alt.order.switches))
		return ORDER_UNRESOLVED;
	size_t all = alt.order.n;
	alt.order.n = alt.order.switches;
	alt.order.switches = 0;
	alt.path_differs = alt.order.n < all;
	d->bad = candidate_execute_alternate(d->c, &alt, &proof, &why);
	bool passes = !d->bad && proof.agreed && !proof.fails_later;
	if (!passes || passes_unturned(d, marked)) {
		sched_order_free(&alt.order);
		free(why);
		return passes || d->bad || proof.left || proof.fails_later ? ORDER_UNRESOLVED : ORDER_FAILS;
	}
	sched_order_free(&d->best.order);
	free(d->why);
	d->best = alt;
	d->proof = proof;
	d->why = why;
	return ORDER_PASSES;
}

/* Where the stretch ends that decides: kept up to there, nothing helps. */
static size_t too_late(const struct moments *s, size_t from)
{
	size_t k = 0;

	while (k < s->nswitches && s->switches[k] <= from)
		k++;
	k = k > s->bad ? k : s->bad;
	return k < s->nswitches ? s->switches[k] : s->failing->n;
}

/* What lies closest together turns least. */
static int by_distance(const void *a, const void *b, void *arg)
{
	const struct order_places *p = arg;
	const struct sched_edge *x = a, *y = b;
	size_t dx = order_place(p, x->after) - order_place(p, x->before), dy = order_place(p, y->after) - order_place(p, y->before);

	return dx < dy ? -1 : dx > dy;
}

static void find_deltas(struct delta *d)
{
	struct moments *s = d->s;
	struct sched_edge *turned = xcalloc((size_t)LIMIT_TURNED + 1, sizeof *turned);
	size_t n = order_turned(s->base->extracted->trace, s->failing, &s->best.order, s->best.from,
				too_late(s, s->best.from), turned, (size_t)LIMIT_TURNED);

	struct order_places failing = order_places_of(s->base->extracted->trace, s->failing);

	qsort_r(turned, n, sizeof *turned, by_distance, &failing);
	order_places_free(&failing);
	d->pairs = xcalloc(n + 2, sizeof *d->pairs);
	/* The one that tells most is tried alone at first. */
	if (s->best.pair.before.index != SYM_NONE)
		d->pairs[d->n++] = s->best.pair;
	for (size_t i = 0; i < n; i++)
		if (!d->n || memcmp(&turned[i], &d->pairs[0], sizeof *turned))
			d->pairs[d->n++] = turned[i];
	free(turned);
}

/* The pairs that make the difference are of the core: then that, which is proved, is told. */
static bool is_in_cause(const struct sched_answer *a, const struct delta *d, const bool *marked)
{
	for (size_t i = 0; i < d->n; i++) {
		bool in = false;

		for (size_t k = 0; k < a->ncause; k++)
			in |= !memcmp(&a->cause[k], &d->pairs[i], sizeof *a->cause);
		if (marked[i] && !in)
			return false;
	}
	return !a->cause_executed && a->ncause <= LIMIT_READABLE_PAIRS;
}

static void tell_set(struct sched_answer *a, const struct delta *d, const bool *marked)
{
	a->cause = xrealloc(a->cause, (d->n + 1) * sizeof *a->cause);
	a->ncause = 0;
	for (size_t i = 0; i < d->n; i++)
		if (marked[i])
			a->cause[a->ncause++] = d->pairs[i];
	a->cause_minimal = a->cause_tested = a->cause_executed = true;
	a->cause_events = 0;
	a->rule = NULL;
	free(a->why); /* what the solver could not do */
	a->why = NULL;
}

/* The smallest set of the pairs that passes when it is turned round: that is told. Otherwise c stays as it is. */
static err_t minimise(struct moments *s, struct candidate *c)
{
	struct delta d = { .s = s, .c = c, .end = explain_effort(s->e) + LIMIT_DELTA_EFFORT };
	unsigned tests = (unsigned)LIMIT_DELTAS;

	find_deltas(&d);
	bool *marked = xcalloc(d.n + 1, sizeof *marked);
	bool minimal = d.n && order_ddmin(d.n, execute_set, &d, &tests, marked) && d.best.order.refs;
	size_t n = 0;

	s->tries += (unsigned)LIMIT_DELTAS - tests;
	for (size_t i = 0; i < d.n; i++)
		n += marked[i];
	if (!d.bad && minimal && n <= LIMIT_READABLE_PAIRS) {
		struct sched_answer *a = c->answer;

		if (!is_in_cause(a, &d, marked))
			tell_set(a, &d, marked);
		s->minimal = n;
		for (size_t i = d.n; i-- > 0;)
			d.best.inverted = marked[i] ? d.pairs[i] : d.best.inverted;
		sched_order_free(&a->alternates[0].order);
		a->alternates[0] = d.best;
		d.best.order = (struct sched_order){ 0 };
		free(c->alternate_why);
		c->alternate_why = d.why;
		d.why = NULL;
		c->alternate_proof.by[REPORT_MACHINE] = d.proof;
		c->alternate_proof.by[REPORT_MACHINE].why = c->alternate_why;
	}
	sched_order_free(&d.best.order);
	free(d.why);
	free(d.pairs);
	free(marked);
	return d.bad;
}

/* ---- the candidate ---- */

/* The root cause, where the solver has none for sure, or one that was refuted: the pair that the run was saved by turning. */
static void tell_pair(const struct moments *s, struct sched_answer *a)
{
	a->ncause = 0;
	a->cause_minimal = a->cause_tested = false;
	if (s->best.pair.before.index == SYM_NONE)
		return;
	a->cause = xrealloc(a->cause, sizeof *a->cause);
	a->cause[0] = s->best.pair;
	a->ncause = 1;
	a->cause_minimal = s->best.told == TELLS;
	a->cause_events = 0;
	free(a->why); /* what the solver could not do */
	a->why = NULL;
	a->cause_executed = true;
	a->cause_kept = s->best.kept;
}

static void make_first(struct moments *s, struct candidate *c)
{
	struct sched_answer *a = c->answer;
	struct sched_alternate *first;

	a->alternates = xrealloc(a->alternates, (a->nalternates + 1) * sizeof *a->alternates);
	memmove(a->alternates + 1, a->alternates, a->nalternates * sizeof *a->alternates);
	a->nalternates++;
	first = &a->alternates[0];
	*first = (struct sched_alternate){
		.order = { .refs = s->best.order.refs, .n = s->best.end }, .inverted = s->best.pair,
		.left = { .thread = SYM_NONE },
		.path_differs = s->best.end < s->failing->n, .executed = true,
	};
	s->best.order.refs = NULL;
	/* The solver had found that nothing helps, as far as it sees; this was executed. */
	if (a->deterministic) {
		free(a->why);
		a->why = NULL;
	}
	a->deterministic = false;
	free(c->alternate_why);
	c->alternate_why = s->best.why;
	s->best.why = NULL;
	c->alternate_proof.by[REPORT_MACHINE] = (struct report_proof){
		.runs = 1, .agreed = 1, .why = c->alternate_why, .met = s->best.met,
		.fails_later = s->best.grade == FAILS_LATER || s->best.grade == MUTE_AND_FAILS_LATER,
	};
}

static err_t make_candidate(struct moments *s, struct candidate **out)
{
	struct candidate *c = candidate_copy(s->base);
	bool known = s->known && !refutes_cause(s);
	/* Turning what the solver named was executed, and does not save the run: it is not the difference, or not all of it. */
	bool fails = s->base->alternate_proof.by[REPORT_MACHINE].runs && !s->base->alternate_proof.by[REPORT_MACHINE].left;
	size_t end = s->best.order.n;
	struct sched_ref *refs = s->best.order.refs;
	err_t bad = NULL;

	if (!known)
		tell_pair(s, c->answer);
	make_first(s, c);
	if ((!known || fails || !judge_is_readable(s->base)) && s->best.grade >= ASIDE && s->best.grade != FAILS_LATER) {
		/* The order is the candidate's now; it is looked at once more. */
		s->best.order = (struct sched_order){ .refs = xcalloc(end + 1, sizeof *refs), .n = end };
		memcpy(s->best.order.refs, refs, end * sizeof *refs);
		bad = minimise(s, c);
	}
	if (bad)
		candidate_free(c);
	else
		*out = c;
	return bad;
}

/* What executing came to, whether it is told or not. */
static char *outcome_text(const struct moments *s)
{
	static const char *const grades[] = {
		[FAILS] = "none avoids it", [MUTE_AND_FAILS_LATER] = "one fails later, and says nothing of a cause",
		[MUTE] = "one avoids it, and says nothing of a cause", [ASIDE] = "one avoids it by another pair",
		[FAILS_LATER] = "one fails later", [CLEAN] = "one does not fail",
	};

	if (s->minimal)
		return xasprintf("%u orders executed, one does not fail; turning %zu ordering%s is enough, minimal by execution",
				 s->tries, s->minimal, s->minimal == 1 ? "" : "s");
	return xasprintf("%u orders executed, %s%s", s->tries, grades[s->best.grade],
			 s->known ? " (compared with the cause at hand)" : "");
}

err_t difference_from(const struct candidate *base, size_t before, double effort, struct candidate **out, char **outcome)
{
	struct moments s;
	bool known = judge_has_cause(base);
	err_t bad = moments_find(base, known, before, effort, &s);

	/* Turning what the solver named only puts the failure off: then whatever saves the run is told. */
	if (!bad && known && s.best.grade == FAILS_LATER && !explain_out_of_time(base->e)) {
		struct moments own;

		bad = moments_find(base, false, before, effort, &own);
		struct moments worse = own.best.grade == CLEAN ? s : own;

		s = own.best.grade == CLEAN ? own : s;
		moments_free(&worse);
	}
	*out = NULL;
	if (!bad && s.best.grade > FAILS)
		bad = make_candidate(&s, out);
	*outcome = outcome_text(&s);
	moments_free(&s);
	return bad;
}

/* ---- the method ---- */

/* It may take all its tries of executing as much as the whole run. */
static bool can_afford(const struct explanation *e)
{
	return !explain_out_of_time(e) &&
	       (e->effort_end <= 0 || explain_effort(e) + LIMIT_BEFORE_TRIES * explain_effort_again(e) < e->effort_end);
}

/* What of a smaller window is continued backwards here: the last that was executed into the failure. */
static const struct candidate *smaller_base(const struct search *s, const struct view *v)
{
	const struct candidate *found = NULL;

	for (size_t i = 0; i < s->views.n; i++) {
		const struct view *w = s->views.v[i];

		if (w->base && w->scope.window < v->scope.window && !w->scope.focus && !w->scope.onward && !w->scope.in_middle &&
		    w->base->failing_proof.by[REPORT_MACHINE].agreed && (!found || w->scope.window > found->scope.window))
			found = w->base;
	}
	return found;
}

double difference_cost(const struct search *s, const struct view *v, unsigned tried)
{
	const struct candidate *base = v->base ? v->base : v->executed_only ? smaller_base(s, v) : NULL;

	if (!base || !base->answer->found || !base->failing_proof.by[REPORT_MACHINE].agreed || v->scope.in_middle ||
	    v->scope.model != SCHED_SC)
		return NO_USE;
	/* The write that was missing may be the first of several. */
	if (v->scope.onward)
		return !tried && candidate_blames_computed(base) && judge_passing(base) == JUDGE_DOES_NOT_PASS ?
			       v->price + LIMIT_PRICE_DIFFERENCE : NO_USE;
	if ((judge_passing(s->best) == JUDGE_PASSES && judge_is_readable(s->best)) || tried > 1)
		return NO_USE;
	if (!v->base)
		return tried || !can_afford(s->e) ? NO_USE : v->price;
	if (tried && base == v->executed)
		return NO_USE;
	return v->price + (judge_has_cause(base) ? LIMIT_PRICE_DIFFERENCE_KNOWN : LIMIT_PRICE_DIFFERENCE);
}

err_t difference_run(struct search *s, struct view *v, unsigned tried, struct candidate **out, char **outcome)
{
	const struct candidate *base = v->base;
	size_t before = SIZE_MAX;
	struct candidate *longer = NULL;
	/* While the solver may still find a better one, as much as it had. */
	double effort = base && !tried && base->answer->timed_out ? LIMIT_SOON : 0;

	if (!base) {
		longer = history_lengthen(smaller_base(s, v), v, &before);
		if (!longer || !before || !longer->failing_proof.by[REPORT_MACHINE].agreed) {
			candidate_free(longer);
			/* More turns out to be shared here: then the solver looks, unless it is too much. */
			v->executed_only = v->extracted->total > LIMIT_BEFORE_SOLVED;
			*outcome = xstrdup("the failing order cannot be continued backwards here");
			return NULL;
		}
		longer->answer->cause_minimal = false; /* without it the run failed all the same, as executed */
		base = longer;
	}
	v->executed = v->base;
	err_t bad = difference_from(base, before, effort, out, outcome);
	candidate_free(longer);
	return bad;
}
