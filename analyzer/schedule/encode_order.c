/* What the trace itself orders: static edges, and vector clocks over them. */
#include "analyzer/schedule/encode.h"

#include <string.h>

/* Static edges between events, collected before the clocks are computed. */
struct static_order {
	VEC(uint32_t) from, to; /* local indices */
};

static const struct order_view_event *event(const struct encoding *c, uint32_t local)
{
	return &c->v->ev[c->w->events[local]];
}

static void order_static(struct encoding *c, struct static_order *s, uint32_t a, uint32_t b)
{
	uint32_t la = c->w->local[a], lb = c->w->local[b];

	if (la == SYM_NONE || lb == SYM_NONE)
		return;
	/* What a pending event comes after holds; what comes after it may not wait for it. */
	if (c->v->ev[a].pending)
		return;
	vec_push(&s->from, la);
	vec_push(&s->to, lb);
}

/* Program order; under TSO writes are held back only by what precedes them and drains. */
static void order_threads(struct encoding *c, struct static_order *s)
{
	const struct order_view *v = c->v;

	for (size_t t = 0; t < v->t->nthreads; t++) {
		uint32_t write = SYM_NONE, other = SYM_NONE;

		for (uint32_t i = v->first[t]; i < v->first[t + 1]; i++) {
			bool buffered = v->model == SCHED_TSO && v->ev[i].e->op == SYM_WRITE;

			if (!order_window_has(c->w, i))
				continue;
			if (other != SYM_NONE)
				order_static(c, s, other, i);
			if (write != SYM_NONE && (buffered || v->ev[i].drains))
				order_static(c, s, write, i);
			*(buffered ? &write : &other) = i;
		}
	}
}

static void order_life(struct encoding *c, struct static_order *s)
{
	const struct order_view *v = c->v;

	for (uint32_t l = 0; l < c->w->n; l++) {
		const struct sym_event *e = event(c, l)->e;
		uint32_t i = c->w->events[l];

		if (e->op != SYM_FORK && e->op != SYM_JOIN)
			continue;
		for (uint32_t k = 0; k < v->nchains; k++) {
			uint32_t len = v->chain_len[k];

			if (!len || v->ev[v->chain[k][0]].e->thread != e->peer)
				continue;
			if (e->op == SYM_FORK) {
				order_static(c, s, i, v->chain[k][0]);
			} else {
				order_static(c, s, v->chain[k][len - 1], i);
			}
		}
	}
}

/* The latest event of each other chain that the clocks put before this one. */
static void order_times(struct encoding *c, struct static_order *s)
{
	const struct order_view *v = c->v;
	uint32_t *told = xmalloc((v->nchains + 1) * sizeof *told);

	for (uint32_t k = 0; k < v->nchains && v->use_times; k++) {
		memset(told, 0, (v->nchains + 1) * sizeof *told);
		for (uint32_t p = c->w->lo[k]; p < c->w->hi[k]; p++) {
			uint32_t i = v->chain[k][p];

			for (uint32_t o = 0; o < v->nchains; o++) {
				uint32_t lo = c->w->lo[o], hi = c->w->hi[o];

				if (o == k)
					continue;
				while (lo < hi) {
					uint32_t mid = (lo + hi) / 2;

					if (v->ev[v->chain[o][mid]].hi < v->ev[i].lo)
						lo = mid + 1;
					else
						hi = mid;
				}
				if (lo > c->w->lo[o] && lo > told[o]) {
					order_static(c, s, v->chain[o][lo - 1], i);
					told[o] = lo;
				}
			}
		}
	}
	free(told);
}

/* Who waits for the initialiser begins after it began and goes on after it ended. */
static void order_once(struct encoding *c, struct static_order *s)
{
	const struct order_view *v = c->v;

	for (uint32_t l = 0; l < c->w->n; l++) {
		const struct sym_event *runner = event(c, l)->e;
		uint32_t i = c->w->events[l];
		bool begin = runner->op == SYM_ONCE_BEGIN;

		if (begin ? runner->result != 1 : runner->op != SYM_ONCE_END)
			continue;
		if (!begin) { /* is it the runner's? its begin stands before it */
			const struct sym_event *b = NULL;

			for (uint32_t k = i; k-- > v->first[runner->thread] && !b;)
				if (v->ev[k].e->op == SYM_ONCE_BEGIN &&
				    v->ev[k].e->target == runner->target)
					b = v->ev[k].e;
			if (!b || b->result != 1)
				continue;
		}
		for (uint32_t m = 0; m < c->w->n; m++) {
			const struct sym_event *e = event(c, m)->e;

			if (e->target != runner->target || e->thread == runner->thread)
				continue;
			if (e->op == (begin ? SYM_ONCE_BEGIN : SYM_ONCE_END))
				order_static(c, s, i, c->w->events[m]);
		}
	}
}

/* Vector clocks by Kahn's order; false when the static edges have a cycle. */
static bool compute_clocks(struct encoding *c, const struct static_order *s)
{
	uint32_t n = c->w->n, nc = c->v->nchains, done = 0;
	uint32_t *degree = xcalloc(n + 1, sizeof *degree), *queue = xcalloc(n + 1, sizeof *queue);
	uint32_t *start = xcalloc(n + 2, sizeof *start), *to;
	uint32_t tail = 0;

	for (size_t k = 0; k < s->from.n; k++) {
		degree[s->to.v[k]]++;
		start[s->from.v[k] + 1]++;
	}
	for (uint32_t i = 0; i < n; i++)
		start[i + 1] += start[i];
	to = xcalloc(s->from.n + 1, sizeof *to);
	uint32_t *fill = xcalloc(n + 1, sizeof *fill);
	for (size_t k = 0; k < s->from.n; k++) {
		uint32_t a = s->from.v[k];

		to[start[a] + fill[a]++] = s->to.v[k];
	}
	c->clock = xcalloc((size_t)(n + 1) * (nc + 1), sizeof *c->clock);
	for (uint32_t i = 0; i < n; i++)
		if (!degree[i])
			queue[tail++] = i;
	for (; done < tail; done++) {
		uint32_t a = queue[done], *ca = &c->clock[(size_t)a * nc];

		ca[event(c, a)->chain] = event(c, a)->pos + 1;
		for (uint32_t k = start[a]; k < start[a + 1]; k++) {
			uint32_t *cb = &c->clock[(size_t)to[k] * nc];

			for (uint32_t j = 0; j < nc; j++)
				if (ca[j] > cb[j])
					cb[j] = ca[j];
			if (!--degree[to[k]])
				queue[tail++] = to[k];
		}
	}
	free(degree);
	free(queue);
	free(start);
	free(fill);
	free(to);
	return done == n;
}

void encode_static_order(struct encoding *c)
{
	struct static_order s = { 0 };

	order_threads(c, &s);
	order_life(c, &s);
	order_times(c, &s);
	order_once(c, &s);
	c->contradiction = !compute_clocks(c, &s);
	for (size_t k = 0; k < s.from.n; k++)
		order_acyclic_static(c->smt->g, c->out[s.from.v[k]], c->in[s.to.v[k]]);
	vec_free(&s.from);
	vec_free(&s.to);
}
