/* The frame of the encoding: nodes, static order, path, failure, answers. */
#include "analyzer/schedule/encode.h"

#include <string.h>

static const struct order_view_event *event(const struct encoding *c, uint32_t local)
{
	return &c->v->ev[c->w->events[local]];
}

bool encode_must(const struct encoding *c, uint32_t a, uint32_t b)
{
	const struct order_view_event *x = &c->v->ev[a];
	uint32_t l = c->w->local[b];

	return a != b && l != SYM_NONE && !x->pending &&
	       c->clock[(size_t)l * c->v->nchains + x->chain] > x->pos;
}

Z3_ast encode_before(struct encoding *c, uint32_t a, uint32_t b)
{
	if (encode_must(c, a, b))
		return c->yes;
	if (a == b || encode_must(c, b, a))
		return c->no;
	return smt_lt(c->smt, c->out[c->w->local[a]], c->in[c->w->local[b]]);
}

Z3_ast encode_edge(struct encoding *c, uint32_t a, uint32_t b)
{
	Z3_ast lit = smt_bool(c->smt);

	smt_implies(c->smt, lit, encode_before(c, a, b));
	return lit;
}

static void build_nodes(struct encoding *c)
{
	c->in = xcalloc(c->w->n + 1, sizeof *c->in);
	c->out = xcalloc(c->w->n + 1, sizeof *c->out);
	c->exec = xcalloc(c->w->n + 1, sizeof *c->exec);
	for (uint32_t l = 0; l < c->w->n; l++) {
		const struct order_view_event *x = event(c, l);

		c->in[l] = c->out[l] = order_acyclic_node(c->smt->g);
		order_acyclic_prefer(c->smt->g, c->in[l], ENCODE_RANK(c->w->place[l]));
		if (x->e->op == SYM_RMW && x->e->value) {
			c->out[l] = order_acyclic_node(c->smt->g);
			order_acyclic_static(c->smt->g, c->in[l], c->out[l]);
			order_acyclic_prefer(c->smt->g, c->out[l], ENCODE_RANK(c->w->place[l]) + 2);
		}
		if (x->pending)
			c->exec[l] = smt_bool(c->smt);
	}
}

/* A thread whose creation or end lies neither behind us nor in the window. */
static void require_life(struct encoding *c)
{
	const struct order_view *v = c->v;

	for (uint32_t l = 0; l < c->w->n; l++) {
		const struct sym_event *e = event(c, l)->e;
		uint32_t fork = v->forked_by[e->thread], last;

		if (e->index == 0 && fork != SYM_NONE && !order_window_has(c->w, fork) &&
		    !order_check_executed(c->w->start, fork))
			smt_assert(c->smt, c->no);
		if (e->op != SYM_JOIN || v->first[e->peer] == v->first[e->peer + 1])
			continue;
		last = v->first[e->peer + 1] - 1;
		if (order_check_executed(c->w->start, last))
			continue;
		if (!order_window_has(c->w, last) ||
		    (c->exec[l] && v->ev[last].e->op != SYM_EXIT)) {
			smt_assert(c->smt, c->exec[l] ? smt_not(c->smt, c->exec[l]) : c->no);
		} else if (v->ev[last].pending) {
			/* Joined only if the peer's last, pending event happened before. */
			smt_or2(c->smt, c->exec[l] ? smt_not(c->smt, c->exec[l]) : c->no,
				c->exec[c->w->local[last]]);
			smt_assert(c->smt, encode_before(c, last, c->w->events[l]));
		}
	}
}

