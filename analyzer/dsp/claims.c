/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What two threads claimed, both: a number, a node of a list, a device that was not busy. They meet at what they claimed, and
 * there the run fails; but the mistake lies where they claimed it. Each came to the meeting by a read of the same variable,
 * which it then wrote, and the other's write lies in between: no order of the accesses where they meet mends that. And what
 * a thread checked before it went on, and found changed where it fails.
 */
#include "analyzer/dsp/internal.h"

/* Claims further back, in events of one thread, than so many are not looked for. */
#define NEAR 400
/* Pairs of the root cause that are looked at, */
#define MAX_PAIRS 16
/* and events of the failing order between a read and the write that goes with it. */
#define MAX_BETWEEN 4000

struct claim {
	struct sched_ref first, last; /* of the region; last.thread is another one's where the run ended before it */
	struct sched_ref intruder;
};

static bool is_decided_by(const struct sym_trace *t, struct sched_ref look, struct sched_ref r)
{
	return dsp_decides_on_way(t, order_event_at(t, look), order_event_at(t, r));
}

static bool is_write_of(const struct sym_event *e, uint32_t var)
{
	return order_writes(e) && e->target == var;
}

/* The thread's next write of what it read there, if it does not come to look at it again before that; SYM_NONE: none. */
static struct sched_ref next_write(const struct sym_trace *t, struct sched_ref look)
{
	const struct sym_thread *th = &t->threads[look.thread];

	for (uint32_t i = look.index + 1; i < th->nevents && i - look.index < NEAR; i++) {
		const struct sym_event *e = &th->events[i];

		if (is_write_of(e, th->events[look.index].target))
			return (struct sched_ref){ look.thread, i };
		if (e->op == SYM_READ && e->target == th->events[look.index].target && e->pc == th->events[look.index].pc)
			break; /* another round */
	}
	return (struct sched_ref){ look.thread, SYM_NONE };
}

/* Its update before it, with nothing else of the variable in between: what is taken down is looked at. */
static struct sched_ref update_before(const struct sym_trace *t, struct sched_ref look)
{
	const struct sym_thread *th = &t->threads[look.thread];

	for (uint32_t i = look.index; i-- > 0 && look.index - i < NEAR;)
		if (order_is_access(&th->events[i]) && th->events[i].target == th->events[look.index].target)
			return (struct sched_ref){ look.thread, th->events[i].op == SYM_RMW ? i : SYM_NONE };
	return (struct sched_ref){ look.thread, SYM_NONE };
}

bool dsp_written_in(const struct dsp_map *m, struct sched_ref first, struct sched_ref last, struct sched_ref *by)
{
	const struct sched_order *o = m->order[DSP_FAILING];
	size_t from = dsp_at(m, DSP_FAILING, first), to = dsp_at(m, DSP_FAILING, last);

	if (from == ORDER_NOWHERE || to == ORDER_NOWHERE || to - from > MAX_BETWEEN)
		return false;
	for (size_t i = from + 1; i < to; i++) {
		*by = o->refs[i];
		if (by->thread != first.thread &&
		    is_write_of(order_event_at(m->t, *by), order_event_at(m->t, first)->target))
			return true;
	}
	return false;
}

/* The other's write is the first in between. */
static bool is_cut(const struct dsp_map *m, struct claim *c, uint32_t by)
{
	return c->first.index != SYM_NONE && c->last.index != SYM_NONE &&
	       dsp_written_in(m, c->first, c->last, &c->intruder) && c->intruder.thread == by &&
	       !dsp_spans_others(m->t, c->first, c->last, by);
}

/* The read by which this thread, too, came to r; SYM_NONE: it did not. */
static struct sched_ref look_of(const struct sym_trace *t, struct sched_ref r, uint32_t var)
{
	const struct sym_thread *th = &t->threads[r.thread];

	for (uint32_t i = r.index; i-- > 0 && r.index - i < NEAR;) {
		struct sched_ref look = { r.thread, i };

		if (order_reads(&th->events[i]) && th->events[i].target == var && is_decided_by(t, look, r))
			return look;
	}
	return (struct sched_ref){ r.thread, SYM_NONE };
}

/*
 * Both saw the same, at the same place, and the one has written it since: so would the other have done, had the run not
 * ended before.
 */
static bool is_unfinished(const struct dsp_map *m, struct sched_ref look, struct sched_ref take, struct sched_ref other,
			  struct claim *c)
{
	const struct order_flow *a = dsp_flow_into(m, DSP_FAILING, look), *b = dsp_flow_into(m, DSP_FAILING, other);

	if (!a || !b || !dsp_same_source(a, b) || take.index == SYM_NONE || next_write(m->t, other).index != SYM_NONE ||
	    !dsp_same_place(m->t, order_event_at(m->t, look), order_event_at(m->t, other)) ||
	    dsp_at(m, DSP_FAILING, take) == ORDER_NOWHERE ||
	    dsp_at(m, DSP_FAILING, take) < dsp_at(m, DSP_FAILING, other))
		return false;
	*c = (struct claim){ other, take, take };
	return true;
}

/* In what way it is one; ways that take more to be there come first. */
enum way { LOOKS_AND_TAKES, RAN_OUT, UPDATES_AND_LOOKS, WAYS };

