/*
 * Where to look for the root cause: a window at the end of the failing order that holds a run which
 * does not fail. Along the recorded paths first.
 *
 * When no order along those avoids the failure, the branches that
 * led to it are looked at instead: the last one that can go the other way at
 * all, in the failing thread or in one that wrote what the failure depends on.
 * What its thread does behind it is not known; the run is exact up to there.
 */
#include "analyzer/schedule/work.h"

#include <string.h>

/* The longest stretch at the end whose conflicting pairs are not too many. */
size_t study_affordable(const struct work *w)
{
	size_t nv = w->v->t->nvars, pairs = 0, k = w->n;
	uint32_t *reads = xcalloc(nv + 1, sizeof *reads), *writes = xcalloc(nv + 1, sizeof *writes);
	uint32_t *locks = xcalloc(w->v->t->nobjects + 1, sizeof *locks);

	for (; k > 0 && pairs < STUDY_PAIRS; k--) {
		const struct sym_event *e = w->v->ev[w->order[k - 1]].e;

		if (order_writes(e))
			pairs += reads[e->target] + writes[e->target]++;
		if (order_reads(e)) {
			pairs += writes[e->target];
			reads[e->target]++;
		}
		if (order_acquires(e))
			pairs += locks[e->target]++;
	}
	free(reads);
	free(writes);
	free(locks);
	return w->n - k;
}

size_t study_largest(const struct work *w)
{
	return w->study_events;
}

static size_t first_size(const struct work *w)
{
	size_t size = w->o->window ? w->o->window : FIRST_STUDY;

	return size < study_largest(w) ? size : study_largest(w);
}

size_t study_grow(const struct work *w, size_t size)
{
	return size * STUDY_GROWTH < study_largest(w) ? size * STUDY_GROWTH : study_largest(w);
}

/* What the states showed, in `order`, or else the solver. */
static void keep_witness(struct study *s, const uint32_t *order, bool by_states)
{
	if (!by_states) {
		s->witness = study_order(s, &s->nwitness);
		return;
	}
	s->nwitness = s->from + s->win->n;
	s->witness = xcalloc(s->nwitness + 1, sizeof *s->witness);
	memcpy(s->witness, s->w->order, s->from * sizeof *order);
	memcpy(s->witness + s->from, order, s->win->n * sizeof *order);
}

/*
 * The smallest window that ends at `to`, up to a size, in which the failure can
 * be avoided. *proved: none can, at all.
 */
static struct study *find_window(struct work *w, uint32_t diverge, size_t to, size_t first,
				 size_t last, double effort, bool *proved)
{
	size_t size = first < last ? first : last;

	*proved = false;
	for (;;) {
		struct study *s = study_new(w, size, to, diverge);
		uint32_t *order = xcalloc(w->n - s->from + 1, sizeof *order);
		enum smt_result r = SMT_SAT;
		bool end = s->from == 0 || size >= last, turned, by_states = false;

		/* What the solver does not know at once the states may tell. */
		turned = turn_any(s, order) != SYM_NONE;
		if (!turned)
			r = effort > 0 ? study_ask(s, NULL, 0, SYM_NONE,
						   effort < QUICK_ASK ? effort : QUICK_ASK) :
					 SMT_UNKNOWN;
		if (r == SMT_UNKNOWN && effort > QUICK_ASK) {
			r = exhaust_window(s, NULL, 0, SYM_NONE, EXHAUST_STATES, order);
			by_states = r == SMT_SAT;
		}
		if (r == SMT_UNKNOWN && effort > QUICK_ASK)
			r = study_ask(s, NULL, 0, SYM_NONE, effort);
		if (r == SMT_SAT && !turned)
			keep_witness(s, order, by_states);
		free(order);
		if (r == SMT_SAT)
			return s;
		*proved = r == SMT_UNSAT && s->from == 0;
		study_free(s);
		if (r == SMT_UNKNOWN || end)
			return NULL;
		size = study_grow(w, size);
	}
}

/*
 * A window up to the end, also when that holds the branch only if it is larger: what it waited for
 * may have come late. Not for every branch: most are far from the end, and there are many.
 */
static size_t reaching(const struct work *w, const struct branch *b, size_t size)
{
	size_t all = w->n - b->at + first_size(w);
	bool worth = b->asks || (b->own && w->n - b->at < study_grow(w, first_size(w)));

	if (!worth || all <= size)
		return size;
	return all < study_largest(w) ? all : study_largest(w);
}