/* An initialiser runs once; who waits for one that never ends does not go on. */
static void require_once(struct encoding *c)
{
	const struct order_view *v = c->v;

	for (uint32_t l = 0; l < c->w->n; l++) {
		const struct sym_event *e = event(c, l)->e;
		bool begun = false, ended = false, other = false;
		Z3_ast skip = c->exec[l] ? smt_not(c->smt, c->exec[l]) : c->no;

		if (e->op != SYM_ONCE_BEGIN && e->op != SYM_ONCE_END)
			continue;
		ended = order_check_object(c->w->start, e->target)->count == 2;
		begun = order_check_object(c->w->start, e->target)->count > 0;
		for (uint32_t m = 0; m < c->w->n; m++) {
			const struct sym_event *o = event(c, m)->e;

			if (o->target != e->target || event(c, m)->pending)
				continue;
			if (o->op == SYM_ONCE_BEGIN && o->result == 1) {
				begun = true;
				other |= m != l;
			}
			/* Any end of the runner's thread, be it in the window. */
			if (o->op == SYM_ONCE_END) {
				for (uint32_t k = v->first[o->thread]; k < c->w->events[m]; k++)
					if (v->ev[k].e->op == SYM_ONCE_BEGIN &&
					    v->ev[k].e->target == e->target &&
					    v->ev[k].e->result == 1)
						ended = true;
			}
		}
		if (e->op == SYM_ONCE_BEGIN && e->result == 1 &&
		    (other || order_check_object(c->w->start, e->target)->count > 0))
			smt_assert(c->smt, skip);
		if ((e->op == SYM_ONCE_BEGIN && e->result != 1 && !begun) ||
		    (e->op == SYM_ONCE_END && !ended))
			smt_assert(c->smt, skip);
	}
}

/* Is this condition part of the window's path? */
static bool cond_applies(const struct encoding *c, uint32_t k)
{
	const struct order_view_cond *d = &c->v->conds[k];

	if (c->w->diverge != SYM_NONE && !order_still_binds(c->v, k, c->w->diverge))
		return false;
	if (c->w->relax != SYM_NONE && !order_still_binds(c->v, k, c->w->relax))
		return false;
	if (k >= c->v->first_late)
		return c->w->to_end && c->w->diverge == SYM_NONE;
	return d->after != SYM_NONE && order_window_has(c->w, d->after) &&
	       !c->v->ev[d->after].pending;
}

/* Conditions `symbol == constant` pin values that prune reads-from choices. */
static void learn_constant(struct encoding *c, expr_id e)
{
	const struct expr_pool *p = c->v->t->pool;
	const struct expr *n = expr_get(p, e), *a, *b;

	if (n->op == EX_BAND) {
		learn_constant(c, n->a);
		learn_constant(c, n->b);
		return;
	}
	if (n->op != EX_EQ)
		return;
	a = expr_get(p, n->a);
	b = expr_get(p, n->b);
	if (a->op == EX_CONST) {
		const struct expr *t = a;

		a = b;
		b = t;
	}
	if (a->op == EX_SYMBOL && b->op == EX_CONST) {
		c->is_known[a->value] = true;
		c->known[a->value] = b->value;
	}
}

/* `cond (eq EXPR CONST)`: the expression, and its value; else EXPR_NONE. */
static expr_id pinned_by(const struct encoding *c, expr_id cond, uint64_t *value)
{
	const struct expr_pool *p = c->v->t->pool;
	const struct expr *n = expr_get(p, cond);

	if (n->op != EX_EQ)
		return EXPR_NONE;
	for (int side = 0; side < 2; side++) {
		expr_id a = side ? n->b : n->a, b = side ? n->a : n->b;

		if (expr_get(p, b)->op == EX_CONST && !expr_get(p, a)->concrete &&
		    expr_get(p, a)->op != EX_SYMBOL) {
			*value = expr_get(p, b)->value;
			return a;
		}
	}
	return EXPR_NONE;
}

static void learn_pins(struct encoding *c)
{
	for (uint32_t k = 0; k < c->v->nconds && !c->track; k++) {
		uint64_t value;
		expr_id e = cond_applies(c, k) ? pinned_by(c, c->v->conds[k].cond, &value) : 0;

		if (e) {
			c->is_pinned[e] = true;
			c->pin[e] = value;
		}
	}
}

