/*
 * A first order without time stamps: depth-first search over the threads.
 *
 * A thread runs from one point where it holds no lock to the next, all or
 * nothing, because what it reads under a lock decides whether it could have
 * taken it then. What nothing depends on happens at once. Where no thread can
 * go on, the search steps back; states seen before are not entered again.
 * Whom to prefer differs between attempts: at first the thread that is least
 * far on its way, since the threads of one run tend to progress together.
 */
#include "analyzer/schedule/project.h"
#include "analyzer/schedule/work.h"

#include <string.h>

enum preference { LEAST_FAR, SAME_THREAD, ANY_ORDER };

struct frame {
	struct order_check *state;
	size_t n;           /* events ordered before it */
	uint32_t *threads;  /* whom to try, in this order */
	uint32_t tried, nthreads;
	uint32_t current;
};

struct explore {
	struct work *w;
	const struct order_view *v;
	struct order_check *c;
	uint32_t *order;
	size_t n, best;
	uint32_t *best_order;
	bool *quiet;       /* by event: nothing depends on when it happens */
	bool use_seen, failing;
	enum preference prefer;
	uint64_t random;
	size_t steps, limit;
	uint64_t *seen;    /* hash set of states */
	size_t seen_cap, nseen;
	VEC(struct frame) stack;
	struct projections *ahead;
};

static uint64_t draw(struct explore *x)
{
	x->random ^= x->random << 13;
	x->random ^= x->random >> 7;
	x->random ^= x->random << 17;
	return x->random >> 16;
}

/* The thread's next event in program order: under TSO writes leave the buffer at once. */
static uint32_t next_of(const struct explore *x, uint32_t thread)
{
	uint32_t other, i;

	if (x->v->model != SCHED_TSO)
		return order_check_next(x->c, thread);
	i = order_check_next(x->c, thread * 2);
	other = order_check_next(x->c, thread * 2 + 1);
	return other < i ? other : i;
}

static bool seen_differs(const struct explore *x, uint32_t i)
{
	const struct sym_event *e = x->v->ev[i].e;

	return x->use_seen && e->op == SYM_READ && e->has_seen && e->symbol &&
	       order_check_values(x->c)[expr_get(x->v->t->pool, e->symbol)->value] != e->seen;
}

static bool step(struct explore *x, uint32_t i)
{
	x->steps++;
	if (order_check_step(x->c, i) != ORDER_OK || seen_differs(x, i))
		return false;
	x->order[x->n++] = i;
	/* The failure is where the failing thread's path leads. */
	if (x->failing && i == x->v->fail && x->v->t->failure.condition)
		return order_check_eval(x->c, x->v->t->failure.condition);
	return true;
}

static bool holds_lock(const struct explore *x, uint32_t thread)
{
	for (size_t o = 0; o < x->v->t->nobjects; o++)
		if (order_check_object(x->c, o)->owner == thread ||
		    order_check_shares(x->c, o, thread))
			return true;
	return false;
}

/* One section of the thread; false when its path does not survive it now. */
static bool run_section(struct explore *x, uint32_t thread)
{
	uint32_t i = next_of(x, thread);

	if (i == SYM_NONE || x->v->ev[i].pending)
		return false;
	do {
		if (!step(x, i))
			return false;
		i = next_of(x, thread);
	} while (i != SYM_NONE && !x->v->ev[i].pending && holds_lock(x, thread));
	return true;
}

/* Quiet events go at once; a quiet event never spoils anything. */
static void run_quiet(struct explore *x)
{
	bool moved = true;

	while (moved) {
		moved = false;
		for (uint32_t t = 0; t < x->v->t->nthreads; t++) {
			uint32_t i = next_of(x, t);

			if (i != SYM_NONE && x->quiet[i] && !x->v->ev[i].pending &&
			    order_check_ready(x->c, i) == ORDER_OK && step(x, i))
				moved = true;
		}
	}
}

