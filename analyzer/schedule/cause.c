/*
 * Root cause: the smallest set of orderings that forces the failure.
 *
 * All orderings of the failing schedule together with "it does not fail" are
 * contradictory; the solver's core says which of them are needed, and then
 * each is dropped in turn and the question asked again, so that none is left
 * that could go. Dropping one that is needed has an answer: a run that keeps
 * the others and does not fail, which is an alternate.
 */
#include "analyzer/schedule/work.h"

#include <string.h>

typedef VEC(uint32_t) edge_list;

struct cause {
	struct work *w;
	edge_list core; /* numbers of the study's edges */
};

/* Numbers of the study's edges that are in the solver's last core. */
static void read_core(struct cause *x, struct study *s)
{
	x->core.n = 0;
	smt_take_core(s->enc->smt);
	for (uint32_t k = 0; k < s->edges.n; k++)
		if (smt_in_core(s->enc->smt, s->edges.v[k].keep))
			vec_push(&x->core, k);
}

static bool in_core(const struct cause *x, uint32_t k)
{
	for (size_t i = 0; i < x->core.n; i++)
		if (x->core.v[i] == k)
			return true;
	return false;
}

/* The rest is enough; the solver may know that even less is. */
static void drop(struct cause *x, struct study *s, const uint32_t *rest, size_t n)
{
	if (!s->by_states && study_ask(s, rest, n, SYM_NONE, QUICK_ASK) == SMT_UNSAT) {
		read_core(x, s);
		return;
	}
	x->core.n = 0;
	for (size_t k = 0; k < n; k++)
		vec_push(&x->core, rest[k]);
}

/* Is the edge needed, beside the rest? Yes: SMT_SAT, a run keeps the rest and does not fail. */
static enum smt_result ask_needed(struct study *s, uint32_t edge, const uint32_t *rest, size_t n,
				  bool hard, uint32_t *order)
{
	enum smt_result r;

	/* Nothing beside it, and some run does not fail: that is how the study was chosen. */
	if (!n || turn_directly(s, edge, rest, n, order))
		return SMT_SAT;
	if (s->by_states)
		return exhaust_window(s, rest, n, edge, hard ? MINIMIZE_STATES : EXHAUST_STATES,
				      order);
	/* What keeps the rest and does not fail has it the other way round. */
	r = study_ask(s, rest, n, edge, QUICK_ASK);
	if (r == SMT_UNKNOWN && hard) {
		r = exhaust_window(s, rest, n, edge, MINIMIZE_STATES, order);
		s->by_states = r != SMT_UNKNOWN;
	}
	if (r == SMT_UNKNOWN && hard)
		r = study_ask(s, rest, n, edge, MINIMIZE_ASK);
	return r;
}

/* One round over these edges; those nothing was learned about are left in todo. */
static void drop_round(struct cause *x, struct study *s, edge_list *todo, double end)
{
	uint32_t *order = xcalloc(s->w->n - s->from + 1, sizeof *order);
	edge_list rest = { 0 };
	size_t open = 0;

	for (size_t i = 0; i < todo->n; i++) {
		enum smt_result r;

		if (!in_core(x, todo->v[i]))
			continue;
		if (x->core.n >= CAUSE_MANY && s->w->limit.spent >= end) {
			todo->v[open++] = todo->v[i];
			continue;
		}
		rest.n = 0;
		for (size_t k = 0; k < x->core.n; k++)
			if (x->core.v[k] != todo->v[i])
				vec_push(&rest, x->core.v[k]);
		r = ask_needed(s, todo->v[i], rest.v, rest.n,
			       x->core.n < CAUSE_MANY && s->w->limit.spent < end, order);
		if (r == SMT_UNSAT)
			drop(x, s, rest.v, rest.n);
		else if (r == SMT_UNKNOWN)
			todo->v[open++] = todo->v[i];
	}
	todo->n = open;
	vec_free(&rest);
	free(order);
}

