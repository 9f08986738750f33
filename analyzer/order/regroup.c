/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The same run with fewer context switches: what depends on what is kept (who
 * writes what whom reads, turns at each object, thread life), everything else
 * is put together, thread by thread.
 *
 * A *run* is what a thread can execute now. One that ends because it waits for
 * something that needs the run itself has to end there; any other could go on
 * longer if it began later. So runs of the first kind come first, the longest
 * of them; the graph read backwards gives a second answer. Both are guesses at
 * the fewest (which is NP-hard); reduce.c executes them and moves on from there.
 */
#include "analyzer/order/regroup.h"

#include "common/vec.h"

#include <stdlib.h>
#include <string.h>

struct arc {
	uint32_t from, to; /* places in the order; of different threads */
};

struct graph {
	const struct order_view *v;
	const uint32_t *order;
	size_t n;
	VEC(struct arc) arcs;
	uint32_t *next;    /* by place: the thread's next place, or SYM_NONE */
	uint32_t *outside; /* by place: arcs to it from places not yet taken */
	uint32_t *first;   /* by place: its first successor in succ[]; [n] ends the last */
	uint32_t *succ;
	uint32_t *seen, stamp; /* by place: walked in which question */
	VEC(uint32_t) todo;
};

/* The last to have touched a variable or object, and who read it since. */
struct touched {
	uint32_t last;
	VEC(uint32_t) readers;
};

static uint32_t thread(const struct graph *g, uint32_t k)
{
	return g->v->ev[g->order[k]].e->thread;
}

static void add_arc(struct graph *g, uint32_t from, uint32_t to)
{
	if (from != SYM_NONE && thread(g, from) != thread(g, to))
		vec_push(&g->arcs, (struct arc){ from, to });
}

static void touch(struct graph *g, struct touched *x, uint32_t k, bool changes)
{
	add_arc(g, x->last, k);
	if (!changes) {
		vec_push(&x->readers, k);
		return;
	}
	for (size_t i = 0; i < x->readers.n; i++)
		add_arc(g, x->readers.v[i], k);
	x->readers.n = 0;
	x->last = k;
}

static void touch_all(struct graph *g, struct touched *vars, struct touched *objects, uint32_t k)
{
	const struct order_view_event *x = &g->v->ev[g->order[k]];
	const struct sym_event *e = x->e;

	if (order_is_access(e))
		touch(g, &vars[e->target], k, order_writes(e));
	else if (e->target != SYM_NONE)
		touch(g, &objects[e->target], k, true);
	if (x->wait != SYM_NONE) /* the unlock of a wait begins it */
		touch(g, &objects[g->v->ev[x->wait].e->target], k, true);
}

/* Thread life: the first event follows the fork, a join the last. */
static void live(struct graph *g, const uint32_t *place, uint32_t k)
{
	const struct order_view *v = g->v;
	const struct sym_event *e = v->ev[g->order[k]].e;

	if (e->index == 0 && v->forked_by[e->thread] != SYM_NONE)
		add_arc(g, place[v->forked_by[e->thread]], k);
	if (e->op == SYM_JOIN && v->first[e->peer + 1] > v->first[e->peer])
		add_arc(g, place[v->first[e->peer + 1] - 1], k);
}

static void find_arcs(struct graph *g)
{
	const struct sym_trace *t = g->v->t;
	struct touched *vars = xcalloc(t->nvars + 1, sizeof *vars);
	struct touched *objects = xcalloc(t->nobjects + 1, sizeof *objects);
	uint32_t *place = xcalloc(g->v->n + 1, sizeof *place);

	memset(place, 0xff, g->v->n * sizeof *place);
	for (uint32_t k = 0; k < g->n; k++)
		place[g->order[k]] = k;
	for (size_t i = 0; i < t->nvars; i++)
		vars[i].last = SYM_NONE;
	for (size_t i = 0; i < t->nobjects; i++)
		objects[i].last = SYM_NONE;
	for (uint32_t k = 0; k < g->n; k++) {
		touch_all(g, vars, objects, k);
		live(g, place, k);
	}
	for (size_t i = 0; i < t->nvars; i++)
		vec_free(&vars[i].readers);
	for (size_t i = 0; i < t->nobjects; i++)
		vec_free(&objects[i].readers);
	free(vars);
	free(objects);
	free(place);
}

