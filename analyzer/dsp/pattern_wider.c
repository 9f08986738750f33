/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Patterns that are only tried: where the evidence fits more than one mistake, the larger one. A region may begin
 * with an earlier check of the same variable; a thread may have to be waited for before the first of several things that
 * it still uses is taken away.
 */
#include "analyzer/dsp/pattern.h"

/* So far back, in events of the thread. */
#define NEAR 400

bool dsp_match_wider_region(const struct dsp_case *c, struct dsp_hint *h)
{
	const struct sym_trace *t = c->m->t;
	struct dsp_region r;
	uint32_t least;

	if (!c->d->nregions || c->d->regions[0].compared || c->d->regions[0].last == SYM_NONE)
		return false;
	r = c->d->regions[0];
	const struct sym_thread *th = &t->threads[r.thread];
	const struct sym_event *first = &th->events[r.first], *last = &th->events[r.last];

	least = r.first > NEAR ? r.first - NEAR : 0;
	for (uint32_t i = r.first; i-- > least;) {
		const struct sym_event *e = &th->events[i];

		if (!order_reads(e) || (e->target != first->target && e->target != last->target) ||
		    dsp_same_place(t, e, first) || !dsp_decides_on_way(t, e, last))
			continue;
		r.first = i;
		dsp_region_locks(t, &r);
		h->kind = DSP_HINT_ATOMIC;
		h->text = dsp_atomic_text(t, &r);
		dsp_ask_region(h, &r);
		return true;
	}
	return false;
}

bool dsp_match_earlier_join(const struct dsp_case *c, struct dsp_hint *h)
{
	const struct sym_trace *t = c->m->t;
	struct strbuf b = { 0 };
	struct sched_ref early, late;

	if (c->d->nregions) {
		early = c->d->regions[0].intruder;
		late = c->d->regions[0].end;
	} else if (c->order) {
		early = c->order->before;
		late = c->order->after;
	} else {
		return false;
	}
	if (!order_made_before(t, early.thread, late.thread, early.index))
		return false;
	for (uint32_t i = early.index; i-- > 0;) {
		struct sched_ref sync = { early.thread, i };
		const struct sym_event *e = order_event_at(t, sync);

		if (e->op == SYM_FORK)
			return false;
		if (e->op != SYM_JOIN)
			continue;
		strbuf_fmt(&b, "Let %s wait for %s, too, at ", dsp_thread_id(t, early.thread),
			   dsp_thread_id(t, late.thread));
		dsp_say_at(&b, t, sync);
		strbuf_fmt(&b, ", where it joins %s: what it takes away from there on, up to ",
			   e->peer < t->nthreads ? dsp_thread_id(t, e->peer) : "another thread");
		dsp_say_at(&b, t, early);
		strbuf_fmt(&b, ", %s still uses.", dsp_thread_id(t, late.thread));
		h->kind = DSP_HINT_ORDER;
		h->text = strbuf_take(&b);
		dsp_ask(h, DSP_STEP_JOIN, late, sync, late.thread);
		return true;
	}
	return false;
}