/*
 * Drop what can be dropped, the farthest from the failure first. Stops at the
 * limit; true when every remaining edge has been shown to be needed. What is
 * needed beside more edges is needed beside fewer; what was left open may be
 * gone by then, or easier to see.
 */
static bool minimize(struct cause *x, struct study *s)
{
	double end = s->w->limit.spent + (x->core.n < CAUSE_MANY ? MINIMIZE_ALL : MINIMIZE_MANY);
	edge_list todo = { 0 };
	bool sure = true;

	for (size_t i = 0; i < x->core.n; i++)
		vec_push(&todo, x->core.v[i]);
	for (int round = 0; round < 2 && todo.n; round++)
		drop_round(x, s, &todo, end);
	for (size_t i = 0; i < todo.n; i++)
		sure = sure && !in_core(x, todo.v[i]);
	vec_free(&todo);
	return sure;
}

static void alternates_of(struct cause *x, struct study *s, bool by_moving)
{
	struct work *w = x->w;
	const char *phase = w->phase;
	double start = smt_now();

	w->phase = "alternates";
	for (size_t i = 0; i < w->a->nalternates; i++)
		sched_order_free(&w->a->alternates[i].order);
	free(w->a->alternates);
	w->a->alternates = NULL;
	w->a->nalternates = 0;
	find_alternates(w, s, x->core.v, x->core.n, by_moving);
	w->phase = phase;
	w->a->stats.t_alt += smt_now() - start;
}

static bool extract(struct cause *x, struct study *s)
{
	VEC(uint32_t) all = { 0 };
	enum smt_result r;

	for (uint32_t k = 0; k < s->edges.n; k++)
		vec_push(&all, k);
	double before = x->w->limit.spent;
	r = study_ask(s, all.v, all.n, SYM_NONE, 0);
	/* With everything fixed there was nothing to find: what it took is mere handling. */
	s->floor = x->w->limit.spent - before;
	vec_free(&all);
	if (r == SMT_SAT)
		work_why(x->w, "the failure does not follow from the order of events alone");
	if (r != SMT_UNSAT)
		return false;
	read_core(x, s);
	if (!x->core.n) {
		work_why(x->w, "executing and solving disagree about the end of the run");
		return false;
	}
	x->w->a->stats.core_plain = x->core.n;
	/* What is easy to find is there, should the rest take all the time. */
	if (!x->w->a->nalternates)
		alternates_of(x, s, true);
	x->w->a->cause_minimal = x->core.n < CAUSE_HOPELESS && minimize(x, s);
	x->w->a->stats.core_minimal = x->core.n;
	return true;
}

/* Its number in another study, or SYM_NONE. */
static uint32_t same_edge(const struct study *in, const struct study_edge *e)
{
	for (uint32_t k = 0; k < in->edges.n; k++)
		if (in->edges.v[k].before == e->before && in->edges.v[k].after == e->after)
			return k;
	return SYM_NONE;
}

/* The same edges in another study; false when one is missing there. */
static bool translate(struct cause *x, const struct study *from, const struct study *to)
{
	for (size_t i = 0; i < x->core.n; i++) {
		uint32_t k = same_edge(to, &from->edges.v[x->core.v[i]]);

		if (k == SYM_NONE)
			return false;
		x->core.v[i] = k;
	}
	return true;
}

/*
 * What forces the failure in a window may not force it when earlier events
 * may move too: ask again in larger windows, and start over where it does not.
 */
static struct study *make_sure(struct cause *x, struct study *s)
{
	double end = s->w->limit.spent + PROOF_ALL;
	size_t size = s->to - s->from;

	while (s->from > 0 && size < study_largest(s->w) && s->w->limit.spent < end &&
	       !work_stopped(s->w)) {
		struct study *next;
		enum smt_result r = SMT_SAT;
		VEC(uint32_t) old = { 0 };

		size = study_grow(s->w, size);
		next = study_new(s->w, size, s->to, s->diverge);
		for (size_t i = 0; i < x->core.n; i++)
			vec_push(&old, x->core.v[i]);
		if (translate(x, s, next))
			r = study_ask(next, x->core.v, x->core.n, SYM_NONE,
				      end - s->w->limit.spent + 0.01);
		if (r == SMT_UNKNOWN || (r == SMT_SAT && !extract(x, next))) {
			x->core.n = 0;
			for (size_t i = 0; i < old.n; i++)
				vec_push(&x->core, old.v[i]);
			vec_free(&old);
			study_free(next);
			break;
		}
		vec_free(&old);
		study_free(s);
		s = next;
	}
	return s;
}

