/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyzer/order/acyclic.h"
#include "common/vec.h"

#include <string.h>

struct edge {
	uint32_t to, label;
};

struct adjacency {
	struct edge *v;
	size_t n, cap;
};

struct order_acyclic {
	struct adjacency *out, *in, *candidates;
	uint32_t n;
	size_t cap, cap_in, cap_cand;
	uint64_t *rank;  /* where in the first order it would best be */
	size_t cap_rank;
	uint32_t *place; /* position in the current order */
	/* scratch, sized at order_acyclic_start() */
	uint32_t *mark_f, *mark_b, epoch;
	uint32_t *from_f, *from_b, *label_f, *label_b;
	uint32_t *queue_f, *queue_b, *labels;
	uint64_t looked_at;
};

struct order_acyclic *order_acyclic_new(void)
{
	return xcalloc(1, sizeof(struct order_acyclic));
}

void order_acyclic_free(struct order_acyclic *g)
{
	if (!g)
		return;
	for (uint32_t i = 0; i < g->n; i++) {
		free(g->out[i].v);
		free(g->in[i].v);
		free(g->candidates[i].v);
	}
	free(g->out);
	free(g->in);
	free(g->candidates);
	free(g->rank);
	free(g->place);
	free(g->mark_f);
	free(g->mark_b);
	free(g->from_f);
	free(g->from_b);
	free(g->label_f);
	free(g->label_b);
	free(g->queue_f);
	free(g->queue_b);
	free(g->labels);
	free(g);
}

uint32_t order_acyclic_node(struct order_acyclic *g)
{
	if (g->n == g->cap) {
		g->out = vec_grow(g->out, &g->cap, sizeof *g->out, g->n + 1);
		g->in = vec_grow(g->in, &g->cap_in, sizeof *g->in, g->cap);
		g->candidates = vec_grow(g->candidates, &g->cap_cand, sizeof *g->candidates,
					 g->cap);
		g->rank = vec_grow(g->rank, &g->cap_rank, sizeof *g->rank, g->cap);
	}
	g->rank[g->n] = 0;
	memset(&g->out[g->n], 0, sizeof *g->out);
	memset(&g->in[g->n], 0, sizeof *g->in);
	memset(&g->candidates[g->n], 0, sizeof *g->candidates);
	return g->n++;
}

uint32_t order_acyclic_nodes(const struct order_acyclic *g)
{
	return g->n;
}

static void push(struct adjacency *a, uint32_t to, uint32_t label)
{
	vec_push(a, (struct edge){ to, label });
}

static void link_edge(struct order_acyclic *g, uint32_t a, uint32_t b, uint32_t label)
{
	push(&g->out[a], b, label);
	push(&g->in[b], a, label);
}

void order_acyclic_static(struct order_acyclic *g, uint32_t a, uint32_t b)
{
	link_edge(g, a, b, ORDER_ACYCLIC_STATIC);
}

void order_acyclic_undo(struct order_acyclic *g, uint32_t a, uint32_t b)
{
	g->out[a].n--;
	g->in[b].n--;
}

void order_acyclic_prefer(struct order_acyclic *g, uint32_t node, uint64_t rank)
{
	g->rank[node] = rank;
}

bool order_acyclic_start(struct order_acyclic *g)
{
	size_t size = (g->n + 1) * sizeof(uint32_t);
	uint32_t **scratch[] = { &g->place, &g->from_f, &g->from_b, &g->label_f, &g->label_b,
				 &g->queue_f, &g->queue_b };

	for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++)
		*scratch[i] = xrealloc(*scratch[i], size);
	g->labels = xrealloc(g->labels, 2 * size);
	free(g->mark_f);
	free(g->mark_b);
	g->mark_f = xcalloc(g->n + 1, sizeof *g->mark_f);
	g->mark_b = xcalloc(g->n + 1, sizeof *g->mark_b);
	size_t n = order_acyclic_sort(g, g->rank, g->queue_f);
	for (uint32_t k = 0; k < n; k++)
		g->place[g->queue_f[k]] = k;
	return n == g->n;
}