static bool enter(struct explore *x, uint64_t hash)
{
	size_t k;

	if (x->nseen * 2 >= x->seen_cap) {
		uint64_t *old = x->seen;
		size_t cap = x->seen_cap;

		x->seen_cap = cap ? cap * 2 : 4096;
		x->seen = xcalloc(x->seen_cap, sizeof *x->seen);
		for (size_t i = 0; i < cap; i++) {
			if (!old[i])
				continue;
			for (k = old[i] & (x->seen_cap - 1); x->seen[k];)
				k = (k + 1) & (x->seen_cap - 1);
			x->seen[k] = old[i];
		}
		free(old);
	}
	hash |= 1;
	for (k = hash & (x->seen_cap - 1); x->seen[k]; k = (k + 1) & (x->seen_cap - 1))
		if (x->seen[k] == hash)
			return false;
	x->seen[k] = hash;
	x->nseen++;
	return true;
}

static double progress_of(const struct explore *x, uint32_t t)
{
	uint32_t len = x->v->first[t + 1] - x->v->first[t], i = next_of(x, t);

	return i == SYM_NONE ? 2.0 : (i - x->v->first[t] + 1.0) / (len + 1.0);
}

/* Whom to try first from here. */
static void rank_threads(struct explore *x, struct frame *f, uint32_t current)
{
	uint32_t nt = x->v->t->nthreads;
	double *key = xcalloc(nt + 1, sizeof *key);

	f->threads = xcalloc(nt + 1, sizeof *f->threads);
	for (uint32_t t = 0; t < nt; t++) {
		double noise = (double)(draw(x) % 1000) / 1000;

		if (next_of(x, t) == SYM_NONE)
			continue;
		switch (x->prefer) {
		case LEAST_FAR: key[t] = progress_of(x, t) + noise * 0.01; break;
		case SAME_THREAD: key[t] = t == current ? -1 : noise; break;
		case ANY_ORDER: key[t] = noise; break;
		}
		uint32_t k = f->nthreads++;
		for (; k > 0 && key[f->threads[k - 1]] > key[t]; k--)
			f->threads[k] = f->threads[k - 1];
		f->threads[k] = t;
	}
	free(key);
}

static void push_frame(struct explore *x, uint32_t current)
{
	struct frame f = { .state = order_check_save(x->c), .n = x->n, .current = current };

	rank_threads(x, &f, current);
	vec_push(&x->stack, f);
}

static void pop_frame(struct explore *x)
{
	struct frame *f = &x->stack.v[--x->stack.n];

	order_check_free(f->state);
	free(f->threads);
}

static void remember_best(struct explore *x)
{
	if (x->n <= x->best)
		return;
	x->best = x->n;
	memcpy(x->best_order, x->order, x->n * sizeof *x->order);
}

/* True: every event is ordered. */
static bool search(struct explore *x)
{
	run_quiet(x);
	remember_best(x);
	push_frame(x, 0);
	while (x->stack.n && x->steps < x->limit) {
		struct frame *f = &x->stack.v[x->stack.n - 1];
		uint32_t t;

		if (x->n == x->w->n)
			return true;
		if (f->tried == f->nthreads) {
			pop_frame(x);
			continue;
		}
		t = f->threads[f->tried++];
		order_check_restore(x->c, f->state);
		x->n = f->n;
		if (!run_section(x, t))
			continue;
		run_quiet(x);
		remember_best(x);
		if (enter(x, order_check_hash(x->c)) && project_hopeful(x->ahead, x->c))
			push_frame(x, t);
		if ((x->steps & 255) == 0 && work_stopped(x->w))
			break;
	}
	return x->best == x->w->n;
}

struct mark {
	const struct order_view *v;
	bool *symbol, *var;
	VEC(uint32_t) vars;
};

static void mark_symbol(void *arg, uint64_t s)
{
	struct mark *m = arg;
	uint32_t r = m->v->reader[s];

	if (m->symbol[s] || r == SYM_NONE)
		return;
	m->symbol[s] = true;
	if (!m->var[m->v->ev[r].e->target]) {
		m->var[m->v->ev[r].e->target] = true;
		vec_push(&m->vars, m->v->ev[r].e->target);
	}
}

