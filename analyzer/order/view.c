/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyzer/order/view.h"
#include "common/vec.h"

#include <string.h>

static void number_events(struct order_view *v)
{
	const struct sym_trace *t = v->t;
	uint32_t n = 0;

	v->first = xcalloc(t->nthreads + 1, sizeof *v->first);
	for (size_t k = 0; k < t->nthreads; k++) {
		v->first[k] = n;
		n += t->threads[k].nevents;
	}
	v->first[t->nthreads] = v->n = n;
	v->ev = xcalloc(n ? n : 1, sizeof *v->ev);
	for (size_t k = 0; k < t->nthreads; k++) {
		for (uint32_t i = 0; i < t->threads[k].nevents; i++) {
			struct order_view_event *x = &v->ev[v->first[k] + i];

			x->e = &t->threads[k].events[i];
			x->wait = SYM_NONE;
			x->last = i + 1 == t->threads[k].nevents;
			x->drains = x->e->op != SYM_READ && x->e->op != SYM_WRITE;
			x->hi = UINT64_MAX;
		}
	}
}

static void build_chains(struct order_view *v)
{
	bool tso = v->model == SCHED_TSO;
	uint32_t *fill;

	v->nchains = v->t->nthreads * (tso ? 2 : 1);
	v->chain = xcalloc(v->nchains + 1, sizeof *v->chain);
	v->chain_len = xcalloc(v->nchains + 1, sizeof *v->chain_len);
	for (uint32_t i = 0; i < v->n; i++) {
		struct order_view_event *x = &v->ev[i];

		x->chain = x->e->thread * (tso ? 2 : 1) + (tso && x->e->op == SYM_WRITE);
		x->pos = v->chain_len[x->chain]++;
	}
	fill = xcalloc(v->nchains + 1, sizeof *fill);
	for (uint32_t c = 0; c < v->nchains; c++)
		v->chain[c] = xcalloc(v->chain_len[c] + 1, sizeof **v->chain);
	for (uint32_t i = 0; i < v->n; i++)
		v->chain[v->ev[i].chain][fill[v->ev[i].chain]++] = i;
	free(fill);
}

static void link_events(struct order_view *v)
{
	const struct sym_trace *t = v->t;

	v->fail = SYM_NONE;
	v->forked_by = xmalloc((t->nthreads + 1) * sizeof *v->forked_by);
	memset(v->forked_by, 0xff, (t->nthreads + 1) * sizeof *v->forked_by);
	v->reader = xmalloc((expr_symbol_count(t->pool) + 1) * sizeof *v->reader);
	memset(v->reader, 0xff, (expr_symbol_count(t->pool) + 1) * sizeof *v->reader);
	for (uint32_t i = 0; i < v->n; i++) {
		const struct sym_event *e = v->ev[i].e;

		if (e->op == SYM_WAIT)
			v->ev[v->first[e->thread] + e->link].wait = i;
		if (e->op == SYM_FORK)
			v->forked_by[e->peer] = i;
		if (order_reads(e) && e->symbol)
			v->reader[expr_get(t->pool, e->symbol)->value] = i;
		if (e->op == SYM_FAIL && (t->failure.thread == SYM_NONE ||
					  t->failure.thread == e->thread))
			v->fail = i;
	}
	v->deadlock = t->failure.nblocked > 0;
	for (size_t i = 0; i < t->failure.nblocked; i++)
		v->ev[v->first[t->failure.blocked[i].thread] + t->failure.blocked[i].event].pending =
			true;
}

/*
 * A semaphore of which each thread takes one unit at a time, and gives back what it took and nothing else: who has
 * one at its end will give it back when it goes on, as who holds a lock does. (One that counts what is there is
 * given to by who did not take.)
 */
static void find_lent(struct order_view *v)
{
	const struct sym_trace *t = v->t;
	uint32_t *has = xmalloc((t->nobjects + 1) * sizeof *has); /* the thread that has a unit of it */

	v->lent = xcalloc(t->nobjects + 1, sizeof *v->lent);
	for (size_t o = 0; o < t->nobjects; o++) {
		v->lent[o] = t->objects[o].kind == SYM_SEM && t->objects[o].count > 0;
		has[o] = SYM_NONE;
	}
	for (uint32_t i = 0; i < v->n; i++) { /* a thread's events stand together */
		const struct sym_event *e = v->ev[i].e;
		bool gives = e->op == SYM_SEMPOST;

		if (!gives && (e->op != SYM_SEMWAIT || !e->result))
			continue;
		if (gives != (has[e->target] == e->thread))
			v->lent[e->target] = false;
		has[e->target] = gives ? SYM_NONE : e->thread;
	}
	free(has);
}

