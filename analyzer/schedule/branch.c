/* Which branches led to the failure and could have gone elsewhere. */
#include "analyzer/schedule/work.h"

#include <string.h>

/*
 * Variables the failure depends on: what it reads, and what the values
 * written there were made of.
 */
struct writers {
	bool some;
	bool open;       /* several threads, or something that depends on what was read */
	uint32_t thread; /* else: the only one */
};

struct cone {
	const struct order_view *v;
	bool *var;
	bool *asked; /* those among them that the failure's own condition reads */
	struct writers *writers; /* by variable */
	uint32_t *last; /* by thread: its last write to one of var[]; 0: none, or the very first event */
	bool *stuck; /* deadlock, by thread: see who_is_stuck() */
	bool hit; /* could_change(), in_cone(), is_asked(): so it is for some symbol */
};

static void failure_cone(struct cone *x)
{
	const struct order_view *v = x->v;
	const struct sym_failure *f = &v->t->failure;
	struct order_cone c = { .v = v, .var = xcalloc(v->t->nvars + 1, 1) };

	x->asked = xcalloc(v->t->nvars + 1, 1);
	if (f->condition)
		order_cone_add(&c, f->condition);
	else if (!v->deadlock)
		for (size_t k = 0; k < v->t->threads[f->thread].nconds; k++)
			order_cone_add(&c, v->t->threads[f->thread].conds[k].cond);
	for (size_t k = 0; f->condition && k < c.todo.n; k++)
		x->asked[c.todo.v[k]] = true;
	order_cone_close(&c);
	x->var = c.var;
}

/* Who writes what, once for all branches: there may be as many of them as events. */
static void look_at_writes(struct cone *x)
{
	const struct order_view *v = x->v;

	x->last = xcalloc(v->t->nthreads + 1, sizeof *x->last);
	x->writers = xcalloc(v->t->nvars + 1, sizeof *x->writers);
	for (uint32_t i = 0; i < v->n; i++) {
		const struct sym_event *e = v->ev[i].e;
		struct writers *w;

		if (!order_writes(e))
			continue;
		if (x->var[e->target])
			x->last[e->thread] = i;
		w = &x->writers[e->target];
		w->open |= !expr_get(v->t->pool, e->value)->concrete || (w->some && w->thread != e->thread);
		w->some = true;
		w->thread = e->thread;
	}
}

/*
 * A deadlock is made by those that wait and by those that had a hand on what is waited for: who
 * holds the lock, who did not signal, who is to be joined.
 */
static void who_is_stuck(struct cone *x)
{
	const struct order_view *v = x->v;
	bool *object = xcalloc(v->t->nobjects + 1, 1);

	x->stuck = xcalloc(v->t->nthreads + 1, 1);
	for (uint32_t i = 0; i < v->n; i++) {
		const struct sym_event *e = v->ev[i].e;

		if (!v->ev[i].pending)
			continue;
		x->stuck[e->thread] = true;
		if (e->op == SYM_JOIN)
			x->stuck[e->peer] = true;
		else if (e->target != SYM_NONE)
			object[e->target] = true;
	}
	for (uint32_t i = 0; i < v->n; i++) {
		const struct sym_event *e = v->ev[i].e;

		if (!order_reads(e) && !order_writes(e) && e->target != SYM_NONE && object[e->target])
			x->stuck[e->thread] = true;
	}
	free(object);
}

/* Does the thread, behind this branch, write what the failure depends on? */
static bool leads_to_failure(const struct cone *x, const struct order_view_cond *d)
{
	if (x->stuck)
		return x->stuck[d->thread];
	return d->thread == x->v->t->failure.thread || x->last[d->thread] > d->after;
}

static void could_change(void *arg, uint64_t symbol)
{
	struct cone *x = arg;
	uint32_t r = x->v->reader[symbol];
	const struct writers *w = r == SYM_NONE ? NULL : &x->writers[x->v->ev[r].e->target];

	x->hit |= w && w->some && (w->open || w->thread != x->v->ev[r].e->thread);
}

static void in_cone(void *arg, uint64_t symbol)
{
	struct cone *x = arg;
	uint32_t r = x->v->reader[symbol];

	x->hit |= r != SYM_NONE && x->var[x->v->ev[r].e->target];
}

static void is_asked(void *arg, uint64_t symbol)
{
	struct cone *x = arg;
	uint32_t r = x->v->reader[symbol];

	x->hit |= r != SYM_NONE && x->asked[x->v->ev[r].e->target];
}

/* Does it look at the very thing the failure is about? */
static bool decides_by_asked(struct cone *x, const struct order_view_cond *d)
{
	x->hit = false;
	expr_symbols(x->v->t->pool, d->cond, is_asked, x);
	return x->hit;
}

/*
 * It wrote all it did before it looked at what the failure depends on (a count that it had just
 * decremented); what it would have written on the other way nobody has recorded.
 */
static bool decides_by_failure(struct cone *x, const struct order_view_cond *d)
{
	x->hit = false;
	expr_symbols(x->v->t->pool, d->cond, in_cone, x);
	return x->hit;
}

/*
 * Those that look at the very thing the failure is about come first: near the end of a long run
 * nearly all lead to it somehow. Then those behind which something is known to follow, then those
 * behind which it may; last those that come behind the failure: they did not lead to it.
 */
static int latest_first(const void *a, const void *b)
{
	const struct branch *x = a, *y = b;

	if (x->behind != y->behind)
		return x->behind ? 1 : -1;
	if (x->asks != y->asks)
		return x->asks ? -1 : 1;
	if (!x->asks && x->leads != y->leads)
		return x->leads ? -1 : 1;
	if (x->at != y->at)
		return x->at > y->at ? -1 : 1;
	return (x->cond < y->cond) - (x->cond > y->cond);
}

static bool is_firm(const struct order_view *v, const struct order_view_cond *d)
{
	return v->t->threads[d->thread].conds[d->number].firm;
}

size_t find_branches(const struct work *w, struct branch *out, bool *some)
{
	const struct order_view *v = w->v;
	struct cone x = { .v = v };
	VEC(struct branch) list = { 0 };
	size_t n;

	if (v->t->failure.thread == SYM_NONE)
		return 0;
	failure_cone(&x);
	look_at_writes(&x);
	if (v->deadlock)
		who_is_stuck(&x);
	for (uint32_t k = 0; k < v->nconds; k++) {
		const struct order_view_cond *d = &v->conds[k];

		bool leads;

		if (is_firm(v, d)) {
			*some = true;
			continue;
		}
		if (d->after == SYM_NONE)
			continue;
		leads = leads_to_failure(&x, d);
		if (leads || decides_by_failure(&x, d))
			vec_push(&list, (struct branch){
				.cond = k, .at = w->rank[d->after], .leads = leads,
				.asks = decides_by_asked(&x, d),
				.own = d->thread == v->t->failure.thread,
				.behind = v->fail != SYM_NONE && w->rank[d->after] > w->rank[v->fail] });
	}
	if (list.n)
		qsort(list.v, list.n, sizeof *list.v, latest_first);
	n = 0;
	for (size_t k = 0; k < list.n && n < BRANCHES; k++) {
		if (n && list.v[k].at == out[n - 1].at) /* the same branch */
			continue;
		x.hit = false;
		expr_symbols(v->t->pool, v->conds[list.v[k].cond].cond, could_change, &x);
		if (x.hit)
			out[n++] = list.v[k];
	}
	vec_free(&list);
	free(x.var);
	free(x.asked);
	free(x.writers);
	free(x.last);
	free(x.stuck);
	return n;
}