/* Labels from node x back to where the forward search began. */
static size_t trace_forward(struct order_acyclic *g, uint32_t x, size_t n)
{
	for (; g->from_f[x] != UINT32_MAX; x = g->from_f[x])
		if (g->label_f[x] != ORDER_ACYCLIC_STATIC)
			g->labels[n++] = g->label_f[x];
	return n;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int by_place(const void *a, const void *b, void *arg)
{
	const uint32_t *place = arg;
	uint32_t x = place[*(const uint32_t *)a], y = place[*(const uint32_t *)b];

	return (x > y) - (x < y);
}

/* Nodes after b that stand before a; a among them means a cycle. */
static size_t search_forward(struct order_acyclic *g, uint32_t b, uint32_t a, uint32_t *cycle_from,
			     uint32_t *cycle_label)
{
	uint32_t limit = g->place[a];
	size_t head = 0, n = 0;

	g->queue_f[n++] = b;
	g->mark_f[b] = g->epoch;
	g->from_f[b] = UINT32_MAX;
	while (head < n) {
		uint32_t x = g->queue_f[head++];

		for (size_t k = 0; k < g->out[x].n; k++) {
			struct edge e = g->out[x].v[k];

			if (e.to == a) {
				*cycle_from = x;
				*cycle_label = e.label;
				return 0;
			}
			if (g->mark_f[e.to] == g->epoch || g->place[e.to] > limit)
				continue;
			g->mark_f[e.to] = g->epoch;
			g->from_f[e.to] = x;
			g->label_f[e.to] = e.label;
			g->queue_f[n++] = e.to;
		}
	}
	return n;
}

static size_t search_backward(struct order_acyclic *g, uint32_t a, uint32_t b)
{
	uint32_t limit = g->place[b];
	size_t head = 0, n = 0;

	g->queue_b[n++] = a;
	g->mark_b[a] = g->epoch;
	while (head < n) {
		uint32_t x = g->queue_b[head++];

		for (size_t k = 0; k < g->in[x].n; k++) {
			uint32_t y = g->in[x].v[k].to;

			if (g->mark_b[y] == g->epoch || g->place[y] < limit)
				continue;
			g->mark_b[y] = g->epoch;
			g->queue_b[n++] = y;
		}
	}
	return n;
}

static void reorder(struct order_acyclic *g, size_t nf, size_t nb)
{
	uint32_t *places = xmalloc((nf + nb) * sizeof *places);

	qsort_r(g->queue_f, nf, sizeof *g->queue_f, by_place, g->place);
	qsort_r(g->queue_b, nb, sizeof *g->queue_b, by_place, g->place);
	for (size_t i = 0; i < nb; i++)
		places[i] = g->place[g->queue_b[i]];
	for (size_t i = 0; i < nf; i++)
		places[nb + i] = g->place[g->queue_f[i]];
	qsort(places, nf + nb, sizeof *places, by_value);
	for (size_t i = 0; i < nb; i++)
		g->place[g->queue_b[i]] = places[i];
	for (size_t i = 0; i < nf; i++)
		g->place[g->queue_f[i]] = places[nb + i];
	free(places);
}

size_t order_acyclic_add(struct order_acyclic *g, uint32_t a, uint32_t b, uint32_t label, bool *cycle)
{
	*cycle = a == b;
	if (a == b)
		return 0;
	g->looked_at++;
	if (g->place[a] > g->place[b]) {
		uint32_t from = b, last = ORDER_ACYCLIC_STATIC;
		size_t nf, nb, n = 0;

		g->epoch++;
		nf = search_forward(g, b, a, &from, &last);
		if (!nf) {
			*cycle = true;
			if (last != ORDER_ACYCLIC_STATIC)
				g->labels[n++] = last;
			return trace_forward(g, from, n);
		}
		nb = search_backward(g, a, b);
		reorder(g, nf, nb);
		g->looked_at += nf + nb;
	}
	link_edge(g, a, b, label);
	return 0;
}

uint64_t order_acyclic_looked_at(const struct order_acyclic *g)
{
	return g->looked_at;
}

const uint32_t *order_acyclic_labels(const struct order_acyclic *g)
{
	return g->labels;
}

void order_acyclic_candidate(struct order_acyclic *g, uint32_t x, uint32_t y, uint32_t label)
{
	push(&g->candidates[x], y, label);
}

/* Breadth first from start over adj, at most limit nodes. */
static size_t spread(struct order_acyclic *g, uint32_t start, const struct adjacency *adj, size_t limit,
		     uint32_t *queue, uint32_t *mark, uint32_t *from, uint32_t *label)
{
	size_t head = 0, n = 0;

	queue[n++] = start;
	mark[start] = g->epoch;
	from[start] = UINT32_MAX;
	while (head < n && n < limit) {
		uint32_t x = queue[head++];

		for (size_t k = 0; k < adj[x].n; k++) {
			struct edge e = adj[x].v[k];

			if (mark[e.to] == g->epoch)
				continue;
			mark[e.to] = g->epoch;
			from[e.to] = x;
			label[e.to] = e.label;
			queue[n++] = e.to;
		}
	}
	return n;
}

void order_acyclic_implied(struct order_acyclic *g, uint32_t a, uint32_t b, size_t limit, const uint8_t *settled,
			   void (*found)(void *arg, uint32_t candidate, const uint32_t *labels, size_t n),
			   void *arg)
{
	size_t nf, nb;

	g->epoch++;
	nf = spread(g, b, g->out, limit, g->queue_f, g->mark_f, g->from_f, g->label_f);
	nb = spread(g, a, g->in, limit, g->queue_b, g->mark_b, g->from_b, g->label_b);
	g->looked_at += nf + nb;
	for (size_t i = 0; i < nf; i++) {
		uint32_t x = g->queue_f[i];

		for (size_t k = 0; k < g->candidates[x].n; k++) {
			struct edge e = g->candidates[x].v[k];
			size_t n;

			if (g->mark_b[e.to] != g->epoch || settled[e.label])
				continue;
			n = trace_forward(g, x, 0);
			for (uint32_t y = e.to; g->from_b[y] != UINT32_MAX; y = g->from_b[y])
				if (g->label_b[y] != ORDER_ACYCLIC_STATIC)
					g->labels[n++] = g->label_b[y];
			found(arg, e.label, g->labels, n);
		}
	}
}

/* A binary heap of nodes by rank. */
struct heap {
	uint32_t *v;
	size_t n;
	const uint64_t *rank;
};

static void heap_push(struct heap *h, uint32_t x)
{
	size_t i = h->n++;

	for (; i && h->rank[h->v[(i - 1) / 2]] > h->rank[x]; i = (i - 1) / 2)
		h->v[i] = h->v[(i - 1) / 2];
	h->v[i] = x;
}

static uint32_t heap_pop(struct heap *h)
{
	uint32_t top = h->v[0], x = h->v[--h->n];
	size_t i = 0, kid;

	while ((kid = 2 * i + 1) < h->n) {
		if (kid + 1 < h->n && h->rank[h->v[kid + 1]] < h->rank[h->v[kid]])
			kid++;
		if (h->rank[h->v[kid]] >= h->rank[x])
			break;
		h->v[i] = h->v[kid];
		i = kid;
	}
	h->v[i] = x;
	return top;
}

size_t order_acyclic_sort(const struct order_acyclic *g, const uint64_t *rank, uint32_t *out)
{
	uint32_t *degree = xcalloc(g->n + 1, sizeof *degree);
	struct heap h = { xmalloc((g->n + 1) * sizeof(uint32_t)), 0, rank };
	size_t n = 0;

	for (uint32_t i = 0; i < g->n; i++)
		degree[i] = g->in[i].n;
	for (uint32_t i = 0; i < g->n; i++)
		if (!degree[i])
			heap_push(&h, i);
	while (h.n) {
		uint32_t x = heap_pop(&h);

		out[n++] = x;
		for (size_t k = 0; k < g->out[x].n; k++)
			if (!--degree[g->out[x].v[k].to])
				heap_push(&h, g->out[x].v[k].to);
	}
	free(h.v);
	free(degree);
	return n;
}