/*
 * Bounds get as tight as program order makes them. A write under TSO has no
 * upper bound of its own: it may sit in the buffer until the next drain.
 */
static void bound_times(struct order_view *v)
{
	bool some = false;

	for (uint32_t i = 0; i < v->n; i++)
		some |= v->ev[i].e->time_hi != UINT64_MAX;
	v->use_times = v->use_times && some;
	if (!v->use_times)
		return;
	for (size_t k = 0; k < v->t->nthreads; k++) {
		uint64_t lo = 0, hi = UINT64_MAX, drain = UINT64_MAX;

		for (uint32_t i = v->first[k]; i < v->first[k + 1]; i++) {
			if (v->ev[i].e->time_lo > lo)
				lo = v->ev[i].e->time_lo;
			v->ev[i].lo = lo;
		}
		for (uint32_t i = v->first[k + 1]; i-- > v->first[k];) {
			struct order_view_event *x = &v->ev[i];

			if (x->e->time_hi < hi)
				hi = x->e->time_hi;
			if (x->drains)
				drain = hi;
			x->hi = v->model == SCHED_TSO && x->e->op == SYM_WRITE ? drain : hi;
			if (x->hi < x->lo) /* contradictory clocks bound nothing */
				x->hi = x->lo;
		}
	}
}

/* By expression: the event by which all its symbols are read, if one thread reads them. */
struct known {
	uint32_t thread; /* SYM_NONE: no symbol below; MIXED: several threads, or a free symbol */
	uint32_t index;
};

#define MIXED (SYM_NONE - 1)

static struct known join(struct known a, struct known b)
{
	if (a.thread == SYM_NONE)
		return b;
	if (b.thread == SYM_NONE)
		return a;
	if (a.thread != b.thread)
		return (struct known){ MIXED, 0 };
	return a.index > b.index ? a : b;
}

static struct known *known_all(const struct order_view *v)
{
	const struct expr_pool *p = v->t->pool;
	struct known *k = xcalloc(expr_count(p), sizeof *k);

	k[0] = (struct known){ SYM_NONE, 0 };
	for (expr_id e = 1; e < expr_count(p); e++) {
		const struct expr *n = expr_get(p, e);

		if (n->op == EX_SYMBOL) {
			uint32_t r = v->reader[n->value];

			k[e] = r == SYM_NONE ? (struct known){ MIXED, 0 } :
				(struct known){ v->ev[r].e->thread, v->ev[r].e->index };
		} else {
			k[e] = join(join(k[n->a], k[n->b]), k[n->c]);
		}
	}
	return k;
}

static uint32_t cond_due(const struct order_view *v, const struct known *k, uint32_t thread,
			 const struct sym_cond *c)
{
	struct known x = k[c->cond];

	if (c->after == SYM_NONE || x.thread == MIXED)
		return v->n;
	if (x.thread != SYM_NONE && (x.thread != thread || x.index > c->after))
		return v->n;
	return v->first[thread] + c->after;
}

static void place_conds(struct order_view *v)
{
	const struct sym_trace *t = v->t;
	struct known *known = known_all(v);
	uint32_t *count = xcalloc(v->n + 2, sizeof *count);

	for (size_t k = 0; k < t->nthreads; k++)
		for (size_t i = 0; i < t->threads[k].nconds; i++, v->nconds++)
			count[cond_due(v, known, k, &t->threads[k].conds[i])]++;
	v->conds = xcalloc(v->nconds + 1, sizeof *v->conds);
	uint32_t at = 0;
	for (uint32_t i = 0; i <= v->n; i++) {
		uint32_t c = count[i];

		if (i < v->n) {
			v->ev[i].cond = at;
			v->ev[i].ncond = c;
		} else {
			v->first_late = at;
		}
		count[i] = at;
		at += c;
	}
	for (uint32_t k = 0; k < t->nthreads; k++) {
		for (uint32_t i = 0; i < t->threads[k].nconds; i++) {
			const struct sym_cond *c = &t->threads[k].conds[i];

			v->conds[count[cond_due(v, known, k, c)]++] = (struct order_view_cond){
				c->cond, k, i,
				c->after == SYM_NONE ? SYM_NONE : v->first[k] + c->after };
		}
	}
	for (uint32_t i = 0; i < v->n; i++) {
		struct order_view_event *x = &v->ev[i];
		struct known k = order_writes(x->e) ? known[x->e->value] : known[0];

		x->foreign = k.thread != SYM_NONE &&
			     (k.thread != x->e->thread || k.index > x->e->index);
	}
	free(count);
	free(known);
}