/* By this read the thread came to where it met the other, which came there by that one. */
static bool is_claim(const struct dsp_map *m, enum way way, struct sched_ref look, struct sched_ref other, struct claim *c)
{
	struct sched_ref take = next_write(m->t, look);

	if (way == RAN_OUT)
		return is_unfinished(m, look, take, other, c);
	*c = way == LOOKS_AND_TAKES ? (struct claim){ .first = look, .last = take } :
				      (struct claim){ .first = update_before(m->t, look), .last = look };
	return is_cut(m, c, other.thread);
}

static struct dsp_region region_of(const struct sym_trace *t, const struct claim *c)
{
	struct dsp_region r = {
		.thread = c->first.thread, .first = c->first.index, .end = c->last,
		.last = c->last.thread == c->first.thread ? c->last.index : SYM_NONE,
		.intruder = c->intruder, .var = order_event_at(t, c->first)->target,
	};

	dsp_region_locks(t, &r);
	return r;
}

/* The last claim by which the thread came to `end', and the other thread to `met' likewise. */
static bool find_claim(const struct dsp_map *m, enum way way, struct sched_ref end, struct sched_ref met, struct dsp_region *r)
{
	const struct sym_thread *th = &m->t->threads[end.thread];
	struct claim c;

	for (uint32_t i = end.index; i-- > 0 && end.index - i < NEAR;) {
		const struct sym_event *e = &th->events[i];
		struct sched_ref look = { end.thread, i }, other;

		if (e->op != SYM_READ || e->target == th->events[end.index].target || !is_decided_by(m->t, look, end))
			continue;
		other = look_of(m->t, met, e->target);
		/* Who looks and takes under a lock each time has done the one before the other began. */
		if (other.index != SYM_NONE && is_claim(m, way, look, other, &c)) {
			*r = region_of(m->t, &c);
			if (r->common_lock == SYM_NONE)
				return true;
		}
	}
	return false;
}

/* The last write of the same by another thread before that, in the failing order: they meet there, too. */
static bool written_before(const struct dsp_map *m, struct sched_ref r, struct sched_ref *by)
{
	const struct sched_order *o = m->order[DSP_FAILING];
	size_t at = dsp_at(m, DSP_FAILING, r);

	if (!order_writes(order_event_at(m->t, r)) || at == ORDER_NOWHERE)
		return false;
	for (size_t i = at, n = 0; i-- > 0 && n < MAX_BETWEEN; n++) {
		*by = o->refs[i];
		if (by->thread != r.thread && is_write_of(order_event_at(m->t, *by), order_event_at(m->t, r)->target))
			return true;
	}
	return false;
}

/* Both came to where they met by a claim of the same, and one was cut. */
static bool claimed(const struct dsp_map *m, enum way way, struct sched_ref a, struct sched_ref b, struct dsp_region *r)
{
	return a.thread != b.thread && (find_claim(m, way, b, a, r) || find_claim(m, way, a, b, r));
}

/* What they met at may be a count, which a third one looks at in the end. */
static bool met_before(const struct dsp_map *m, enum way way, struct sched_ref end, struct dsp_region *r)
{
	struct sched_ref by;

	return written_before(m, end, &by) && claimed(m, way, by, end, r);
}

void dsp_find_claims(const struct dsp_map *m, const dsp_pairs *pairs, dsp_regions *out)
{
	for (enum way way = 0; way < WAYS; way++)
		for (size_t i = 0; i < pairs->n && i < MAX_PAIRS; i++) {
			const struct dsp_pair *p = &pairs->v[i];
			struct dsp_region r;

			if (!p->inverted || !order_is_access(order_event_at(m->t, p->before)) ||
			    !order_is_access(order_event_at(m->t, p->after)))
				continue;
			if (claimed(m, way, p->before, p->after, &r) || met_before(m, way, p->before, &r) ||
			    met_before(m, way, p->after, &r)) {
				vec_push(out, r);
				return;
			}
		}
}

/* ---- a check that was not true any more ---- */

/* What the failing thread read last of what its failure is decided by. */
static bool last_word(const struct sym_trace *t, struct sched_ref *read)
{
	const struct sym_thread *th = t->failure.thread < t->nthreads ? &t->threads[t->failure.thread] : NULL;

	for (uint32_t i = th ? (uint32_t)th->nevents : 0; i-- > 0;)
		if (dsp_failure_mentions(t, &th->events[i])) {
			*read = (struct sched_ref){ t->failure.thread, i };
			return true;
		}
	return false;
}

bool dsp_find_stale_check(const struct dsp_map *m, struct sched_ref *first, struct sched_ref *by, struct sched_ref *last)
{
	const struct sym_event *e, *end;

	if (!last_word(m->t, last))
		return false;
	end = order_event_at(m->t, *last);
	for (uint32_t i = last->index; i-- > 0 && last->index - i < NEAR;) {
		*first = (struct sched_ref){ last->thread, i };
		e = order_event_at(m->t, *first);
		/* The same instruction twice: two rounds of a loop. */
		if (e->op == SYM_READ && e->target == end->target)
			return e->pc != end->pc && dsp_decides_on_way(m->t, e, end) && dsp_written_in(m, *first, *last, by);
	}
	return false;
}