/* Accesses that can reach neither a branch nor the failure. */
static void find_quiet(struct explore *x)
{
	const struct order_view *v = x->v;
	const struct expr_pool *p = v->t->pool;
	struct mark m = { .v = v };

	m.symbol = xcalloc(expr_symbol_count(p) + 1, 1);
	m.var = xcalloc(v->t->nvars + 1, 1);
	for (uint32_t k = 0; k < v->nconds; k++)
		expr_symbols(p, v->conds[k].cond, mark_symbol, &m);
	if (v->t->failure.condition)
		expr_symbols(p, v->t->failure.condition, mark_symbol, &m);
	for (uint32_t i = 0; i < v->n; i++)
		if (order_reads(v->ev[i].e) && v->ev[i].e->fixed && v->ev[i].e->symbol)
			mark_symbol(&m, expr_get(p, v->ev[i].e->symbol)->value);
	while (m.vars.n) {
		uint32_t var = m.vars.v[--m.vars.n];

		for (uint32_t i = 0; i < v->n; i++)
			if (order_writes(v->ev[i].e) && v->ev[i].e->target == var)
				expr_symbols(p, v->ev[i].e->value, mark_symbol, &m);
	}
	for (uint32_t i = 0; i < v->n; i++) {
		const struct sym_event *e = v->ev[i].e;

		if (order_reads(e) || order_writes(e))
			x->quiet[i] = !m.var[e->target] && !v->ev[i].foreign && !v->ev[i].ncond;
		else
			x->quiet[i] = (e->op == SYM_START || e->op == SYM_FORK ||
				       e->op == SYM_EXIT || e->op == SYM_FENCE ||
				       e->op == SYM_SEMPOST) && !v->ev[i].ncond;
	}
	x->ahead = project_new(v, m.var, x->failing);
	free(m.symbol);
	free(m.var);
	vec_free(&m.vars);
}

static bool attempt(struct explore *x)
{
	bool done;

	order_check_free(x->c);
	x->c = order_check_new(x->v, ORDER_EXACT, x->w->init, x->w->syms);
	x->n = x->nseen = 0;
	if (x->seen)
		memset(x->seen, 0, x->seen_cap * sizeof *x->seen);
	x->steps = 0;
	done = search(x);
	while (x->stack.n)
		pop_frame(x);
	return done;
}

/*
 * Effort: steps per attempt, as multiples of the trace's length. Many short
 * attempts with other preferences find more than one long one: a bad decision
 * near the beginning is not undone by stepping back.
 */
static const struct {
	enum preference prefer;
	bool use_seen;
	unsigned effort;
} plan[] = {
	{ LEAST_FAR, true, 3 }, { SAME_THREAD, true, 3 }, { SAME_THREAD, false, 3 },
	{ LEAST_FAR, false, 10 }, { SAME_THREAD, false, 10 }, { ANY_ORDER, false, 10 },
};
#define PLANNED (sizeof plan / sizeof *plan)
/* Further attempts, for traces too long for the solver alone. */
#define LONG_TRACE 400
#define LONG_ALL 25.0
#define LONG_EFFORT 40

static bool plan_attempt(struct explore *x, size_t k)
{
	x->prefer = k < PLANNED ? plan[k].prefer : k % 4 == 0 ? SAME_THREAD :
		k % 2 ? ANY_ORDER : LEAST_FAR;
	x->use_seen = k < PLANNED && plan[k].use_seen;
	x->limit = (x->w->n + 16) * (k < PLANNED ? plan[k].effort : LONG_EFFORT);
	return attempt(x);
}

bool explore_order(struct work *w, bool failing, uint32_t *order, size_t *n)
{
	struct explore x = { .w = w, .v = w->v, .random = 88172645463325252ull };
	double end = w->limit.spent + LONG_ALL;
	bool done = false;

	x.failing = failing;
	x.order = xcalloc(w->v->n + 1, sizeof *x.order);
	x.best_order = order;
	x.quiet = xcalloc(w->v->n + 1, sizeof *x.quiet);
	find_quiet(&x);
	for (size_t k = 0; !done && !work_stopped(w); k++) {
		if (k >= PLANNED && (w->n < LONG_TRACE || w->limit.spent > end))
			break;
		done = plan_attempt(&x, k);
		work_executed(w, x.steps);
		/* All states seen: another order of trying finds no more. */
		if (!x.use_seen && x.steps < x.limit)
			break;
	}
	*n = x.best;
	order_check_free(x.c);
	project_free(x.ahead);
	free(x.order);
	free(x.quiet);
	free(x.seen);
	vec_free(&x.stack);
	return done;
}
