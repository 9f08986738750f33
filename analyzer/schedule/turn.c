/*
 * Turning one ordering round without a solver: a stretch of one thread moves
 * past the other thread's event, alone, with the lock section it is part of,
 * or up to where its own thread goes on. Each result is a total order of the
 * window and only has to be executed.
 */
#include "analyzer/schedule/work.h"

#include <string.h>

struct turn {
	struct study *s;
	const struct work *w;
	size_t a, b; /* places of the pair in w->order */
};

static uint32_t thread_at(const struct turn *x, size_t k)
{
	return x->w->v->ev[x->w->order[k]].e->thread;
}

/* The last place before the thread of place k goes on behind b, or after it stopped before a. */
static size_t next_pause(const struct turn *x)
{
	size_t k = x->b;

	while (k + 1 < x->w->n && thread_at(x, k + 1) != thread_at(x, x->a))
		k++;
	return k;
}

static size_t previous_pause(const struct turn *x)
{
	size_t k = x->a;

	while (k > x->s->from && thread_at(x, k - 1) != thread_at(x, x->b))
		k--;
	return k;
}

/* Events of one thread out of [from, to] go, in their order, to its front or its back. */
static void move_stretch(const struct turn *x, uint32_t thread, size_t from, size_t to,
			 bool front, uint32_t *out)
{
	size_t base = x->s->from, n = from - base;

	memcpy(out, x->w->order + base, (x->w->n - base) * sizeof *out);
	for (int pass = 0; pass < 2; pass++)
		for (size_t k = from; k <= to; k++)
			if ((thread_at(x, k) == thread) == (front == (pass == 0)))
				out[n++] = x->w->order[k];
}

/* What is not in the order comes, if ever, after all that is. */
static bool keeps(struct study *s, const uint32_t *order, size_t n, const uint32_t *keep,
		  size_t nkeep)
{
	for (size_t k = s->from; nkeep && k < s->w->n; k++)
		s->place[s->w->order[k]] = UINT64_MAX;
	for (size_t k = 0; k < n; k++)
		s->place[order[k]] = k;
	for (size_t i = 0; i < nkeep; i++) {
		const struct study_edge *e = &s->edges.v[keep[i]];

		if (s->place[e->before] > s->place[e->after])
			return false;
	}
	return true;
}

bool study_avoids(struct study *s, const uint32_t *order, size_t n)
{
	order_check_restore(s->run, s->base);
	order_check_set_diverge(s->run, s->diverge);
	order_check_set_relax(s->run, s->w->relax);
	work_executed(s->w, n);
	for (size_t k = 0; k < n; k++)
		if (order_check_step(s->run, order[k]) != ORDER_OK)
			return false;
	return order_check_late(s->run) == ORDER_OK && order_check_avoids(s->run);
}

/* Without what lies behind a branch that goes elsewhere; the others go on as recorded. */
static size_t leave_out(const struct study *s, uint32_t *order)
{
	size_t all = s->w->n - s->from, n = 0;

	for (size_t k = 0; k < all; k++)
		if (s->diverge == SYM_NONE || order_window_has(s->win, order[k]))
			order[n++] = order[k];
	return n;
}

/* An order that leaves the recorded path ends with the event behind which that is. */
static size_t exact_part(const struct study *s, const uint32_t *order, size_t n)
{
	for (size_t k = 0; s->diverge != SYM_NONE && k < n; k++)
		if (order[k] == s->w->v->conds[s->diverge].after)
			return k + 1;
	return n;
}

size_t turn_directly(struct study *s, uint32_t edge, const uint32_t *keep, size_t nkeep,
		     uint32_t *out)
{
	const struct study_edge *e = &s->edges.v[edge];
	struct turn x = { s, s->w, s->w->rank[e->before], s->w->rank[e->after] };

	if (x.a >= s->w->n || x.b >= s->w->n || x.a >= x.b)
		return 0;
	uint32_t ta = thread_at(&x, x.a), tb = thread_at(&x, x.b);
	size_t sa = order_section_edge(s->w->v, s->w->order, x.a, s->from, SECTION_SEARCH);
	size_t sb = order_section_edge(s->w->v, s->w->order, x.b, s->w->n - 1, SECTION_SEARCH);
	const struct {
		uint32_t thread;
		size_t from, to;
		bool front;
	} ways[] = {
		{ tb, x.a, x.b, true }, { ta, x.a, x.b, false },
		{ tb, sa, sb, true }, { ta, sa, sb, false },
		{ ta, x.a, next_pause(&x), false }, { tb, previous_pause(&x), x.b, true },
	};

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		move_stretch(&x, ways[i].thread, ways[i].from, ways[i].to, ways[i].front, out);
		size_t n = leave_out(s, out);

		if (keeps(s, out, n, keep, nkeep) && study_avoids(s, out, n))
			return exact_part(s, out, n);
	}
	return 0;
}

/* Edges by how near their ends are in the failing schedule. */
struct nearness {
	uint32_t edge;
	uint64_t gap;
};

static int by_gap(const void *a, const void *b)
{
	const struct nearness *x = a, *y = b;

	if (x->gap != y->gap)
		return x->gap < y->gap ? -1 : 1;
	return (x->edge > y->edge) - (x->edge < y->edge);
}

void turn_sort(const struct study *s, uint32_t *edges, size_t n)
{
	struct nearness *list = xcalloc(n + 1, sizeof *list);

	for (size_t i = 0; i < n; i++) {
		const struct study_edge *e = &s->edges.v[edges[i]];

		list[i].edge = edges[i];
		list[i].gap = s->w->rank[e->after] - s->w->rank[e->before];
	}
	qsort(list, n, sizeof *list, by_gap);
	for (size_t i = 0; i < n; i++)
		edges[i] = list[i].edge;
	free(list);
}

uint32_t turn_any(struct study *s, uint32_t *out)
{
	uint32_t *edges = xcalloc(s->edges.n + 1, sizeof *edges), found = SYM_NONE;

	for (uint32_t k = 0; k < s->edges.n; k++)
		edges[k] = k;
	turn_sort(s, edges, s->edges.n);
	for (size_t i = 0; i < s->edges.n && i < TURN_LIMIT && found == SYM_NONE; i++) {
		s->w->a->stats.pairs_tried++;
		if (turn_directly(s, edges[i], NULL, 0, out))
			found = edges[i];
	}
	free(edges);
	return found;
}
