/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyzer/order/window.h"
#include "common/vec.h"

#include <string.h>

static void add_event(struct order_window *w, uint32_t i)
{
	uint32_t c = w->v->ev[i].chain, pos = w->v->ev[i].pos;

	if (w->hi[c] == w->lo[c])
		w->lo[c] = w->hi[c] = pos;
	if (pos >= w->hi[c])
		w->hi[c] = pos + 1;
	if (pos < w->lo[c])
		w->lo[c] = pos;
}

/*
 * The thread of the diverging branch executes nothing behind it; nor does
 * who joins it, or was created behind it. cut: by thread, first event left out.
 */
static void find_cuts(const struct order_window *w, uint32_t *cut)
{
	const struct order_view *v = w->v;
	const struct order_view_cond *d = &v->conds[w->diverge];
	bool changed = true;

	for (size_t t = 0; t < v->t->nthreads; t++)
		cut[t] = v->first[t + 1];
	cut[d->thread] = d->after == SYM_NONE ? v->first[d->thread] : d->after + 1;
	while (changed) {
		changed = false;
		for (size_t t = 0; t < v->t->nthreads; t++) {
			uint32_t fork = v->forked_by[t];

			if (fork != SYM_NONE && fork >= cut[v->ev[fork].e->thread] &&
			    cut[t] > v->first[t]) {
				cut[t] = v->first[t];
				changed = true;
			}
			for (uint32_t i = v->first[t]; i < cut[t]; i++) {
				const struct sym_event *e = v->ev[i].e;

				if (e->op == SYM_JOIN && cut[e->peer] < v->first[e->peer + 1]) {
					cut[t] = i;
					changed = true;
				}
			}
		}
	}
}

static void cut_at_branch(struct order_window *w, const uint32_t *order, size_t n, bool trim)
{
	uint32_t *cut = xcalloc(w->v->t->nthreads + 1, sizeof *cut);

	if (!trim || !order_trim(w->v, order, n, w->diverge, cut))
		find_cuts(w, cut);
	for (uint32_t c = 0; c < w->v->nchains; c++) {
		while (w->hi[c] > w->lo[c]) {
			uint32_t i = w->v->chain[c][w->hi[c] - 1];

			if (i < cut[w->v->ev[i].e->thread])
				break;
			w->hi[c]--;
		}
	}
	free(cut);
}

struct order_window *order_window_new(struct order_check *c, const uint32_t *order, size_t from, size_t to,
				      size_t n, enum order_end end, uint32_t diverge, bool trim)
{
	struct order_window *w = xcalloc(1, sizeof *w);
	const struct order_view *v;

	w->start = c;
	v = w->v = order_check_view(c);
	w->lo = xcalloc(v->nchains + 1, sizeof *w->lo);
	w->hi = xcalloc(v->nchains + 1, sizeof *w->hi);
	w->to_end = to == n;
	w->end = end;
	w->diverge = diverge;
	w->relax = SYM_NONE;
	for (size_t k = from; k < to; k++)
		add_event(w, order[k]);
	for (uint32_t i = 0; w->to_end && i < v->n; i++)
		if (v->ev[i].pending)
			add_event(w, i);
	if (diverge != SYM_NONE)
		cut_at_branch(w, order, n, trim);
	w->events = xcalloc(v->n + 1, sizeof *w->events);
	w->local = xmalloc((v->n + 1) * sizeof *w->local);
	memset(w->local, 0xff, (v->n + 1) * sizeof *w->local);
	for (uint32_t k = 0; k < v->nchains; k++) {
		for (uint32_t p = w->lo[k]; p < w->hi[k]; p++) {
			w->local[v->chain[k][p]] = w->n;
			w->events[w->n++] = v->chain[k][p];
		}
	}
	w->place = xmalloc((w->n + 1) * sizeof *w->place);
	for (uint32_t l = 0; l < w->n; l++)
		w->place[l] = to - from;
	for (size_t k = from; k < to; k++)
		if (w->local[order[k]] != SYM_NONE)
			w->place[w->local[order[k]]] = k - from;
	return w;
}

void order_window_free(struct order_window *w)
{
	if (!w)
		return;
	order_check_free(w->start);
	free(w->lo);
	free(w->hi);
	free(w->events);
	free(w->local);
	free(w->place);
	free(w);
}
