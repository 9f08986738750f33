/*
 * Questions about the end of the failing order: which of its orderings could
 * be otherwise, and what happens then.
 */
#include "analyzer/schedule/work.h"

#include <string.h>

/* What other threads last did to one variable or object. */
struct last {
	uint32_t *write, *other; /* by thread: event, or SYM_NONE */
};

struct edges {
	struct study *s;
	struct last *vars, *objects;
	bool *var_matters;
};

static void last_init(struct last *l, size_t nthreads)
{
	if (l->write)
		return;
	l->write = xmalloc((nthreads + 1) * sizeof *l->write);
	l->other = xmalloc((nthreads + 1) * sizeof *l->other);
	memset(l->write, 0xff, (nthreads + 1) * sizeof *l->write);
	memset(l->other, 0xff, (nthreads + 1) * sizeof *l->other);
}

/*
 * Program order carries (a, b) when a later event than a already stands before
 * an earlier one than b. Looked for only among edges of the same variable: the
 * cause is to be told in terms of what was raced for.
 */
static bool is_carried(const struct study *s, size_t first, uint32_t a, uint32_t b)
{
	const struct order_view_event *ev = s->w->v->ev;

	for (size_t k = s->edges.n; k-- > first;) {
		const struct study_edge *e = &s->edges.v[k];

		if (ev[e->before].e->target == ev[a].e->target &&
		    ev[e->before].chain == ev[a].chain && ev[e->after].chain == ev[b].chain &&
		    ev[e->before].pos >= ev[a].pos && ev[e->after].pos <= ev[b].pos)
			return true;
	}
	return false;
}

static void add_edge(struct study *s, uint32_t a, uint32_t b)
{
	size_t first = s->edges.n > CARRY_SEARCH ? s->edges.n - CARRY_SEARCH : 0;

	if (a == SYM_NONE || encode_must(s->enc, a, b) || is_carried(s, first, a, b))
		return;
	vec_push(&s->edges, (struct study_edge){ a, b, encode_edge(s->enc, a, b),
						 encode_edge(s->enc, b, a) });
}

/*
 * Fixing, per pair of threads, the order of conflicting accesses next to each
 * other fixes what every read sees, so all edges together force the failure.
 */
static void access_edges(struct edges *x, uint32_t i)
{
	const struct sym_event *e = x->s->w->v->ev[i].e;
	size_t nt = x->s->w->v->t->nthreads;
	struct last *l = &x->vars[e->target];

	last_init(l, nt);
	for (size_t t = 0; t < nt; t++) {
		if (t == e->thread)
			continue;
		add_edge(x->s, l->write[t], i);
		/* Program order carries a read that comes before the write already named. */
		if (order_writes(e) && l->other[t] != SYM_NONE &&
		    (l->write[t] == SYM_NONE || l->other[t] > l->write[t] ||
		     x->s->w->v->model == SCHED_TSO))
			add_edge(x->s, l->other[t], i);
	}
	if (order_writes(e))
		l->write[e->thread] = i;
	else
		l->other[e->thread] = i;
}

static void object_edges(struct edges *x, uint32_t i, uint32_t object)
{
	const struct sym_event *e = x->s->w->v->ev[i].e;
	size_t nt = x->s->w->v->t->nthreads;
	struct last *l = &x->objects[object];

	last_init(l, nt);
	for (size_t t = 0; t < nt; t++)
		if (t != e->thread)
			add_edge(x->s, l->other[t], i);
	l->other[e->thread] = i;
}

/* For a lock the acquisitions tell the order; for the rest every operation does. */
static void sync_edges(struct edges *x, uint32_t i)
{
	const struct order_view_event *v = &x->s->w->v->ev[i];

	if (order_acquires(v->e) || v->e->op == SYM_TRYLOCK || v->e->op == SYM_TRYRDLOCK)
		object_edges(x, i, v->e->target);
	else if (v->e->op == SYM_UNLOCK && v->wait != SYM_NONE)
		object_edges(x, i, x->s->w->v->ev[v->wait].e->target);
	else if (v->e->op >= SYM_WAIT && v->e->op <= SYM_ONCE_END)
		object_edges(x, i, v->e->target);
}

static void edges_at(struct edges *x, uint32_t i)
{
	const struct sym_event *e = x->s->w->v->ev[i].e;

	if (!order_window_has(x->s->win, i))
		return;
	if (order_reads(e) || order_writes(e)) {
		if (x->var_matters[e->target])
			access_edges(x, i);
	} else if (x->s->w->v->deadlock) {
		sync_edges(x, i);
	}
}

