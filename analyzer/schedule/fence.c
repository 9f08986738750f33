/*
 * Store buffers to blame: which loads, had they not overtaken the store before
 * them, would have kept the failure away.
 *
 * Under TSO a load may take its value while an earlier store of its thread
 * still sits in the buffer. With every load kept behind the store before it
 * (stores leave in order, so the last one will do) what remains is sequential
 * consistency. If the failure is then impossible, the solver's core says which
 * of these pairs are needed, and each is dropped in turn like in cause.c. What
 * is left is where fences belong. Which store it was whose delay mattered is asked
 * last: the earliest that is enough, since all behind it were delayed with it.
 */
#include "analyzer/schedule/work.h"

struct pair {
	uint32_t store, load;
	bool nearest; /* no store in between; those that are not come before the one that is */
	Z3_ast keep; /* assumed: in program order */
};

struct fences {
	struct work *w;
	struct order_window *win;
	struct encoding *enc;
	VEC(struct pair) pairs;
	VEC(uint32_t) core; /* numbers of pairs */
	VEC(Z3_ast) assume;
};

/* A load with the last of these stores, the earliest first. */
static void add_pairs(struct fences *x, const uint32_t *stores, size_t n, uint32_t load)
{
	if (!order_window_has(x->win, load))
		return;
	for (size_t i = n > FENCE_STORES ? n - FENCE_STORES : 0; i < n; i++)
		if (order_window_has(x->win, stores[i]))
			vec_push(&x->pairs, (struct pair){ stores[i], load, i + 1 == n,
							   encode_edge(x->enc, stores[i], load) });
}

/* Each load with the stores before it that nothing forces out of the buffer in between. */
static void collect_pairs(struct fences *x)
{
	const struct order_view *v = x->enc->v;
	VEC(uint32_t) stores = { 0 };

	for (size_t t = 0; t < v->t->nthreads; t++) {
		stores.n = 0;
		for (uint32_t i = v->first[t]; i < v->first[t + 1]; i++) {
			if (v->ev[i].e->op == SYM_WRITE)
				vec_push(&stores, i);
			else if (v->ev[i].drains)
				stores.n = 0;
			else
				add_pairs(x, stores.v, stores.n, i);
		}
	}
	vec_free(&stores);
}

/* Can it fail with these pairs, all but `but`, in program order? */
static enum smt_result ask(struct fences *x, uint32_t but)
{
	x->assume.n = 0;
	vec_push(&x->assume, x->enc->fails);
	for (size_t i = 0; i < x->core.n; i++)
		if (x->core.v[i] != but)
			vec_push(&x->assume, x->pairs.v[x->core.v[i]].keep);
	work_asked(x->w, x->win->n);
	return smt_check(x->enc->smt, x->assume.v, x->assume.n, FENCE_ASK);
}

static void read_core(struct fences *x)
{
	smt_take_core(x->enc->smt);
	x->core.n = 0;
	for (uint32_t k = 0; k < x->pairs.n; k++)
		if (smt_in_core(x->enc->smt, x->pairs.v[k].keep))
			vec_push(&x->core, k);
}

static bool in_core(const struct fences *x, uint32_t k)
{
	for (size_t i = 0; i < x->core.n; i++)
		if (x->core.v[i] == k)
			return true;
	return false;
}

static void minimize(struct fences *x)
{
	double end = x->w->limit.spent + FENCE_ALL;

	for (uint32_t k = 0; k < x->pairs.n && x->w->limit.spent < end; k++)
		if (in_core(x, k) && ask(x, k) == SMT_UNSAT)
			read_core(x);
}

/* In the place of each pair the one of the same load with the earliest store that is enough. */
static void find_stores(struct fences *x)
{
	double end = x->w->limit.spent + FENCE_ALL;

	for (size_t i = 0; i < x->core.n; i++) {
		uint32_t nearest = x->core.v[i], k = nearest;

		while (k > 0 && x->pairs.v[k - 1].load == x->pairs.v[nearest].load)
			k--;
		for (; k < nearest && x->w->limit.spent < end; k++) {
			x->core.v[i] = k;
			if (ask(x, SYM_NONE) == SMT_UNSAT)
				break;
		}
		x->core.v[i] = k < nearest && x->w->limit.spent < end ? k : nearest;
	}
}

static void export_delays(struct fences *x)
{
	struct sched_answer *a = x->w->a;

	a->delays = xcalloc(x->core.n + 1, sizeof *a->delays);
	a->ndelays = x->core.n;
	for (size_t i = 0; i < x->core.n; i++) {
		const struct pair *p = &x->pairs.v[x->core.v[i]];

		a->delays[i].store = order_view_ref(x->w->v, p->store);
		a->delays[i].load = order_view_ref(x->w->v, p->load);
	}
}

void find_delays(struct work *w)
{
	struct fences x = { .w = w };
	size_t from = w->n > w->study_events ? w->n - w->study_events : 0;
	struct order_check *c;

	if (w->v->model != SCHED_TSO || work_stopped(w))
		return;
	/* About any run, not just the recorded one: without its time stamps. */
	c = order_check_new(w->timeless, ORDER_EXACT, w->init, w->syms);
	for (size_t k = 0; k < from; k++)
		order_check_step(c, w->order[k]);
	x.win = order_window_new(c, w->order, from, w->n, w->n, ORDER_EXACT, SYM_NONE, false);
	x.enc = encode_new(x.win, &w->limit, false);
	if (!x.enc->contradiction)
		collect_pairs(&x);
	encode_start(x.enc);
	for (uint32_t k = 0; k < x.pairs.n; k++)
		if (x.pairs.v[k].nearest)
			vec_push(&x.core, k);
	if (!x.enc->contradiction && ask(&x, SYM_NONE) == SMT_UNSAT) {
		read_core(&x);
		minimize(&x);
		find_stores(&x);
		export_delays(&x);
	}
	encode_free(x.enc);
	order_window_free(x.win);
	vec_free(&x.pairs);
	vec_free(&x.core);
	vec_free(&x.assume);
}