static Z3_ast path_term(struct encoding *c, expr_id cond)
{
	uint64_t value;
	expr_id e = pinned_by(c, cond, &value);

	if (!e || !c->is_pinned[e])
		return smt_term(c->terms, cond);
	return Z3_mk_eq(c->smt->z, smt_term_raw(c->terms, e),
			smt_number(c, expr_get(c->v->t->pool, e)->width, value));
}

static void add_path(struct encoding *c)
{
	for (uint32_t k = 0; k < c->v->nconds; k++) {
		Z3_ast cond;

		if (!cond_applies(c, k))
			continue;
		cond = path_term(c, c->v->conds[k].cond);
		if (!c->track) {
			smt_assert(c->smt, cond);
			continue;
		}
		vec_push(&c->tracked, smt_bool(c->smt));
		vec_push(&c->tracked_cond, k);
		smt_implies(c->smt, c->tracked.v[c->tracked.n - 1], cond);
	}
	for (uint32_t l = 0; l < c->w->n; l++) {
		const struct sym_event *e = event(c, l)->e;

		if (order_reads(e) && e->fixed && e->symbol)
			smt_assert(c->smt, Z3_mk_eq(c->smt->z, smt_term(c->terms, e->symbol),
				smt_number(c, expr_get(c->v->t->pool, e->symbol)->width, e->seen)));
	}
}

static void deadlock_literals(struct encoding *c)
{
	c->tmp.n = 0;
	vec_push(&c->tmp, smt_not(c->smt, c->avoids));
	for (uint32_t l = 0; l < c->w->n; l++) {
		if (!c->exec[l])
			continue;
		vec_push(&c->tmp, c->exec[l]);
		smt_implies(c->smt, c->fails, smt_not(c->smt, c->exec[l]));
		if (!encode_stuck(c, c->w->events[l]))
			smt_assert(c->smt, smt_not(c->smt, c->fails));
	}
	smt_clause(c->smt, c->tmp.v, c->tmp.n);
}

/* Does e say more than the pinned expressions below it do? */
static bool says_more(const struct encoding *c, expr_id e, const bool *pinned)
{
	const struct expr_pool *p = c->v->t->pool;
	VEC(expr_id) stack = { 0 };
	bool *seen = xcalloc(expr_count(p), 1), more = false;

	vec_push(&stack, e);
	while (stack.n && !more) {
		expr_id id = stack.v[--stack.n];
		const struct expr *n = expr_get(p, id);
		const expr_id kids[3] = { n->a, n->b, n->c };

		if (seen[id] || n->concrete || pinned[id])
			continue;
		seen[id] = true;
		more = n->op == EX_SYMBOL;
		for (int k = 0; k < 3; k++)
			if (kids[k])
				vec_push(&stack, kids[k]);
	}
	vec_free(&stack);
	free(seen);
	return more;
}

/* All conditions of the branch that goes elsewhere, without those that others imply. */
static Z3_ast branch_term(struct encoding *c)
{
	const struct expr_pool *p = c->v->t->pool;
	bool *pinned = xcalloc(expr_count(p), 1);
	uint64_t value;
	Z3_ast all;

	for (uint32_t k = 0; k < c->v->nconds; k++) {
		const struct expr *n = expr_get(p, c->v->conds[k].cond);

		if (!order_same_branch(c->v, k, c->w->diverge) || n->op != EX_EQ)
			continue;
		expr_id e = pinned_by(c, c->v->conds[k].cond, &value);
		if (e)
			pinned[e] = true;
		else if (expr_get(p, n->b)->op == EX_CONST && expr_get(p, n->a)->op == EX_SYMBOL)
			pinned[n->a] = true;
	}
	c->tmp.n = 0;
	for (uint32_t k = 0; k < c->v->nconds; k++) {
		expr_id cond = c->v->conds[k].cond;
		const struct expr *n = expr_get(p, cond);
		bool pins = n->op == EX_EQ && (pinned[n->a] || pinned[n->b]);

		if (order_same_branch(c->v, k, c->w->diverge) && (pins || says_more(c, cond, pinned)))
			vec_push(&c->tmp, smt_term(c->terms, cond));
	}
	all = Z3_mk_and(c->smt->z, c->tmp.n, c->tmp.v);
	free(pinned);
	return all;
}

