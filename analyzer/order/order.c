/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Total orders over a symbolic trace: places and conflicts. */
#include "analyzer/order/order.h"

#include <assert.h>
#include <string.h>

bool order_has(const struct sym_trace *t, struct sched_ref r)
{
	return r.thread < t->nthreads && r.index < t->threads[r.thread].nevents;
}

const struct sym_event *order_event_at(const struct sym_trace *t, struct sched_ref r)
{
	return order_has(t, r) ? &t->threads[r.thread].events[r.index] : NULL;
}

const struct sym_event *order_event(const struct sym_trace *t, struct sched_ref r)
{
	assert(order_has(t, r));
	return &t->threads[r.thread].events[r.index];
}

bool order_same_target(const struct sym_event *a, const struct sym_event *b)
{
	return a->target != SYM_NONE && a->target == b->target && order_is_access(a) == order_is_access(b);
}

bool order_conflict(const struct sym_event *a, const struct sym_event *b)
{
	return order_same_target(a, b) && (!order_is_access(a) || order_writes(a) || order_writes(b));
}

void sched_order_free(struct sched_order *o)
{
	free(o->refs);
	free(o->values);
	*o = (struct sched_order){ 0 };
}

struct sched_order sched_order_copy(const struct sched_order *o)
{
	struct sched_order copy = *o;

	copy.refs = xcalloc(o->n + 1, sizeof *o->refs);
	if (o->n)
		memcpy(copy.refs, o->refs, o->n * sizeof *o->refs);
	if (o->values) {
		copy.values = xcalloc(o->nvalues + 1, sizeof *o->values);
		memcpy(copy.values, o->values, o->nvalues * sizeof *o->values);
	}
	return copy;
}

struct order_places order_places_of(const struct sym_trace *t, const struct sched_order *o)
{
	struct order_places p = { xcalloc(t->nthreads + 1, sizeof *p.at), (uint32_t)t->nthreads };

	for (size_t i = 0; i < t->nthreads; i++) {
		p.at[i] = xmalloc((t->threads[i].nevents + 1) * sizeof **p.at);
		memset(p.at[i], 0xff, (t->threads[i].nevents + 1) * sizeof **p.at);
	}
	for (size_t i = 0; i < o->n; i++) {
		assert(o->refs[i].index < t->threads[o->refs[i].thread].nevents);
		p.at[o->refs[i].thread][o->refs[i].index] = i;
	}
	return p;
}

void order_places_free(struct order_places *p)
{
	for (uint32_t i = 0; i < p->nthreads; i++)
		free(p->at[i]);
	free(p->at);
	*p = (struct order_places){ 0 };
}