struct order_view *order_view_new(const struct sym_trace *t, enum sched_model model, bool use_times)
{
	struct order_view *v = xcalloc(1, sizeof *v);

	v->t = t;
	v->model = model;
	v->use_times = use_times;
	number_events(v);
	build_chains(v);
	link_events(v);
	find_lent(v);
	bound_times(v);
	place_conds(v);
	return v;
}

size_t order_switches(const struct order_view *v, const uint32_t *order, size_t n)
{
	size_t switches = 0;

	for (size_t k = 1; k < n; k++)
		switches += v->ev[order[k]].e->thread != v->ev[order[k - 1]].e->thread;
	return switches;
}

size_t order_distance(const struct order_view *v, const uint64_t *rank, const uint32_t *order, size_t n)
{
	size_t size = v->n + v->t->nthreads + 2, seen = 0, turned = 0;
	uint32_t *tree = xcalloc(size + 1, sizeof *tree);

	for (size_t k = 0; k < n; k++) {
		size_t at = rank[order[k]] + 1, before = 0;

		for (size_t i = at; i; i &= i - 1)
			before += tree[i];
		turned += seen - before;
		for (size_t i = at; i <= size; i += i & -i)
			tree[i]++;
		seen++;
	}
	free(tree);
	return turned;
}

size_t order_section_edge(const struct order_view *v, const uint32_t *order, size_t k, size_t limit, size_t most)
{
	uint32_t thread = v->ev[order[k]].e->thread;
	bool begin = limit < k;
	size_t found = k;
	long depth = 0;

	for (size_t i = k, far = 0; i != limit && far < most; far++) {
		const struct sym_event *e;

		i += begin ? -1 : 1;
		e = v->ev[order[i]].e;
		if (e->thread != thread)
			continue;
		if (order_acquires(e))
			depth += begin ? 1 : -1;
		else if (e->op == SYM_UNLOCK)
			depth += begin ? -1 : 1;
		if (depth > 0) {
			found = i;
			depth = 0;
		}
	}
	return found;
}

bool order_behind_writer(const struct order_view *v, const struct sym_event *e)
{
	const struct sym_failure *f = &v->t->failure;
	bool waits = false, writer = false;

	for (size_t i = 0; e->op == SYM_RDLOCK && i < f->nblocked; i++) {
		const struct sym_event *x = v->ev[v->first[f->blocked[i].thread] + f->blocked[i].event].e;

		waits |= x == e;
		writer |= x->op == SYM_LOCK && x->target == e->target && x->thread != e->thread;
	}
	return waits && writer;
}

void order_view_free(struct order_view *v)
{
	if (!v)
		return;
	for (uint32_t c = 0; c < v->nchains; c++)
		free(v->chain[c]);
	free(v->chain);
	free(v->chain_len);
	free(v->ev);
	free(v->first);
	free(v->forked_by);
	free(v->reader);
	free(v->lent);
	free(v->conds);
	free(v);
}

static void add_var(void *arg, uint64_t symbol)
{
	struct order_cone *x = arg;
	uint32_t r = x->v->reader[symbol], var = r == SYM_NONE ? 0 : x->v->ev[r].e->target;

	if (r == SYM_NONE || x->var[var])
		return;
	x->var[var] = true;
	vec_push(&x->todo, var);
}

void order_cone_add(struct order_cone *x, expr_id e)
{
	expr_symbols(x->v->t->pool, e, add_var, x);
}

void order_cone_close(struct order_cone *x)
{
	while (x->todo.n) {
		uint32_t var = x->todo.v[--x->todo.n];

		for (uint32_t i = 0; i < x->v->n; i++)
			if (order_writes(x->v->ev[i].e) && x->v->ev[i].e->target == var)
				order_cone_add(x, x->v->ev[i].e->value);
	}
	vec_free(&x->todo);
}
