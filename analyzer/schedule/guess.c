/*
 * A first order without any solver: the steps that the trace gives, or else the threads executed event by event. The earliest
 * goes next, unless the path it is on would not survive what it reads now; without time stamps each thread goes as far
 * as it can. The result is a guess: search.c repairs what is wrong with it.
 */
#include "analyzer/schedule/work.h"

#include <string.h>

struct guess {
	struct work *w;
	const struct order_view *v;
	struct order_check *c;
	uint32_t *order;
	size_t n, left;
	bool use_seen; /* reads must see what the recorded run saw */
};

static bool seen_differs(const struct guess *g, uint32_t i)
{
	const struct sym_event *e = g->v->ev[i].e;

	return g->use_seen && e->op == SYM_READ && e->has_seen && e->symbol &&
	       order_check_values(g->c)[expr_get(g->v->t->pool, e->symbol)->value] != e->seen;
}

/* By time. Keeps a cursor per chain: the whole walk is linear. */
static bool by_time(struct guess *g)
{
	const struct order_view *v = g->v;
	uint32_t *cursor = xcalloc(v->nchains + 1, sizeof *cursor);

	while (g->left) {
		uint32_t best = SYM_NONE, fallback = SYM_NONE;
		uint64_t best_key = 0, fallback_key = 0;

		for (uint32_t c = 0; c < v->nchains; c++) {
			uint32_t i;
			uint64_t key;

			if (cursor[c] == v->chain_len[c])
				continue;
			i = v->chain[c][cursor[c]];
			if (v->ev[i].pending)
				continue;
			key = v->ev[i].lo / 2 + v->ev[i].hi / 2;
			if (best != SYM_NONE && key >= best_key)
				continue;
			if (order_check_ready(g->c, i) != ORDER_OK)
				continue;
			if (order_check_peek(g->c, i) == ORDER_OK && !seen_differs(g, i)) {
				best = i;
				best_key = key;
			} else if (fallback == SYM_NONE || key < fallback_key) {
				fallback = i;
				fallback_key = key;
			}
		}
		/* Waiting for a better moment is allowed only while its time lasts. */
		if (fallback != SYM_NONE && (best == SYM_NONE ||
					      v->ev[best].lo > v->ev[fallback].hi))
			best = fallback;
		if (best == SYM_NONE)
			break;
		order_check_step(g->c, best);
		cursor[v->ev[best].chain]++;
		g->order[g->n++] = best;
		g->left--;
	}
	free(cursor);
	return !g->left;
}

/* An event and twice its step: there is room before each. */
struct stepped {
	const struct sym_event *e;
	uint64_t key;
};

static int by_step(const void *a, const void *b)
{
	const struct stepped *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/* The writes of one variable so far. */
struct history {
	VEC(struct stepped) writes;
};

/*
 * A read may be noted late: with the store of the same update. Then it saw what
 * was overwritten since; it belongs before that write, but not before what its own
 * thread did last (after: its key).
 */
static uint64_t early_key(const struct history *h, const struct sym_event *read, uint64_t after)
{
	for (size_t i = h->writes.n; i-- > 0 && h->writes.v[i].key > after;) {
		bool first = i == 0;

		if (first || h->writes.v[i - 1].e->seen == read->seen)
			return h->writes.v[i].key - 1;
	}
	return 0;
}

static void place_late_reads(const struct order_view *v, struct stepped *list, size_t n)
{
	struct history *h = xcalloc(v->t->nvars + 1, sizeof *h);
	uint64_t *last = xcalloc(v->t->nthreads + 1, sizeof *last);

	for (size_t k = 0; k < n; k++) {
		const struct sym_event *e = list[k].e;
		uint64_t early = 0;

		if (e->op == SYM_READ && e->has_seen && h[e->target].writes.n &&
		    h[e->target].writes.v[h[e->target].writes.n - 1].e->seen != e->seen)
			early = early_key(&h[e->target], e, last[e->thread]);
		if (early)
			list[k].key = early;
		if (order_writes(e))
			vec_push(&h[e->target].writes, list[k]);
		last[e->thread] = list[k].key;
	}
	for (size_t i = 0; i < v->t->nvars; i++)
		vec_free(&h[i].writes);
	free(h);
	free(last);
}

/*
 * Who made the trace may have executed it in one order and said so. All of it
 * or nothing: an order that does not hold is no better start than another.
 */
static bool guess_by_step(struct work *w, const struct order_view *v, bool failing)
{
	struct stepped *list = xcalloc(w->n + 1, sizeof *list);
	struct order_check *c = order_check_new(v, ORDER_EXACT, w->init, w->syms);
	size_t n = 0, at;
	bool good;

	for (uint32_t i = 0; i < v->n; i++)
		if (v->ev[i].e->step && !v->ev[i].pending)
			list[n++] = (struct stepped){ v->ev[i].e, 2 * v->ev[i].e->step };
	good = n && n == w->n;
	if (good) {
		qsort(list, n, sizeof *list, by_step);
		place_late_reads(v, list, n);
		qsort(list, n, sizeof *list, by_step);
		for (size_t k = 0; k < n; k++)
			w->order[k] = v->first[list[k].e->thread] + list[k].e->index;
		good = order_check_run(c, w->order, n, &at) == ORDER_OK && (!failing || order_check_fails(c));
	}
	order_check_free(c);
	free(list);
	return good;
}

/* What could not be executed is appended so that the order is complete. */
static void complete(const struct order_view *v, uint32_t *order, size_t n, size_t total)
{
	bool *in = xcalloc(v->n + 1, sizeof *in);

	for (size_t k = 0; k < n; k++)
		in[order[k]] = true;
	for (uint32_t i = 0; i < v->n && n < total; i++)
		if (!in[i] && !v->ev[i].pending)
			order[n++] = i;
	free(in);
}

/* The recorded values first; without them when they lead nowhere. */
static void guess_by_time(struct work *w, size_t *n)
{
	struct guess g = { .w = w, .v = w->v };
	bool done = false;

	g.order = xcalloc(w->v->n + 1, sizeof *g.order);
	for (int k = 0; k < 2 && !done; k++) {
		g.c = order_check_new(g.v, ORDER_EXACT, w->init, w->syms);
		g.n = 0;
		g.left = w->n;
		g.use_seen = k == 0;
		done = by_time(&g);
		if (g.n > *n) {
			*n = g.n;
			memcpy(w->order, g.order, g.n * sizeof *w->order);
		}
		order_check_free(g.c);
	}
	free(g.order);
}

void guess_order(struct work *w, bool failing)
{
	size_t n = 0;

	if (guess_by_step(w, w->v, failing))
		return;
	/* Who executed it need not have done so by the clock where that makes no difference: an
	 * order that holds is worth more than that it is by the clock, too. */
	if (w->v->use_times && guess_by_step(w, w->timeless, failing)) {
		order_view_free(w->v);
		w->v = order_view_new(w->timeless->t, w->o->model, false);
		return;
	}
	guess_by_time(w, &n);
	complete(w->v, w->order, n, w->n);
}
