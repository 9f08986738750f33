/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What one execution showed: building it, and what creation and joining of threads fix. */
#include "analyzer/explore/model.h"

#include <string.h>

uint64_t xpl_mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ (b + 0x9e3779b97f4a7c15ull + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdull;

	return h ^ h >> 32;
}

struct xpl_trace *xpl_trace_new(uint32_t nthreads)
{
	struct xpl_trace *t = xcalloc(1, sizeof *t);

	t->threads = xcalloc(nthreads + 1, sizeof *t->threads);
	t->nthreads = nthreads;
	t->exits = XPL_NONE;
	return t;
}

bool xpl_is_born(const struct xpl_trace *t, uint32_t thread)
{
	bool is = t->threads[thread].from_start;

	for (size_t i = 0; i < t->events.n && !is; i++)
		is = t->events.v[i].op == XPL_FORK && t->events.v[i].peer == thread;
	return is;
}

void xpl_trace_free(struct xpl_trace *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->nthreads; i++)
		vec_free(&t->threads[i].events);
	free(t->threads);
	vec_free(&t->events);
	vec_free(&t->vars);
	vec_free(&t->objects);
	free(t);
}

/* Addresses are left out: another order may put things elsewhere in the heap. */
static uint64_t hash_of(const struct xpl_event *e)
{
	uint64_t h = xpl_mix(e->op, e->place ? e->place : e->pc);

	h = xpl_mix(h, xpl_reads(e) ? e->value : 0);
	h = xpl_mix(h, (uint64_t)(uint32_t)e->result << 32 | (e->op == XPL_FORK || e->op == XPL_JOIN ? e->peer : 0));
	return h;
}

static struct xpl_event linked(const struct xpl_trace *t, const struct xpl_event *given)
{
	const struct xpl_thread *th = &t->threads[given->thread];
	struct xpl_event e = *given;
	uint64_t before = th->events.n ? t->events.v[th->events.v[th->events.n - 1]].history : e.thread;

	e.index = (uint32_t)th->events.n;
	e.history = xpl_mix(before, hash_of(&e));
	return e;
}

uint32_t xpl_trace_add(struct xpl_trace *t, const struct xpl_event *given)
{
	struct xpl_event e = linked(t, given);

	vec_push(&t->events, e);
	vec_push(&t->threads[e.thread].events, (uint32_t)t->events.n - 1);
	return (uint32_t)t->events.n - 1;
}

void xpl_trace_pending(struct xpl_trace *t, const struct xpl_event *e)
{
	t->threads[e->thread].pending = linked(t, e);
	t->threads[e->thread].waits = true;
}

/* ---- creation and joining ---- */

struct xpl_life {
	uint32_t n;
	const struct xpl_trace *t;
	uint32_t *clock; /* per event and thread: how many of that thread's events come before it for sure */
};

struct xpl_life *xpl_life_new(const struct xpl_trace *t)
{
	struct xpl_life *l = xcalloc(1, sizeof *l);
	uint32_t n = t->nthreads, *now = xcalloc((size_t)n * n + 1, sizeof *now);

	l->n = n;
	l->t = t;
	l->clock = xcalloc(t->events.n * n + 1, sizeof *l->clock);
	for (size_t i = 0; i < t->events.n; i++) {
		const struct xpl_event *e = &t->events.v[i];
		uint32_t *mine = &now[(size_t)e->thread * n];

		if (e->op == XPL_JOIN)
			for (uint32_t k = 0; k < n; k++) {
				uint32_t theirs = now[(size_t)e->peer * n + k];
				mine[k] = theirs > mine[k] ? theirs : mine[k];
			}
		mine[e->thread] = e->index + 1;
		memcpy(&l->clock[i * n], mine, n * sizeof *mine);
		if (e->op == XPL_FORK) {
			memcpy(&now[(size_t)e->peer * n], mine, n * sizeof *mine);
			now[(size_t)e->peer * n + e->peer] = 0;
		}
	}
	free(now);
	return l;
}

void xpl_life_free(struct xpl_life *l)
{
	if (l)
		free(l->clock);
	free(l);
}

bool xpl_life_before(const struct xpl_life *l, const struct xpl_event *a, const struct xpl_event *b)
{
	uint32_t number = l->t->threads[b->thread].events.v[b->index];

	if (a->thread == b->thread)
		return a->index < b->index;
	return l->clock[(size_t)number * l->n + a->thread] > a->index;
}
