/*
 * Root cause: the smallest set of orderings that forces the failure.
 *
 * All orderings of the failing schedule together with "it does not fail" are
 * contradictory; the solver's core says which of them are needed, and then
 * each is dropped in turn and the question asked again, so that none is left
 * that could go. Dropping one that is needed has an answer: a run that keeps
 * the others and does not fail, which is an alternate.
 *
 * When no order along the recorded paths avoids the failure, the branches that
 * led to it are looked at instead: the last one that can go the other way at
 * all, in the failing thread or in one that wrote what the failure depends on.
 * What its thread does behind it is not known; the run is exact up to there.
 */
#include "analyzer/schedule/work.h"

#include <string.h>

#define FIRST_STUDY 256
#define STUDY_GROWTH 4
/*
 * Windows grow up to so many pairs of conflicting accesses (a few seconds, half
 * a gigabyte); what lies before is taken as it was found.
 */
#define STUDY_PAIRS 60000
/* Effort (smt.h) to find out whether one ordering is needed; more: it stays, unproved. */
#define MINIMIZE_ASK 1.5
#define QUICK_ASK 0.3
#define MINIMIZE_ALL 20.0
/* From so many on nobody reads it: only what is easy to drop is dropped. */
#define CAUSE_MANY 64
/* And from so many on even the question takes a second. */
#define CAUSE_HOPELESS 1000
#define MINIMIZE_MANY 2.0
/* About a quarter of a second; and a few seconds, where nothing else tells. */
#define EXHAUST_STATES 40000
#define MINIMIZE_STATES 1000000
#define BRANCH_ALL 20.0
#define RELAX_ALL 4.0
/* Per branch: all are tried a little before a hard one is tried harder. */
#define BRANCH_QUICK 0.1
#define BRANCH_ASK 0.5
#define BRANCH_ASK_LAST 2.0
/*
 * For a way along the recorded path, before branches are looked at: that a sum or a
 * count is the same in every order takes a solver for ever.
 */
#define SAME_PATH_ASK 3.0
#define SAME_PATH_LAST 20.0
/* For making sure in a larger window. */
#define PROOF_ALL 3.0

typedef VEC(uint32_t) edge_list;

struct cause {
	struct work *w;
	edge_list core; /* numbers of the study's edges */
};

/* The longest stretch at the end whose conflicting pairs are not too many. */
static size_t affordable(const struct work *w)
{
	size_t nv = w->v->t->nvars, pairs = 0, k = w->n;
	uint32_t *reads = xcalloc(nv + 1, sizeof *reads), *writes = xcalloc(nv + 1, sizeof *writes);
	uint32_t *locks = xcalloc(w->v->t->nobjects + 1, sizeof *locks);

	for (; k > 0 && pairs < STUDY_PAIRS; k--) {
		const struct sym_event *e = w->v->ev[w->order[k - 1]].e;

		if (view_writes(e))
			pairs += reads[e->target] + writes[e->target]++;
		if (view_reads(e)) {
			pairs += writes[e->target];
			reads[e->target]++;
		}
		if (view_acquires(e))
			pairs += locks[e->target]++;
	}
	free(reads);
	free(writes);
	free(locks);
	return w->n - k;
}

static size_t largest(const struct work *w)
{
	return w->study_events;
}

static size_t first_size(const struct work *w)
{
	size_t size = w->o->window ? w->o->window : FIRST_STUDY;

	return size < largest(w) ? size : largest(w);
}

static size_t grow(const struct work *w, size_t size)
{
	return size * STUDY_GROWTH < largest(w) ? size * STUDY_GROWTH : largest(w);
}

/*
 * The smallest window that ends at `to`, up to a size, in which the failure can
 * be avoided. *proved: none can, at all.
 */
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
		turned = turn_any(s, order) != VIEW_NONE;
		if (!turned)
			r = effort > 0 ? study_ask(s, NULL, 0, VIEW_NONE,
						   effort < QUICK_ASK ? effort : QUICK_ASK) :
					 SMT_UNKNOWN;
		if (r == SMT_UNKNOWN && effort > QUICK_ASK) {
			r = exhaust_window(s, NULL, 0, VIEW_NONE, EXHAUST_STATES, order);
			by_states = r == SMT_SAT;
		}
		if (r == SMT_UNKNOWN && effort > QUICK_ASK)
			r = study_ask(s, NULL, 0, VIEW_NONE, effort);
		if (r == SMT_SAT && !turned)
			keep_witness(s, order, by_states);
		free(order);
		if (r == SMT_SAT)
			return s;
		*proved = r == SMT_UNSAT && s->from == 0;
		study_free(s);
		if (r == SMT_UNKNOWN || end)
			return NULL;
		size = grow(w, size);
	}
}

