/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What of a run has to be there when one thread goes another way at a branch: everything up to
 * the branch, and behind it only what the failing thread needs to come to its failure. The rest
 * may have been the consequence of the branch; that it happened all the same is nothing to ask for.
 */
#include "analyzer/order/window.h"
#include "common/vec.h"

#include <string.h>

/* Events: it takes events times events, so beyond this all is asked for. */
#define TRIM_EVENTS 20000u

struct trim {
	const struct order_view *v;
	uint32_t *rank;   /* by event: its place in the order */
	uint32_t *cut;    /* by thread: first event left out */
	uint32_t branch;  /* the event behind which it goes elsewhere */
	bool *matters;    /* by variable: a branch or the failure may depend on it */
	bool *taken;      /* by object: a lock that is needed behind the branch */
	VEC(uint32_t) todo; /* events that stay and were not looked at */
	bool impossible;
};

/* A branch, the failure, or what a read must see may depend on it. */
static void find_matters(struct trim *x)
{
	const struct order_view *v = x->v;
	struct order_cone m = { .v = v, .var = x->matters };

	for (uint32_t k = 0; k < v->nconds; k++)
		order_cone_add(&m, v->conds[k].cond);
	if (v->t->failure.condition)
		order_cone_add(&m, v->t->failure.condition);
	for (uint32_t i = 0; i < v->n; i++)
		if (order_reads(v->ev[i].e) && v->ev[i].e->fixed && v->ev[i].e->symbol)
			order_cone_add(&m, v->ev[i].e->symbol);
	order_cone_close(&m);
}

/* ---- what must stay ---- */

/* The event stays, with what its thread did before it. */
static void keep(struct trim *x, uint32_t i)
{
	uint32_t t = x->v->ev[i].e->thread;

	if (i < x->cut[t])
		return;
	if (t == x->v->ev[x->branch].e->thread) {
		x->impossible = true;
		return;
	}
	for (uint32_t k = x->cut[t]; k <= i; k++)
		vec_push(&x->todo, k);
	x->cut[t] = i + 1;
}

/* The last write that event i saw, in the order at hand. */
static void keep_write(struct trim *x, uint32_t i)
{
	uint32_t best = SYM_NONE;

	for (uint32_t k = 0; k < x->v->n; k++)
		if (order_writes(x->v->ev[k].e) && x->v->ev[k].e->target == x->v->ev[i].e->target &&
		    x->rank[k] < x->rank[i] && (best == SYM_NONE || x->rank[k] > x->rank[best]))
			best = k;
	if (best != SYM_NONE)
		keep(x, best);
}

/* Other operations on the object that came before: for all but locks they may be what lets it go. */
static void keep_operations(struct trim *x, uint32_t i)
{
	const struct sym_event *e = x->v->ev[i].e;

	for (uint32_t k = 0; k < x->v->n; k++)
		if (!order_is_access(x->v->ev[k].e) && x->v->ev[k].e->target == e->target &&
		    x->rank[k] < x->rank[i])
			keep(x, k);
}

static bool is_lock(const struct sym_event *e)
{
	return order_acquires(e) || e->op == SYM_UNLOCK || e->op == SYM_TRYLOCK ||
	       e->op == SYM_TRYRDLOCK;
}

/* The event with which the thread lets go of the lock it holds where it is cut off; or SYM_NONE. */
static uint32_t release_behind(const struct trim *x, uint32_t thread, uint32_t object)
{
	const struct order_view *v = x->v;
	long depth = v->t->objects[object].owner == thread;

	for (uint32_t k = v->first[thread]; k < v->first[thread + 1]; k++) {
		const struct sym_event *e = v->ev[k].e;

		if (order_is_access(e) || e->target != object || (k >= x->cut[thread] && !depth))
			continue;
		if (order_acquires(e) && k < x->cut[thread])
			depth++;
		else if (e->op == SYM_UNLOCK && depth)
			depth--;
		if (k >= x->cut[thread] && !depth)
			return k;
	}
	return SYM_NONE;
}

/* Who has a lock that somebody needs stays until it has let it go. */
static void keep_releases(struct trim *x)
{
	for (uint32_t o = 0; o < x->v->t->nobjects; o++)
		for (uint32_t t = 0; x->taken[o] && t < x->v->t->nthreads; t++) {
			uint32_t k = t == x->v->ev[x->branch].e->thread ? SYM_NONE :
									  release_behind(x, t, o);

			if (k != SYM_NONE)
				keep(x, k);
		}
}

static void look_at(struct trim *x, uint32_t i)
{
	const struct sym_event *e = x->v->ev[i].e;

	if (order_is_access(e)) {
		if (order_reads(e) && (x->matters[e->target] || e->fixed))
			keep_write(x, i);
	} else if (e->op == SYM_JOIN) {
		if (x->v->first[e->peer + 1] > x->v->first[e->peer])
			keep(x, x->v->first[e->peer + 1] - 1);
	} else if (is_lock(e)) {
		x->taken[e->target] = true;
	} else if (e->target != SYM_NONE) {
		keep_operations(x, i);
	}
	if (e->index == 0 && x->v->forked_by[e->thread] != SYM_NONE)
		keep(x, x->v->forked_by[e->thread]);
}

bool order_trim(const struct order_view *v, const uint32_t *order, size_t n, uint32_t diverge,
		uint32_t *cut)
{
	struct trim x = { .v = v, .cut = cut, .branch = v->conds[diverge].after };
	uint32_t failing = v->t->failure.thread, fail;

	if (v->n > TRIM_EVENTS || x.branch == SYM_NONE || failing == SYM_NONE || v->fail == SYM_NONE ||
	    failing == v->conds[diverge].thread)
		return false;
	fail = v->fail;
	x.rank = xmalloc((v->n + 1) * sizeof *x.rank);
	x.matters = xcalloc(v->t->nvars + 1, 1);
	x.taken = xcalloc(v->t->nobjects + 1, 1);
	memset(x.rank, 0xff, (v->n + 1) * sizeof *x.rank);
	for (size_t k = 0; k < n; k++)
		x.rank[order[k]] = (uint32_t)k;
	find_matters(&x);
	for (size_t t = 0; t < v->t->nthreads; t++)
		for (cut[t] = v->first[t]; cut[t] < v->first[t + 1]; cut[t]++)
			if (x.rank[cut[t]] > x.rank[x.branch])
				break;
	keep(&x, fail);
	while (x.todo.n && !x.impossible) {
		look_at(&x, x.todo.v[--x.todo.n]);
		if (!x.todo.n)
			keep_releases(&x);
	}
	free(x.rank);
	free(x.matters);
	free(x.taken);
	vec_free(&x.todo);
	return !x.impossible;
}