/* Successors by place, and the threads' own order; backwards: all of it reversed. */
static void link_places(struct graph *g, bool backwards)
{
	size_t nthreads = g->v->t->nthreads;
	uint32_t *ahead = xcalloc(nthreads + 1, sizeof *ahead), *fill;

	memset(ahead, 0xff, nthreads * sizeof *ahead);
	for (size_t i = 0; i < g->n; i++) {
		uint32_t k = backwards ? i : g->n - 1 - i;

		g->next[k] = ahead[thread(g, k)];
		ahead[thread(g, k)] = k;
	}
	memset(g->first, 0, (g->n + 1) * sizeof *g->first);
	memset(g->outside, 0, g->n * sizeof *g->outside);
	for (size_t i = 0; i < g->arcs.n; i++) {
		struct arc *a = &g->arcs.v[i];

		if (backwards)
			*a = (struct arc){ a->to, a->from };
		g->first[a->from + 1]++;
		g->outside[a->to]++;
	}
	for (size_t k = 0; k < g->n; k++)
		g->first[k + 1] += g->first[k];
	fill = xcalloc(g->n + 1, sizeof *fill);
	memcpy(fill, g->first, g->n * sizeof *fill);
	for (size_t i = 0; i < g->arcs.n; i++)
		g->succ[fill[g->arcs.v[i].from]++] = g->arcs.v[i].to;
	free(fill);
	free(ahead);
}

/* The place behind the run that begins at k, or SYM_NONE when it goes to the thread's end. */
static uint32_t run_end(const struct graph *g, uint32_t k, size_t *length)
{
	for (*length = 0; k != SYM_NONE && !g->outside[k]; k = g->next[k])
		++*length;
	return k;
}

/* Does what keeps `end` waiting need the run from k to it? */
static bool must_end(struct graph *g, uint32_t k, uint32_t end)
{
	g->stamp++;
	g->todo.n = 0;
	for (; k != end; k = g->next[k])
		for (uint32_t i = g->first[k]; i < g->first[k + 1]; i++)
			vec_push(&g->todo, g->succ[i]);
	while (g->todo.n) {
		uint32_t at = g->todo.v[--g->todo.n];

		if (g->seen[at] == g->stamp)
			continue;
		g->seen[at] = g->stamp;
		if (at == end)
			return true;
		for (uint32_t i = g->first[at]; i < g->first[at + 1]; i++)
			vec_push(&g->todo, g->succ[i]);
		if (g->next[at] != SYM_NONE && thread(g, at) != thread(g, end))
			vec_push(&g->todo, g->next[at]);
	}
	return false;
}

static uint32_t choose(struct graph *g, const uint32_t *head, size_t nthreads)
{
	uint32_t best = SYM_NONE;
	size_t most = 0;
	bool best_must = false;

	for (uint32_t t = 0; t < nthreads; t++) {
		size_t length;
		uint32_t end = run_end(g, head[t], &length);

		if (!length || (best_must && length <= most))
			continue;
		bool must = end == SYM_NONE || must_end(g, head[t], end);

		if (must > best_must || (must == best_must && length > most)) {
			best = t;
			most = length;
			best_must = must;
		}
	}
	return best;
}

static void take_run(struct graph *g, uint32_t *head, uint32_t *out, size_t *n)
{
	uint32_t k = *head;

	for (; k != SYM_NONE && !g->outside[k]; k = g->next[k]) {
		out[(*n)++] = g->order[k];
		for (uint32_t i = g->first[k]; i < g->first[k + 1]; i++)
			g->outside[g->succ[i]]--;
	}
	*head = k;
}

static bool walk(struct graph *g, bool backwards, uint32_t *out)
{
	size_t nthreads = g->v->t->nthreads, n = 0;
	uint32_t *head = xcalloc(nthreads + 1, sizeof *head), t;

	link_places(g, backwards);
	memset(head, 0xff, nthreads * sizeof *head);
	for (size_t i = 0; i < g->n; i++) {
		uint32_t k = backwards ? i : g->n - 1 - i;

		head[thread(g, k)] = k;
	}
	while (n < g->n && (t = choose(g, head, nthreads)) != SYM_NONE)
		take_run(g, &head[t], out, &n);
	for (size_t i = 0; backwards && i < n / 2; i++) {
		uint32_t x = out[i];

		out[i] = out[n - 1 - i];
		out[n - 1 - i] = x;
	}
	free(head);
	return n == g->n;
}

bool order_regroup(const struct order_view *v, const uint32_t *order, size_t n, bool backwards,
		   uint32_t *out)
{
	struct graph g = { .v = v, .order = order, .n = n };
	bool whole;

	find_arcs(&g);
	g.next = xcalloc(n + 1, sizeof *g.next);
	g.outside = xcalloc(n + 1, sizeof *g.outside);
	g.first = xcalloc(n + 2, sizeof *g.first);
	g.seen = xcalloc(n + 1, sizeof *g.seen);
	g.succ = xcalloc(g.arcs.n + 1, sizeof *g.succ);
	whole = walk(&g, backwards, out);
	free(g.next);
	free(g.outside);
	free(g.first);
	free(g.seen);
	free(g.succ);
	vec_free(&g.arcs);
	vec_free(&g.todo);
	return whole;
}