/*
 * A window up to the end, also when that holds the branch only if it is larger: what it waited for
 * may have come late. Not for every branch: most are far from the end, and there are many.
 */
static size_t reaching(const struct work *w, const struct branch *b, size_t size)
{
	size_t all = w->n - b->at + first_size(w);
	bool worth = b->asks || (b->own && w->n - b->at < grow(w, first_size(w)));

	if (!worth || all <= size)
		return size;
	return all < largest(w) ? all : largest(w);
}

/*
 * The last branch that can go the other way: with what came before it, then
 * with what others did after it too. *all: there is none, proved.
 */
static struct study *find_branch(struct work *w, bool *all)
{
	static const struct {
		bool to_end, large;
		bool reach; /* with a window that holds it, and trimmed: proves nothing then */
		double effort;
	} passes[] = {
		{ true, false, true, 0 }, /* by turning pairs alone */
		{ false, false, false, BRANCH_QUICK }, { true, false, true, BRANCH_QUICK },
		{ false, false, false, BRANCH_ASK }, { true, false, false, BRANCH_ASK },
		{ true, true, false, BRANCH_ASK_LAST },
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
		s = find_window(w, VIEW_NONE, w->n, first_size(w), first_size(w), BRANCH_ASK, &none);
		if (!s)
			w->relax = VIEW_NONE;
	}
	for (size_t pass = 0; pass < sizeof passes / sizeof *passes && !s; pass++) {
		for (size_t k = 0; k < n && !s && !work_stopped(w) && w->limit.spent < end; k++) {
			size_t first = passes[pass].large ? grow(w, first_size(w)) : first_size(w);
			bool none;

			if (proved[k])
				continue;
			w->trim = branches[k].asks && passes[pass].reach;
			if (passes[pass].reach)
				first = reaching(w, &branches[k], first);
			s = find_window(w, branches[k].cond,
					passes[pass].to_end ? w->n : branches[k].at + 1, first,
					passes[pass].large ? largest(w) : first,
					passes[pass].effort, &none);
			proved[k] = none && passes[pass].to_end && !w->trim;
		}
	}
	for (size_t k = 0; k < n; k++)
		*all = *all && proved[k];
	*all = *all && n < BRANCHES && !firm;
	return s;
}

static bool far_exists(struct work *w)
{
	struct study *s = far_study(w);
	uint32_t *order = xcalloc(w->n + 1, sizeof *order);
	bool found = turn_any(s, order) != VIEW_NONE;

	free(order);
	study_free(s);
	return found;
}

/* One that execution alone finds, by turning a single pair, in the larger windows. */
static struct study *find_by_turning(struct work *w)
{
	for (size_t size = grow(w, first_size(w));; size = grow(w, size)) {
		struct study *s = study_new(w, size, w->n, VIEW_NONE);
		uint32_t *order = xcalloc(w->n - s->from + 1, sizeof *order);
		bool found = turn_any(s, order) != VIEW_NONE;
		bool end = s->from == 0 || size >= largest(w);

		free(order);
		if (found)
			return s;
		study_free(s);
		if (end || work_stopped(w))
			return NULL;
	}
}

/* An order along the recorded path. effort: per question. *far: one out of reach. */
static struct study *find_same_path(struct work *w, double effort, bool *proved, bool *far)
{
	struct study *s = find_window(w, VIEW_NONE, w->n, first_size(w), first_size(w), effort,
				      proved);

	if (s || *proved || work_stopped(w))
		return s;
	*far = far_exists(w);
	return find_window(w, VIEW_NONE, w->n, grow(w, first_size(w)), largest(w), effort, proved);
}

static struct study *find_study(struct work *w)
{
	bool proved = true, far = false;
	bool same_path = (w->v->deadlock || w->v->t->failure.condition) && !w->o->leave_path;
	bool none = true;
	struct study *s = NULL;

	w->always = range_always_fails(w->v);
	same_path = same_path && !w->always;

