/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What needs store buffers. No order of whole steps fails: stores have to be late, by a few nanoseconds. All
 * that can be done is to let the threads go at the same instant where they make them, every time they do;
 * and, each time, to keep the order of what they do behind that.
 */
#include "analyzer/enforce/edges.h"
#include "analyzer/enforce/internal.h"

#include <string.h>

/*
 * The store another thread makes, behind the load that did not see it, to what that load reads: the
 * other half.
 */
static struct sched_ref other_store(const struct sym_trace *t, const struct sched_order *o, struct sched_ref load)
{
	uint32_t var = order_event(t, load)->target;

	for (size_t i = edges_place(o, load); i < o->n; i++) {
		const struct sym_event *ev = order_event(t, o->refs[i]);

		if (ev->op == SYM_WRITE && ev->target == var && o->refs[i].thread != load.thread)
			return o->refs[i];
	}
	return (struct sched_ref){ 0, SYM_NONE };
}

static bool same_place(const struct schedule_end *a, const struct schedule_end *b)
{
	return a->offset == b->offset && !strcmp(a->module, b->module);
}

/* Between two events, each time they come. NULL: it is there already, or cannot be told. */
static struct schedule_edge *add(const struct enforce *e, struct schedule *s, struct sched_ref before,
				 struct sched_ref after)
{
	const struct sym_trace *t = e->extracted->trace;
	struct schedule_end a = { 0 }, b = { 0 };
	bool a_told = schedule_end_in(e, s, t, before, true, false, &a);
	bool b_told = schedule_end_in(e, s, t, after, false, false, &b);
	struct schedule_edge *edge = schedule_push(s, a_told, a, b_told, b);

	if (!edge)
		return NULL;
	edge->source.n = edge->target.n = 0;
	for (struct schedule_edge *x = s->edges.v; x < edge; x++)
		if (same_place(&x->source, &edge->source) && same_place(&x->target, &edge->target)) {
			schedule_end_free(&edge->source);
			schedule_end_free(&edge->target);
			s->edges.n--;
			return NULL;
		}
	return edge;
}

static void add_meeting(const struct enforce *e, struct schedule *s, const struct sched_delay *d)
{
	struct sched_ref other = other_store(e->extracted->trace, &e->answer->failing, d->load);
	struct schedule_edge *m = other.index == SYM_NONE ? NULL : add(e, s, d->store, other);

	if (!m)
		return;
	m->meet = true;
	m->source.after = m->source.inside = m->source.middle = m->target.middle = false;
}

/* Nothing may come between the store and the load: there nobody can be made to wait. */
static bool is_met_at(const struct enforce *e, const struct sched_ref r)
{
	const struct sym_trace *t = e->extracted->trace;
	uint64_t pc = order_event(t, r)->pc;

	for (size_t i = 0; i < e->answer->ndelays; i++) {
		const struct sched_delay *d = &e->answer->delays[i];

		if (pc == order_event(t, d->store)->pc || pc == order_event(t, d->load)->pc)
			return true;
	}
	return false;
}

/* The root cause is what the threads do behind that, once both got through. */
static void add_cause(const struct enforce *e, struct schedule *s)
{
	for (size_t i = 0; i < e->answer->ncause; i++) {
		struct sched_edge x = e->answer->cause[i];
		struct schedule_edge *then = is_met_at(e, x.before) || is_met_at(e, x.after) ?
						     NULL : add(e, s, x.before, x.after);

		if (then)
			then->then = true;
	}
}

void schedule_meetings(const struct enforce *e, struct schedule *s)
{
	for (size_t i = 0; i < e->answer->ndelays; i++)
		add_meeting(e, s, &e->answer->delays[i]);
	if (s->edges.n)
		add_cause(e, s);
}