/*
 * The last branch that can go the other way: with what came before it, then
 * with what others did after it too. *all: there is none, proved.
 */
static struct study *find_branch(struct work *w, bool *all)
{
	static const struct {
		bool to_end; /* with a window that holds it, and trimmed: proves nothing then */
		double effort;
	} passes[] = {
		{ true, 0 }, /* by turning pairs alone */
		{ false, BRANCH_QUICK }, { true, BRANCH_QUICK },
	};
	struct branch branches[BRANCHES];
	bool firm = false;
	size_t n = find_branches(w, branches, &firm);
	double end = w->limit.spent + BRANCH_ALL, relaxed_end = w->limit.spent + RELAX_ALL;
	struct study *s = NULL;
	bool proved[BRANCHES] = { false };

	/* First those that decide nothing on the way to the failure's own condition. */
	for (size_t k = 0; !w->always && k < n && !s && !work_stopped(w) && w->limit.spent < relaxed_end; k++) {
		bool none;

		if (!w->v->t->failure.condition ||
		    w->v->conds[branches[k].cond].thread != w->v->t->failure.thread)
			continue;
		w->relax = branches[k].cond;
		s = find_window(w, SYM_NONE, w->n, first_size(w), first_size(w), BRANCH_ASK, &none);
		if (!s)
			w->relax = SYM_NONE;
	}
	for (size_t pass = 0; pass < sizeof passes / sizeof *passes && !s; pass++) {
		for (size_t k = 0; k < n && !s && !work_stopped(w) && w->limit.spent < end; k++) {
			size_t first = first_size(w);
			bool none;

			if (proved[k])
				continue;
			w->trim = branches[k].asks && passes[pass].to_end;
			if (passes[pass].to_end)
				first = reaching(w, &branches[k], first);
			s = find_window(w, branches[k].cond, passes[pass].to_end ? w->n : branches[k].at + 1, first,
					first, passes[pass].effort, &none);
			proved[k] = none && passes[pass].to_end && !w->trim;
		}
	}
	for (size_t k = 0; k < n; k++)
		*all = *all && proved[k];
	*all = *all && n < BRANCHES && !firm;
	return s;
}

/* One that execution alone finds, by turning a single pair, in the larger windows. */
static struct study *find_by_turning(struct work *w)
{
	for (size_t size = study_grow(w, first_size(w));; size = study_grow(w, size)) {
		struct study *s = study_new(w, size, w->n, SYM_NONE);
		uint32_t *order = xcalloc(w->n - s->from + 1, sizeof *order);
		bool found = turn_any(s, order) != SYM_NONE;
		bool end = s->from == 0 || size >= study_largest(w);

		free(order);
		if (found)
			return s;
		study_free(s);
		if (end || work_stopped(w))
			return NULL;
	}
}

/* An order along the recorded path: what is easy to see first; a solver may ponder a small window for long. */
static struct study *find_same_path(struct work *w, bool *proved)
{
	const size_t small = first_size(w);
	struct study *s = find_window(w, SYM_NONE, w->n, small, small, QUICK_ASK, proved);

	if (!s && !*proved && !work_stopped(w))
		s = find_by_turning(w);
	if (!s && !*proved && !work_stopped(w))
		s = find_window(w, SYM_NONE, w->n, small, small, SAME_PATH_ASK, proved);
	if (!s && !*proved && !work_stopped(w))
		s = find_window(w, SYM_NONE, w->n, study_grow(w, small), study_largest(w), SAME_PATH_ASK, proved);
	return s;
}

struct study *find_study(struct work *w)
{
	bool same_path = (w->v->deadlock || w->v->t->failure.condition) && !w->o->leave_path;
	bool proved = true, none = true;
	struct study *s = NULL;

	w->always = range_always_fails(w->v);
	if (same_path && !w->always)
		s = find_same_path(w, &proved);
	if (!s && !work_stopped(w))
		s = find_branch(w, &none);
	if (s || work_stopped(w))
		return s;
	if (!proved || !none) {
		work_why(w, "no order that avoids the failure was found in the last %zu of %zu events",
			 study_largest(w), w->n);
		return NULL;
	}
	w->a->deterministic = true;
	work_why(w, w->v->deadlock ? "no order along the recorded paths avoids the deadlock" :
		 "the failure is deterministic: no order of events, along the recorded paths or off "
		 "a branch that led to it, avoids it");
	return NULL;
}
