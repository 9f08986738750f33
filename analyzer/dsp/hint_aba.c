/*
 * Advice about a compare-and-swap that finds what it expects, though it is not the same any more: the variable was
 * changed and changed back (ABA), and what the swap puts there was read before that, from where there is
 * something else by now. A lock-free list loses elements that way, or hands them out twice; where that is
 * noticed says little about it.
 */
#include "analyzer/dsp/pattern.h"

/* So far back it is looked for what a swap compares with; and so many reads are tried. */
#define NEAR 400
#define MAX_READS 4

struct aba {
	struct sched_ref read;  /* what the swap expects */
	struct sched_ref stale; /* what it puts there */
	struct sched_ref away;  /* another thread writes something else */
	struct sched_ref back;  /* and the same again */
	struct sched_ref swap;
};

/* The last write of the variable by others between two moments that leaves another value there than this one. */
static bool changed_between(const struct dsp_map *m, struct sched_ref from, struct sched_ref to, uint32_t var,
			    uint64_t value, struct sched_ref *found)
{
	size_t first = dsp_at(m, DSP_FAILING, from), last = dsp_at(m, DSP_FAILING, to), best = 0;

	for (uint32_t th = 0; th < m->t->nthreads; th++) {
		const struct sym_thread *x = &m->t->threads[th];

		for (uint32_t i = 0; th != from.thread && i < x->nevents; i++) {
			struct sched_ref r = { th, i };
			size_t at = dsp_at(m, DSP_FAILING, r);
			uint64_t now;

			if (x->events[i].target != var || !order_writes(&x->events[i]) || at == ORDER_NOWHERE ||
			    at <= first || at >= last || at < best ||
			    !order_value(m->t, m->order[DSP_FAILING], r, &now) || now == value)
				continue;
			best = at;
			*found = r;
		}
	}
	return best > 0;
}

/* What is swapped in was read on the way, and is not there any more. */
static bool find_stale(const struct dsp_map *m, struct aba *a)
{
	const struct sym_trace *t = m->t;
	const struct sym_event *swap = order_event_at(t, a->swap);

	for (uint32_t i = a->read.index + 1; i < a->swap.index; i++) {
		struct sched_ref q = { a->swap.thread, i }, w;
		const struct sym_event *e = order_event_at(t, q);
		const struct order_flow *f = e->op == SYM_READ ? dsp_flow_into(m, DSP_FAILING, q) : NULL;

		if (!f || !f->has_value || e->target == swap->target || !dsp_mentions_read(t, swap->value, e) ||
		    !changed_between(m, q, a->swap, e->target, f->value, &w))
			continue;
		a->stale = q;
		return true;
	}
	return false;
}

/* The swap's own condition compares with what was read here: was it changed and changed back? */
static bool is_aba(const struct dsp_map *m, struct aba *a)
{
	const struct order_flow *was = dsp_flow_into(m, DSP_FAILING, a->read);
	const struct order_flow *is = dsp_flow_into(m, DSP_FAILING, a->swap);

	if (!was || !is || !was->has_value || !is->has_value || was->value != is->value || is->initial ||
	    dsp_same_source(was, is) || is->write.thread == a->swap.thread ||
	    !changed_between(m, a->read, a->swap, order_event_at(m->t, a->swap)->target, was->value, &a->away))
		return false;
	a->back = is->write;
	return find_stale(m, a);
}

static bool look_at_swap(const struct dsp_map *m, struct sched_ref swap, expr_id cond, struct aba *a)
{
	const struct sym_trace *t = m->t;
	const struct sym_event *s = order_event_at(t, swap);
	uint32_t least = swap.index > NEAR ? swap.index - NEAR : 0;
	unsigned reads = 0;

	for (uint32_t i = swap.index; i-- > least && reads < MAX_READS;) {
		const struct sym_event *e = &t->threads[swap.thread].events[i];

		if (!order_is_access(e) || e->target != s->target || !order_reads(e))
			continue;
		reads++;
		*a = (struct aba){ .read = { swap.thread, i }, .swap = swap };
		if (dsp_mentions_read(t, cond, e))
			return is_aba(m, a);
	}
	return false;
}

/* The last one of the failing schedule. */
static bool find_aba(const struct dsp_map *m, struct aba *found)
{
	const struct sym_trace *t = m->t;
	size_t best = 0;

	for (uint32_t th = 0; th < t->nthreads; th++) {
		const struct sym_thread *x = &t->threads[th];

		for (size_t i = 0; i < x->nconds; i++) {
			struct sched_ref swap = { th, x->conds[i].after };
			struct aba a;

			if (swap.index == SYM_NONE || swap.index >= x->nevents ||
			    x->events[swap.index].op != SYM_RMW || x->events[swap.index].value == EXPR_NONE ||
			    dsp_at(m, DSP_FAILING, swap) == ORDER_NOWHERE || dsp_at(m, DSP_FAILING, swap) < best ||
			    !dsp_mentions_read(t, x->conds[i].cond, &x->events[swap.index]) ||
			    !look_at_swap(m, swap, x->conds[i].cond, &a))
				continue;
			best = dsp_at(m, DSP_FAILING, swap);
			*found = a;
		}
	}
	return best > 0;
}

static void say_line(struct strbuf *b, const struct sym_trace *t, const char *words, struct sched_ref r)
{
	strbuf_str(b, words);
	dsp_say_at(b, t, r);
}

bool dsp_match_aba(const struct dsp_case *c, struct dsp_hint *h)
{
	const struct dsp_map *m = c->m;
	const struct sym_trace *t = m->t;
	struct strbuf b = { 0 };
	const char *name;
	struct aba a;

	if (!m->order[DSP_FAILING] || !find_aba(m, &a))
		return false;
	name = dsp_subject(t, order_event_at(t, a.swap));
	strbuf_fmt(&b, "Let the compare-and-swap of `%s' at ", name);
	dsp_say_at(&b, t, a.swap);
	strbuf_str(&b, " notice that it was changed and changed back (ABA), by a counter beside it, say, or keep "
		   "others out");
	say_line(&b, t, " from ", a.read);
	strbuf_fmt(&b, " on: %s reads `%s' there,", dsp_thread_id(t, a.read.thread), name);
	strbuf_fmt(&b, " %s changes it", dsp_thread_id(t, a.away.thread));
	say_line(&b, t, " at ", a.away);
	if (a.back.thread == a.away.thread)
		strbuf_str(&b, " and makes it the same again");
	else
		strbuf_fmt(&b, ", %s makes it the same again", dsp_thread_id(t, a.back.thread));
	say_line(&b, t, " at ", a.back);
	strbuf_fmt(&b, "; the swap succeeds, and puts there what %s had read from `%s'",
		   dsp_thread_id(t, a.swap.thread), dsp_subject(t, order_event_at(t, a.stale)));
	say_line(&b, t, " at ", a.stale);
	strbuf_str(&b, ", which was something else by then.");
	dsp_ask_hold(h, a.read, a.swap);
	dsp_ask_hold(h, a.away, a.away);
	dsp_ask_hold(h, a.back, a.back);
	h->kind = DSP_HINT_ATOMIC;
	h->text = strbuf_take(&b);
	return true;
}
