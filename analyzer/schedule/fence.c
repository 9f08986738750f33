/*
 * Store buffers to blame: which loads, had they not overtaken the store before
 * them, would have kept the failure away.
 *
 * Under TSO a load may take its value while an earlier store of its thread
 * still sits in the buffer. With every load kept behind the store before it
 * (stores leave in order, so the last one will do) what remains is sequential
 * consistency. If the failure is then impossible, the solver's core says which
 * of these pairs are needed, and each is dropped in turn like in cause.c. What
 * is left is where fences belong.
 */
#include "analyzer/schedule/work.h"

/* Effort (smt.h) for one question, and for dropping what is not needed. */
#define FENCE_ASK 2.0
#define FENCE_ALL 8.0

struct pair {
	uint32_t store, load;
	Z3_ast keep; /* assumed: in program order */
};

struct fences {
	struct work *w;
	struct window *win;
	struct encoding *enc;
	VEC(struct pair) pairs;
	VEC(uint32_t) core; /* numbers of pairs */
	VEC(Z3_ast) assume;
};

/* Each load with the store before it that nothing forces out of the buffer in between. */
static void collect_pairs(struct fences *x)
{
	const struct sched_view *v = x->enc->v;

	for (size_t t = 0; t < v->t->nthreads; t++) {
		uint32_t store = VIEW_NONE;

		for (uint32_t i = v->first[t]; i < v->first[t + 1]; i++) {
			if (v->ev[i].e->op == SYM_WRITE)
				store = i;
			else if (v->ev[i].drains)
				store = VIEW_NONE;
			else if (store != VIEW_NONE && window_has(x->win, i) &&
				 window_has(x->win, store))
				vec_push(&x->pairs, (struct pair){ store, i,
						encode_edge(x->enc, store, i) });
		}
	}
}

/* Can it fail with these pairs, all but `but`, in program order? */
static enum smt_result ask(struct fences *x, uint32_t but)
{
	x->assume.n = 0;
	vec_push(&x->assume, x->enc->fails);
	for (size_t i = 0; i < x->core.n; i++)
		if (x->core.v[i] != but)
			vec_push(&x->assume, x->pairs.v[x->core.v[i]].keep);
	return smt_check(x->enc->smt, x->assume.v, x->assume.n, FENCE_ASK);
}

static void read_core(struct fences *x)
{
	smt_take_core(x->enc->smt);
	x->core.n = 0;
	for (uint32_t k = 0; k < x->pairs.n; k++) {
		for (size_t i = 0; i < x->enc->smt->core.n; i++) {
			if (x->enc->smt->core.v[i] == x->pairs.v[k].keep) {
				vec_push(&x->core, k);
				break;
			}
		}
	}
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

static void export_delays(struct fences *x)
{
	struct sched_answer *a = x->w->a;

	a->delays = xcalloc(x->core.n + 1, sizeof *a->delays);
	a->ndelays = x->core.n;
	for (size_t i = 0; i < x->core.n; i++) {
		const struct pair *p = &x->pairs.v[x->core.v[i]];

		a->delays[i].store = view_ref(x->w->v, p->store);
		a->delays[i].load = view_ref(x->w->v, p->load);
	}
}

void find_delays(struct work *w)
{
	struct fences x = { .w = w };
	size_t from = w->n > w->study_events ? w->n - w->study_events : 0;
	struct check *c;

	if (w->v->model != SCHED_TSO || work_stopped(w))
		return;
	/* About any run, not just the recorded one: without its time stamps. */
	c = check_new(w->timeless, CHECK_EXACT, w->init, w->syms);
	for (size_t k = 0; k < from; k++)
		check_step(c, w->order[k]);
	x.win = window_new(c, w->order, from, w->n, w->n, CHECK_EXACT, VIEW_NONE, false);
	x.enc = encode_new(x.win, &w->limit, false);
	if (!x.enc->contradiction)
		collect_pairs(&x);
	encode_start(x.enc);
	for (uint32_t k = 0; k < x.pairs.n; k++)
		vec_push(&x.core, k);
	if (!x.enc->contradiction && ask(&x, VIEW_NONE) == SMT_UNSAT) {
		read_core(&x);
		minimize(&x);
		export_delays(&x);
	}
	encode_free(x.enc);
	window_free(x.win);
	vec_free(&x.pairs);
	vec_free(&x.core);
	vec_free(&x.assume);
}
