/*
 * From a guess to an order that holds: execute it, and where it breaks, free a
 * window around the break and let the solver find an order for it. A window
 * that has none proves nothing about the whole, so it grows until it is the
 * whole trace; only then "none" is the answer.
 */
#include "analyzer/schedule/work.h"

#include "common/strbuf.h"

#include <string.h>

struct break_point {
	bool good;   /* nothing broke */
	size_t at;   /* else: the first event that does not fit, or n */
};

static struct break_point execute(struct work *w, bool failing)
{
	struct order_check *c = order_check_new(w->v, ORDER_EXACT, w->init, w->syms);
	struct break_point b = { 0 };

	b.good = order_check_run(c, w->order, w->n, &b.at) == ORDER_OK &&
		 (!failing || order_check_fails(c));
	order_check_free(c);
	return b;
}

static void take_solution(struct work *w, struct encoding *c, size_t from)
{
	work_rank(w);
	encode_order(c, w->rank, w->order + from);
	encode_model(c, w->init, w->syms);
}

static enum smt_result solve_window(struct work *w, size_t from, size_t to, bool failing,
				    bool free_init)
{
	struct order_check *c = work_state(w, from, ORDER_EXACT);
	struct order_window *win = order_window_new(c, w->order, from, to, w->n, ORDER_EXACT, SYM_NONE, false);
	struct encoding *enc;
	enum smt_result r = SMT_UNSAT;
	Z3_ast assume;

	win->free_init = free_init;
	enc = encode_new(win, &w->limit, false);
	assume = failing && to == w->n ? enc->fails : NULL;
	encode_start(enc);
	if (!enc->contradiction)
		r = smt_check(enc->smt, &assume, assume ? 1 : 0, 0);
	if (r == SMT_SAT)
		take_solution(w, enc, from);
	work_asked(w, win->n);
	encode_free(enc);
	order_window_free(win);
	return r;
}

/* Something the trace leaves open: then zero is tried first, anything after that. */
static bool has_unknowns(const struct work *w)
{
	for (size_t i = 0; i < w->v->t->nvars; i++)
		if (!w->v->t->vars[i].has_init)
			return true;
	for (size_t i = 0; i < expr_symbol_count(w->v->t->pool); i++)
		if (w->v->reader[i] == SYM_NONE)
			return true;
	return false;
}

static enum smt_result solve_around(struct work *w, size_t from, size_t to, bool failing)
{
	enum smt_result r = solve_window(w, from, to, failing, false);

	if (r == SMT_UNSAT && from == 0 && has_unknowns(w))
		r = solve_window(w, from, to, failing, true);
	return r;
}

static bool place_window(const struct work *w, size_t at, size_t size, size_t *from, size_t *to)
{
	*from = at > size ? at - size : 0;
	*to = at + size / 2 + 1;
	if (*to + size / 2 >= w->n)
		*to = w->n;
	if (w->n <= WHOLE_AT_ONCE && size > FIRST_WINDOW) {
		*from = 0;
		*to = w->n;
	}
	return *from == 0 && *to == w->n;
}

enum search_result search_order(struct work *w, bool failing)
{
	size_t size = w->o->window ? w->o->window : FIRST_WINDOW, reached = 0;

	for (;;) {
		struct break_point b = execute(w, failing);
		size_t from, to;
		enum smt_result r;
		bool whole;

		if (b.good)
			return SEARCH_FOUND;
		if (work_stopped(w))
			return SEARCH_UNKNOWN;
		/* No further than last time: what we chose there was wrong for later. */
		if (reached && b.at <= reached)
			size *= 2;
		reached = b.at + 1;
		do {
			whole = place_window(w, b.at, size, &from, &to);
			r = solve_around(w, from, to, failing);
			if (r == SMT_UNKNOWN)
				return SEARCH_UNKNOWN;
			if (r == SMT_UNSAT && whole)
				return SEARCH_NONE;
			if (r == SMT_UNSAT)
				size *= 2;
		} while (r == SMT_UNSAT);
		/* The whole, solved, and still not right: encoding and checker disagree. */
		if (whole && !execute(w, failing).good)
			return SEARCH_UNKNOWN;
	}
}

static void describe_cond(struct work *w, struct strbuf *b, uint32_t k)
{
	const struct order_view_cond *d = &w->v->conds[k];
	const struct sym_cond *c = &w->v->t->threads[d->thread].conds[d->number];
	char *text = expr_text(w->v->t->pool, d->cond);

	/* Compiled arithmetic gets long; its beginning tells it apart. */
	strbuf_fmt(b, "%s %.100s%s", w->v->t->threads[d->thread].id, text,
		   strlen(text) > 100 ? "..." : "");
	if (c->stack != SYM_NONE && w->v->t->stacks[c->stack].n) {
		const struct sym_frame *f = &w->v->t->stacks[c->stack].frames[0];

		if (f->file)
			strbuf_fmt(b, " (%s:%u)", f->file, f->line);
	}
	free(text);
}

char *search_conflict(struct work *w)
{
	struct order_check *c = work_state(w, 0, ORDER_EXACT);
	struct order_window *win = order_window_new(c, w->order, 0, w->n, w->n, ORDER_EXACT, SYM_NONE, false);
	struct encoding *enc;
	struct strbuf b = { 0 };
	VEC(Z3_ast) assume = { 0 };
	enum smt_result r = SMT_UNKNOWN;
	unsigned named = 0;

	win->free_init = true;
	enc = encode_new(win, &w->limit, true);
	encode_start(enc);
	for (size_t i = 0; i < enc->tracked.n; i++)
		vec_push(&assume, enc->tracked.v[i]);
	vec_push(&assume, enc->fails);
	if (enc->contradiction)
		strbuf_str(&b, "program order, thread creation and time stamps contradict each other");
	else
		r = smt_check(enc->smt, assume.v, assume.n, 0);
	if (r == SMT_UNSAT) {
		smt_take_core(enc->smt);
		strbuf_str(&b, "these cannot hold together in any order: ");
		for (size_t k = 0; k < enc->tracked.n && named < 8; k++) {
			if (!smt_in_core(enc->smt, enc->tracked.v[k]))
				continue;
			strbuf_str(&b, named++ ? "; " : "");
			describe_cond(w, &b, enc->tracked_cond.v[k]);
		}
		if (smt_in_core(enc->smt, enc->fails))
			strbuf_fmt(&b, "%sthe failure", named++ ? "; " : "");
		if (!named)
			strbuf_str(&b, "the synchronisation operations themselves");
	}
	vec_free(&assume);
	encode_free(enc);
	order_window_free(win);
	return strbuf_take(&b);
}