static void add_failure(struct encoding *c)
{
	const struct sym_failure *f = &c->v->t->failure;
	Z3_ast cond = c->yes;

	c->fails = smt_bool(c->smt);
	c->avoids = smt_bool(c->smt);
	if (c->w->diverge != SYM_NONE) {
		cond = branch_term(c);
	} else if (c->v->deadlock) {
		deadlock_literals(c);
		return;
	} else if (f->condition) {
		cond = smt_term(c->terms, f->condition);
	}
	smt_implies(c->smt, c->fails, cond);
	smt_implies(c->smt, c->avoids, smt_not(c->smt, cond));
}

struct mark {
	struct encoding *c;
	VEC(uint32_t) vars;
	bool *queued;
};

static void mark_needed(void *arg, uint64_t symbol)
{
	struct mark *m = arg;
	uint32_t r = m->c->v->reader[symbol];

	if (m->c->needed[symbol] || r == SYM_NONE || !order_window_has(m->c->w, r))
		return;
	m->c->needed[symbol] = true;
	if (!m->queued[m->c->v->ev[r].e->target]) {
		m->queued[m->c->v->ev[r].e->target] = true;
		vec_push(&m->vars, m->c->v->ev[r].e->target);
	}
}

/* The cone of the path and the failure: reads nothing depends on need no source. */
static void find_needed(struct encoding *c)
{
	const struct expr_pool *p = c->v->t->pool;
	struct mark m = { .c = c, .queued = xcalloc(c->v->t->nvars + 1, 1) };
	uint32_t *head = xmalloc((c->v->t->nvars + 1) * sizeof *head);
	uint32_t *next = xcalloc(c->w->n + 1, sizeof *next);

	memset(head, 0xff, (c->v->t->nvars + 1) * sizeof *head);
	for (uint32_t k = 0; k < c->v->nconds; k++) {
		if (!cond_applies(c, k))
			continue;
		if (!c->track) /* a condition that may be given up pins nothing */
			learn_constant(c, c->v->conds[k].cond);
		expr_symbols(p, c->v->conds[k].cond, mark_needed, &m);
	}
	for (uint32_t k = 0; c->w->diverge != SYM_NONE && k < c->v->nconds; k++)
		if (order_same_branch(c->v, k, c->w->diverge))
			expr_symbols(p, c->v->conds[k].cond, mark_needed, &m);
	if (c->w->diverge == SYM_NONE && c->w->to_end && c->v->t->failure.condition)
		expr_symbols(p, c->v->t->failure.condition, mark_needed, &m);
	for (uint32_t l = 0; l < c->w->n; l++) {
		const struct sym_event *e = event(c, l)->e;

		if (order_writes(e)) {
			next[l] = head[e->target];
			head[e->target] = l;
		}
		if (order_reads(e) && e->fixed && e->symbol) {
			uint64_t s = expr_get(p, e->symbol)->value;

			c->is_known[s] = true;
			c->known[s] = e->seen;
			mark_needed(&m, s);
		}
	}
	while (m.vars.n) {
		uint32_t var = m.vars.v[--m.vars.n];

		for (uint32_t l = head[var]; l != SYM_NONE; l = next[l])
			expr_symbols(p, event(c, l)->e->value, mark_needed, &m);
	}
	free(m.queued);
	vec_free(&m.vars);
	free(head);
	free(next);
}