static void export_cause(struct cause *x, const struct study *s)
{
	struct sched_answer *a = x->w->a;

	a->cause = xcalloc(x->core.n + 1, sizeof *a->cause);
	a->ncause = x->core.n;
	for (size_t i = 0; i < x->core.n; i++) {
		const struct study_edge *e = &s->edges.v[x->core.v[i]];

		a->cause[i].before = order_view_ref(x->w->v, e->before);
		a->cause[i].after = order_view_ref(x->w->v, e->after);
	}
	a->stats.core_minimal = x->core.n;
}

/* The branch, or the failure, looked at this too early: what it missed was under way. */
static bool looked_too_early(const struct study *s, uint32_t edge)
{
	const struct order_view *v = s->w->v;
	const struct sym_event *before = v->ev[s->edges.v[edge].before].e;
	uint32_t thread = s->diverge != SYM_NONE ? v->conds[s->diverge].thread : v->t->failure.thread;

	return before->thread == thread && before->op == SYM_READ;
}

/*
 * What a counter came to follows from where everybody stood: all these orderings together, each
 * needed, and nobody reads them. But to turn one of them is enough to avoid the failure, and
 * that one tells what happened.
 */
static bool tell_one(struct cause *x, struct study *s)
{
	uint32_t *order = xcalloc(s->w->n - s->from + 1, sizeof *order), *edges;
	size_t n = x->core.n, found = SIZE_MAX;

	edges = xcalloc(n + 1, sizeof *edges);
	memcpy(edges, x->core.v, n * sizeof *edges);
	turn_sort(s, edges, n);
	for (int early = 1; early >= 0 && found == SIZE_MAX; early--)
		for (size_t i = 0; i < n && found == SIZE_MAX && !work_stopped(s->w); i++)
			if (looked_too_early(s, edges[i]) == early &&
			    turn_directly(s, edges[i], NULL, 0, order))
				found = i;
	if (found != SIZE_MAX) {
		x->core.n = 0;
		vec_push(&x->core, edges[found]);
		x->w->a->cause_minimal = true;
		work_why(x->w, "the failure follows from the order of %zu pairs taken together; told is one "
			 "whose turning is enough to avoid it", n);
		alternates_of(x, s, true);
	}
	free(edges);
	free(order);
	return found != SIZE_MAX;
}

void find_cause(struct work *w)
{
	struct cause x = { .w = w };
	double start = smt_now();
	struct study *s;
	bool caused;

	work_rank(w);
	w->study_events = study_affordable(w);
	s = find_study(w);
	caused = s && extract(&x, s);
	if (caused)
		export_cause(&x, s);
	bool many = caused && x.core.n >= CAUSE_MANY && w->a->nalternates;

	if (many && tell_one(&x, s)) {
		free(w->a->cause);
		export_cause(&x, s);
	}
	if (s && !many && !(w->a->nalternates && work_stopped(w)))
		alternates_of(&x, s, false);
	/* Last, because it may take all the time that is left. */
	if (caused && !many && !w->o->unproved)
		s = make_sure(&x, s);
	if (caused && !many) {
		w->a->cause_events = s->from > 0 ? w->n - s->from : 0;
		free(w->a->cause);
		export_cause(&x, s);
		if (!w->a->nalternates && !work_stopped(w))
			alternates_of(&x, s, false);
	}
	if (!caused && w->v->deadlock)
		find_writer_first(w);
	w->a->stats.t_root = smt_now() - start - w->a->stats.t_alt;
	vec_free(&x.core);
	study_free(s);
}