	/* What is easy to see first; a solver may ponder a small window for long. */
	if (same_path)
		s = find_window(w, VIEW_NONE, w->n, first_size(w), first_size(w), QUICK_ASK, &proved);
	if (same_path && !s && !proved && !work_stopped(w))
		s = find_by_turning(w);
	if (same_path && !s && !proved && !work_stopped(w))
		s = find_same_path(w, SAME_PATH_ASK, &proved, &far);
	/* Something avoids it along the recorded path: no need to leave that. */
	if (!s && !far && !work_stopped(w))
		s = find_branch(w, &none);
	if (same_path && !s && !proved && !work_stopped(w))
		s = find_same_path(w, SAME_PATH_LAST, &proved, &far);
	proved = proved && none;
	if (s || work_stopped(w))
		return s;
	if (!proved) {
		work_why(w, far ? "the root cause spans more than the last %zu of %zu events that could "
			 "be looked at together" :
			 "no order that avoids the failure was found in the last %zu of %zu events",
			 largest(w), w->n);
		return NULL;
	}
	w->a->deterministic = true;
	work_why(w, w->v->deadlock ? "no order along the recorded paths avoids the deadlock" :
		 "the failure is deterministic: no order of events, along the recorded paths or off "
		 "a branch that led to it, avoids it");
	return NULL;
}

/* Numbers of the study's edges that are in the solver's last core. */
static void read_core(struct cause *x, struct study *s)
{
	x->core.n = 0;
	smt_take_core(s->enc->smt);
	for (uint32_t k = 0; k < s->edges.n; k++) {
		for (size_t i = 0; i < s->enc->smt->core.n; i++) {
			if (s->enc->smt->core.v[i] == s->edges.v[k].keep) {
				vec_push(&x->core, k);
				break;
			}
		}
	}
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
	if (!s->by_states && study_ask(s, rest, n, VIEW_NONE, QUICK_ASK) == SMT_UNSAT) {
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
	r = study_ask(s, all.v, all.n, VIEW_NONE, 0);
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

/* Its number in another study, or VIEW_NONE. */
static uint32_t same_edge(const struct study *in, const struct study_edge *e)
{
	for (uint32_t k = 0; k < in->edges.n; k++)
		if (in->edges.v[k].before == e->before && in->edges.v[k].after == e->after)
			return k;
	return VIEW_NONE;
}

/* The same edges in another study; false when one is missing there. */
static bool translate(struct cause *x, const struct study *from, const struct study *to)
{
	for (size_t i = 0; i < x->core.n; i++) {
		uint32_t k = same_edge(to, &from->edges.v[x->core.v[i]]);

		if (k == VIEW_NONE)
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

	while (s->from > 0 && size < largest(s->w) && s->w->limit.spent < end &&
	       !work_stopped(s->w)) {
		struct study *next;
		enum smt_result r = SMT_SAT;
		VEC(uint32_t) old = { 0 };

		size = grow(s->w, size);
		next = study_new(s->w, size, s->to, s->diverge);
		for (size_t i = 0; i < x->core.n; i++)
			vec_push(&old, x->core.v[i]);
		if (translate(x, s, next))
			r = study_ask(next, x->core.v, x->core.n, VIEW_NONE,
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
	if (s->from > 0)
		work_why(s->w, "the root cause is proved for the last %zu of %zu events; the order "
			 "before them is taken as found", s->w->n - s->from, s->w->n);
	return s;
}

static void export_cause(struct cause *x, const struct study *s)
{
	struct sched_answer *a = x->w->a;

	a->cause = xcalloc(x->core.n + 1, sizeof *a->cause);
	a->ncause = x->core.n;
	for (size_t i = 0; i < x->core.n; i++) {
		const struct study_edge *e = &s->edges.v[x->core.v[i]];

		a->cause[i].before = view_ref(x->w->v, e->before);
		a->cause[i].after = view_ref(x->w->v, e->after);
	}
	a->stats.core_minimal = x->core.n;
}

/* The branch, or the failure, looked at this too early: what it missed was under way. */
static bool looked_too_early(const struct study *s, uint32_t edge)
{
	const struct sched_view *v = s->w->v;
	const struct sym_event *before = v->ev[s->edges.v[edge].before].e;
	uint32_t thread = s->diverge != VIEW_NONE ? v->conds[s->diverge].thread : v->t->failure.thread;

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
	w->study_events = affordable(w);
	s = find_study(w);
	caused = s && extract(&x, s);
	if (caused)
		export_cause(&x, s);
	if (!s && !w->a->deterministic && !work_stopped(w))
		s = far_study(w);
	bool many = caused && x.core.n >= CAUSE_MANY && w->a->nalternates;

	if (many && tell_one(&x, s)) {
		free(w->a->cause);
		export_cause(&x, s);
	}
	if (s && !many && !(w->a->nalternates && work_stopped(w)))
		alternates_of(&x, s, false);
	/* Last, because it may take all the time that is left. */
	if (caused && !many) {
		s = make_sure(&x, s);
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