static void collect_edges(struct study *s)
{
	const struct order_view *v = s->w->v;
	struct edges x = { .s = s };

	x.vars = xcalloc(v->t->nvars + 1, sizeof *x.vars);
	x.objects = xcalloc(v->t->nobjects + 1, sizeof *x.objects);
	x.var_matters = xcalloc(v->t->nvars + 1, 1);
	for (uint32_t l = 0; l < s->win->n; l++) {
		const struct sym_event *e = v->ev[s->win->events[l]].e;

		if (order_reads(e) && e->symbol &&
		    s->enc->needed[expr_get(v->t->pool, e->symbol)->value])
			x.var_matters[e->target] = true;
	}
	for (size_t k = s->from; k < s->to; k++)
		edges_at(&x, s->w->order[k]);
	for (uint32_t i = 0; i < v->n; i++)
		if (v->ev[i].pending)
			edges_at(&x, i);
	for (size_t i = 0; i < v->t->nvars; i++) {
		free(x.vars[i].write);
		free(x.vars[i].other);
	}
	for (size_t i = 0; i < v->t->nobjects; i++) {
		free(x.objects[i].write);
		free(x.objects[i].other);
	}
	free(x.vars);
	free(x.objects);
	free(x.var_matters);
}

/* With somebody asleep to the end, the window begins before he fell asleep. */
static size_t before_sleepers(const struct work *w, size_t from)
{
	for (uint32_t i = 0; i < w->v->n; i++) {
		const struct order_view_event *x = &w->v->ev[i];

		if (x->pending && x->e->op == SYM_WAIT) {
			uint64_t r = w->rank[w->v->first[x->e->thread] + x->e->link];

			if (r < from)
				from = r;
		}
	}
	return from;
}

struct study *study_new(struct work *w, size_t window, size_t to, uint32_t diverge)
{
	struct study *s = xcalloc(1, sizeof *s);
	struct order_check *c;

	s->w = w;
	s->diverge = diverge;
	s->to = to;
	s->from = before_sleepers(w, to > window ? to - window : 0);
	c = work_state(w, s->from, ORDER_ONWARD);
	s->win = order_window_new(c, w->order, s->from, to, w->n, ORDER_ONWARD, diverge, w->trim);
	s->win->relax = w->relax;
	s->enc = encode_new(s->win, &w->limit, false);
	if (!s->enc->contradiction)
		collect_edges(s);
	encode_start(s->enc);
	s->run = work_state(w, s->from, ORDER_ONWARD);
	s->base = order_check_save(s->run);
	s->place = xcalloc(w->v->n + 1, sizeof *s->place);
	return s;
}

void study_free(struct study *s)
{
	if (!s)
		return;
	encode_free(s->enc);
	order_window_free(s->win);
	vec_free(&s->edges);
	vec_free(&s->assume);
	free(s->witness);
	order_check_free(s->base);
	order_check_free(s->run);
	free(s->place);
	free(s);
}

enum smt_result study_ask(struct study *s, const uint32_t *keep, size_t nkeep, uint32_t turned,
			  double effort)
{
	if (s->enc->contradiction)
		return SMT_UNSAT;
	work_asked(s->w, s->win->n);
	s->assume.n = 0;
	vec_push(&s->assume, s->enc->avoids);
	for (size_t i = 0; i < nkeep; i++)
		vec_push(&s->assume, s->edges.v[keep[i]].keep);
	if (turned != SYM_NONE)
		vec_push(&s->assume, s->edges.v[turned].turned);
	for (uint32_t l = 0; s->everybody && l < s->win->n; l++)
		if (s->enc->exec[l])
			vec_push(&s->assume, s->enc->exec[l]);
	return smt_check(s->enc->smt, s->assume.v, s->assume.n, effort > 0 ? effort + s->floor : 0);
}

uint32_t *study_order(struct study *s, size_t *n)
{
	uint32_t *order = xcalloc(s->w->v->n + 1, sizeof *order);

	memcpy(order, s->w->order, s->from * sizeof *order);
	*n = s->from + encode_order(s->enc, s->w->rank, order + s->from);
	/* Exact up to the branch that goes elsewhere, and there it ends. */
	for (size_t k = s->from; s->diverge != SYM_NONE && k < *n; k++)
		if (order[k] == s->w->v->conds[s->diverge].after)
			*n = k + 1;
	return order;
}