struct encoding *encode_new(const struct order_window *w, struct smt_limit *limit, bool track)
{
	struct encoding *c = xcalloc(1, sizeof *c);
	size_t nsyms = expr_symbol_count(w->v->t->pool);

	c->w = w;
	c->v = w->v;
	c->track = track;
	c->smt = smt_new(limit);
	c->smt->propagate = !w->v->use_times;
	c->yes = Z3_mk_true(c->smt->z);
	c->no = Z3_mk_false(c->smt->z);
	c->terms = smt_terms_new(c);
	c->needed = xcalloc(nsyms + 1, sizeof *c->needed);
	c->known = xcalloc(nsyms + 1, sizeof *c->known);
	c->is_known = xcalloc(nsyms + 1, sizeof *c->is_known);
	c->pin = xcalloc(expr_count(w->v->t->pool), sizeof *c->pin);
	c->is_pinned = xcalloc(expr_count(w->v->t->pool), sizeof *c->is_pinned);
	c->init = xcalloc(w->v->t->nvars + 1, sizeof *c->init);
	build_nodes(c);
	encode_static_order(c);
	if (c->contradiction)
		return c;
	find_needed(c);
	learn_pins(c);
	require_life(c);
	require_once(c);
	encode_data(c);
	encode_locks(c);
	add_path(c);
	add_failure(c);
	encode_conds(c);
	encode_counts(c);
	return c;
}

void encode_free(struct encoding *c)
{
	if (!c)
		return;
	smt_terms_free(c->terms);
	smt_free(c->smt);
	free(c->in);
	free(c->out);
	free(c->exec);
	free(c->clock);
	free(c->needed);
	free(c->known);
	free(c->is_known);
	free(c->pin);
	free(c->is_pinned);
	free(c->init);
	vec_free(&c->tracked);
	vec_free(&c->tracked_cond);
	vec_free(&c->tmp);
	free(c);
}

void encode_start(struct encoding *c)
{
	if (!c->contradiction && !smt_start(c->smt))
		c->contradiction = true;
}

size_t encode_order(struct encoding *c, const uint64_t *rank, uint32_t *out)
{
	uint32_t nodes = order_acyclic_nodes(c->smt->g), n = 0;
	uint64_t *r = xcalloc(nodes + 1, sizeof *r);
	uint32_t *sorted = xcalloc(nodes + 1, sizeof *sorted);
	uint32_t *of = xmalloc((nodes + 1) * sizeof *of);

	memset(of, 0xff, (nodes + 1) * sizeof *of);
	/* Ends of lifetimes (rank 0) go as early as they can: they hold others up. */
	for (uint32_t l = 0; l < c->w->n; l++) {
		r[c->in[l]] = r[c->out[l]] = rank[c->w->events[l]] + 1;
		of[c->out[l]] = c->w->events[l];
	}
	smt_order(c->smt, r, sorted);
	for (uint32_t k = 0; k < nodes; k++) {
		uint32_t i = of[sorted[k]];

		if (i == SYM_NONE)
			continue;
		if (c->exec[c->w->local[i]] && !smt_is_true(c->smt, c->exec[c->w->local[i]]))
			continue;
		out[n++] = i;
	}
	free(r);
	free(sorted);
	free(of);
	return n;
}

void encode_model(struct encoding *c, uint64_t *init, uint64_t *syms)
{
	const struct expr_pool *p = c->v->t->pool;

	if (!c->w->free_init)
		return;
	for (size_t i = 0; i < c->v->t->nvars; i++)
		if (c->init[i])
			init[i] = smt_value(c->smt, c->init[i]);
	for (expr_id e = 1; e < expr_count(p); e++) {
		const struct expr *n = expr_get(p, e);

		if (n->op == EX_SYMBOL && c->v->reader[n->value] == SYM_NONE)
			syms[n->value] = smt_value(c->smt, smt_term(c->terms, e));
	}
}
