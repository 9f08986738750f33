/*
 * Regions that ought to be atomic.
 *
 * Two accesses of one thread with a foreign access between them that no serial
 * order of the two threads could explain; the failing schedule has that, the
 * alternate does not. Which two accesses is decided by evidence, best first:
 * the first read the pointer the second goes through, and it was replaced since;
 * the second depends on what the first read (lost update, check then act), a
 * value changed between two reads, an unfinished update was seen.
 */
#include "analyzer/dsp/internal.h"

#include <string.h>

#define MAX_REGIONS 8
/* Bounds on the search, so that it stays linear in a long trace: what lies
 * further apart than NEAR events of one thread is no region anyone would lock. */
#define NEAR 400
#define MAX_PAIRS 128
/* Reads of a variable that are looked at for the one a write is made of. */
#define MAX_READS 16
/* Bytes behind a pointer that may belong to what it points to. */
#define POINTED 4096

enum evidence { NOTHING, COMPARED, STALE_WRITE, SPLIT, DEPENDENT, REPLACED };

struct candidate {
	struct dsp_region region;
	enum evidence evidence;
};
typedef VEC(struct candidate) candidates;

struct wanted {
	uint64_t symbol;
	bool found;
};

static void is_wanted(void *arg, uint64_t symbol)
{
	struct wanted *w = arg;

	w->found |= symbol == w->symbol;
}

static bool mentions(const struct sym_trace *t, expr_id e, uint64_t symbol)
{
	struct wanted w = { symbol, false };

	if (e != EXPR_NONE)
		expr_symbols(t->pool, e, is_wanted, &w);
	return w.found;
}

static const struct expr *read_symbol(const struct sym_trace *t, const struct sym_event *e)
{
	const struct expr *x = order_reads(e) && e->symbol != EXPR_NONE ?
			       expr_get(t->pool, e->symbol) : NULL;

	return x && x->op == EX_SYMBOL ? x : NULL;
}

bool dsp_mentions_read(const struct sym_trace *t, expr_id e, const struct sym_event *read)
{
	const struct expr *x = read_symbol(t, read);

	return x && mentions(t, e, x->value);
}

/* What `last` writes is made of what `first` read. */
static bool written_from(const struct sym_trace *t, const struct sym_event *first,
			 const struct sym_event *last)
{
	return order_writes(last) && dsp_mentions_read(t, last->value, first);
}

/* What `last` found is compared with what `first` read. */
static bool compared_to(const struct sym_trace *t, const struct sym_event *first,
			const struct sym_event *last)
{
	const struct sym_thread *th = &t->threads[first->thread];
	const struct expr *x = read_symbol(t, first);

	for (size_t i = 0; x && i < th->nconds; i++)
		if (th->conds[i].after == last->index && mentions(t, th->conds[i].cond, x->value))
			return true;
	return false;
}

/* Whether `last` is reached, or where that is, depends on what `first` read. */
bool dsp_decides_on_way(const struct sym_trace *t, const struct sym_event *first, const struct sym_event *last)
{
	const struct sym_thread *th = &t->threads[first->thread];
	const struct expr *x = read_symbol(t, first);

	for (size_t i = 0; x && i < th->nconds; i++) {
		uint32_t after = th->conds[i].after;

		if (after != SYM_NONE && after >= first->index && after < last->index &&
		    mentions(t, th->conds[i].cond, x->value))
			return true;
	}
	return false;
}

bool dsp_failure_mentions(const struct sym_trace *t, const struct sym_event *e)
{
	return t->failure.thread == e->thread && dsp_mentions_read(t, t->failure.condition, e);
}

/* What `last` does, or whether it is reached, depends on what `first` read; or the failure compares the two. */
static bool depends(const struct sym_trace *t, const struct sym_event *first,
		    const struct sym_event *last)
{
	return written_from(t, first, last) || dsp_decides_on_way(t, first, last) ||
	       dsp_failure_mentions(t, first);
}

/* The path, or the failure, depends on what e read. (Not where: traces of other
 * tools have all conditions at a thread's end.) */
static bool decides(const struct sym_trace *t, const struct sym_event *e)
{
	const struct sym_thread *th = &t->threads[e->thread];
	const struct expr *x = read_symbol(t, e);

	if (dsp_failure_mentions(t, e))
		return true;
	for (size_t i = 0; x && i < th->nconds; i++)
		if (mentions(t, th->conds[i].cond, x->value))
			return true;
	return false;
}

static enum evidence weigh(const struct sym_trace *t, const struct sym_event *first,
			   const struct sym_event *between, const struct sym_event *last)
{
	bool writes = order_writes(between), reads = order_reads(between);
	bool split = (writes && order_reads(first)) || /* R W R, R W W */
		     (reads && order_writes(first) && order_writes(last)); /* W R W */
	bool stale = writes && order_writes(first) && order_reads(last); /* W W R */

	/* What a loop adds up, or compares: the failure is about both. */
	if (split && first->target != last->target && dsp_failure_mentions(t, first) &&
	    dsp_failure_mentions(t, last))
		return DEPENDENT;
	/*
	 * The same instruction twice: two rounds of a loop, not one region, unless the second goes on
	 * with what the first one read (a compare-and-swap that is tried again); once: an update.
	 */
	if (first->pc && first->pc == last->pc && dsp_same_calls(t, first, last) &&
	    (!first->occurrence || first->occurrence != last->occurrence) &&
	    !written_from(t, first, last) && !compared_to(t, first, last))
		return NOTHING;
	if (split && depends(t, first, last))
		return DEPENDENT;
	/* Called from two places, a function twice is one region only where the second call depends
	 * on what the first one saw. */
	if (first->pc && first->pc == last->pc && !dsp_same_calls(t, first, last))
		return NOTHING;
	if (split)
		return SPLIT;
	if (stale)
		return STALE_WRITE;
	/* R R W: the update that the reader will not see; all else is serial. */
	return reads && order_writes(last) && depends(t, first, last) ? STALE_WRITE : NOTHING;
}

bool dsp_spans_others(const struct sym_trace *t, struct sched_ref first, struct sched_ref last, uint32_t other)
{
	uint32_t fork = order_fork_towards(t, first.thread, other);

	for (uint32_t i = first.index + 1; i < last.index; i++) {
		enum sym_op op = t->threads[first.thread].events[i].op;

		if (op == SYM_BARRIER_ENTER || op == SYM_BARRIER_LEAVE || op == SYM_JOIN ||
		    op == SYM_WAIT)
			return true;
	}
	return fork != SYM_NONE && fork > first.index && fork < last.index;
}

static void add_as(const struct dsp_map *m, candidates *c, struct sched_ref first,
		   struct sched_ref intruder, struct sched_ref last, enum evidence evidence)
{
	const struct sym_event *e1 = order_event_at(m->t, first);
	const struct sym_event *e2 = order_event_at(m->t, last);
	struct candidate n = { .evidence = evidence };

	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].region.thread == first.thread && c->v[i].region.first == first.index &&
		    c->v[i].region.last == last.index)
			return;
	if (n.evidence == NOTHING || dsp_spans_others(m->t, first, last, intruder.thread))
		return;
	n.region = (struct dsp_region){
		.thread = first.thread, .first = first.index, .last = last.index, .end = last,
		.intruder = intruder,
		.var = e1->target == e2->target ? e1->target : SYM_NONE,
	};
	dsp_region_locks(m->t, &n.region);
	vec_push(c, n);
}

static void add(const struct dsp_map *m, candidates *c, struct sched_ref first,
		struct sched_ref intruder, struct sched_ref last)
{
	add_as(m, c, first, intruder, last,
	       weigh(m->t, order_event_at(m->t, first), order_event_at(m->t, intruder),
		     order_event_at(m->t, last)));
}

static bool same_var(const struct sym_event *a, const struct sym_event *b)
{
	return order_is_access(a) && order_is_access(b) && a->target == b->target;
}

static uint32_t last_near(const struct sym_trace *t, struct sched_ref r)
{
	size_t n = t->threads[r.thread].nevents;

	return (uint32_t)(n - r.index < NEAR ? n : r.index + NEAR);
}

/*
 * The read of the variable that the write is made of, however far back: compilers keep a variable in a
 * register over a whole loop, and write it out now and then. SYM_NONE: there is none.
 */
static uint32_t made_of(const struct sym_trace *t, struct sched_ref write)
{
	const struct sym_thread *th = &t->threads[write.thread];
	const struct sym_event *w = &th->events[write.index];
	unsigned reads = 0;

	if (!order_writes(w))
		return SYM_NONE;
	for (uint32_t i = write.index; i-- > 0 && reads < MAX_READS;) {
		if (!same_var(&th->events[i], w) || !order_reads(&th->events[i]))
			continue;
		if (written_from(t, &th->events[i], w))
			return i;
		reads++;
	}
	return SYM_NONE;
}

/* The failing schedule has a < b, the alternate b < a: who was cut in two? */
static void split_by(const struct dsp_map *m, struct sched_ref a, struct sched_ref b,
		     candidates *c)
{
	const struct sym_event *ea = order_event_at(m->t, a), *eb = order_event_at(m->t, b);

	if (a.thread == b.thread || !same_var(ea, eb))
		return;
	struct sched_ref from = { b.thread, made_of(m->t, b) };
	if (from.index != SYM_NONE && dsp_at(m, DSP_FAILING, from) < dsp_at(m, DSP_FAILING, a))
		add(m, c, from, a, b);
	/* b is the end of a region that began before a */
	for (uint32_t i = b.index; i-- > 0 && b.index - i < NEAR;) {
		struct sched_ref r = { b.thread, i };

		if (same_var(order_event_at(m->t, r), ea) &&
		    dsp_at(m, DSP_FAILING, r) < dsp_at(m, DSP_FAILING, a)) {
			add(m, c, r, a, b);
			break;
		}
	}
	/* a is the beginning of a region that ended after b */
	for (uint32_t i = a.index + 1; i < last_near(m->t, a); i++) {
		struct sched_ref r = { a.thread, i };
		size_t at = dsp_at(m, DSP_FAILING, r);

		if (at != ORDER_NOWHERE && same_var(order_event_at(m->t, r), eb) &&
		    at > dsp_at(m, DSP_FAILING, b)) {
			add(m, c, a, b, r);
			break;
		}
	}
}

/* Somebody's write to the variable between two moments of the failing schedule. */
static bool written_between(const struct dsp_map *m, uint32_t thread, uint32_t var, size_t from,
			    size_t to)
{
	const struct sym_thread *th = &m->t->threads[thread];

	for (uint32_t i = 0; i < th->nevents; i++) {
		size_t at = dsp_at(m, DSP_FAILING, (struct sched_ref){ thread, i });

		if (at != ORDER_NOWHERE && at > from && at < to && order_writes(&th->events[i]) &&
		    th->events[i].target == var)
			return true;
	}
	return false;
}

/*
 * b goes through a pointer that its thread had read before a; since then a's thread put another
 * one there, before a or behind it (what is copied, or freed, is replaced next): from the reading
 * to the use it should have stayed.
 */
static void split_by_pointer(const struct dsp_map *m, struct sched_ref a, struct sched_ref b,
			     candidates *c)
{
	const struct sym_event *eb = order_event_at(m->t, b);
	struct sched_ref best = { b.thread, SYM_NONE };
	struct sched_ref behind = { a.thread, last_near(m->t, a) - 1 };
	uint64_t address, base = 0;

	if (a.thread == b.thread || !same_var(order_event_at(m->t, a), eb))
		return;
	while (behind.index > a.index && dsp_at(m, DSP_FAILING, behind) == ORDER_NOWHERE)
		behind.index--;
	address = m->t->vars[eb->target].address;
	for (uint32_t i = b.index; i-- > 0 && b.index - i < NEAR;) {
		struct sched_ref r = { b.thread, i };
		const struct sym_event *e = order_event_at(m->t, r);

		if (dsp_at(m, DSP_FAILING, r) > dsp_at(m, DSP_FAILING, a) ||
		    !order_reads(e) || order_writes(e) || m->t->vars[e->target].width != 64 ||
		    e->seen <= base || e->seen > address || address - e->seen >= POINTED ||
		    !written_between(m, a.thread, e->target, dsp_at(m, DSP_FAILING, r),
				     dsp_at(m, DSP_FAILING, behind) + 1))
			continue;
		base = e->seen;
		best = r;
	}
	if (best.index != SYM_NONE)
		add_as(m, c, best, a, b, REPLACED);
}

static bool is_between(const struct dsp_map *m, struct sched_ref first, struct sched_ref r,
		       struct sched_ref last)
{
	size_t at = dsp_at(m, DSP_FAILING, r);

	return at > dsp_at(m, DSP_FAILING, first) && at < dsp_at(m, DSP_FAILING, last);
}

/* Several variables: A's e1 < B's f1 and B's f2 < A's e2 are both needed. */
static void split_by_two(const struct dsp_map *m, const struct dsp_pair *in,
			 const struct dsp_pair *out, candidates *c)
{
	const struct sym_event *e1 = order_event_at(m->t, in->before);
	const struct sym_event *f1 = order_event_at(m->t, in->after);
	const struct sym_event *f2 = order_event_at(m->t, out->before);
	const struct sym_event *e2 = order_event_at(m->t, out->after);

	if (!in->inverted && !out->inverted)
		return;
	if (in->before.thread != out->after.thread || in->after.thread != out->before.thread ||
	    in->before.thread == in->after.thread || e1->index >= e2->index)
		return;
	if (!same_var(e1, f1) || (!order_writes(e1) && !order_writes(f1)) ||
	    !same_var(f2, e2) || (!order_writes(f2) && !order_writes(e2)))
		return;
	/* Of two that are both needed the one who was inside the other was not cut. */
	if (is_between(m, in->before, in->after, out->after))
		add(m, c, in->before, in->after, out->after);
	else if (is_between(m, in->before, out->before, out->after))
		add(m, c, in->before, out->before, out->after);
}

/*
 * Several variables, and only one order among them is in the root cause because
 * the path itself demands the other: B looked at one of A's writes, and what it
 * saw there decided that, or how, it looks at the second variable.
 */
static void split_by_look(const struct dsp_map *m, const dsp_pairs *pairs,
			  const struct dsp_pair *p, candidates *c)
{
	const struct sym_trace *t = m->t;
	struct sched_ref f2 = p->before, e2 = p->after;
	bool turned = false;

	/* Any of the writes that the look came before may be the one turned round. */
	for (size_t i = 0; i < pairs->n; i++)
		turned |= pairs->v[i].inverted && order_same_ref(pairs->v[i].before, f2);
	if (!turned || f2.thread == e2.thread || !order_writes(order_event_at(t, e2)) ||
	    !same_var(order_event_at(t, f2), order_event_at(t, e2)))
		return;
	for (uint32_t i = f2.index; i-- > 0 && f2.index - i < NEAR;) {
		struct sched_ref f1 = { f2.thread, i };
		const struct order_flow *flow = dsp_flow_into(m, DSP_FAILING, f1);

		if (!flow || flow->initial || flow->write.thread != e2.thread ||
		    flow->write.index >= e2.index || !decides(t, order_event_at(t, f1)) ||
		    /* How a library hands work to its threads is nothing the program could lock. */
		    dsp_is_in_library(t, order_event_at(t, flow->write)))
			continue;
		add(m, c, flow->write, f2, e2);
		return;
	}
}

/* The same, when the alternate moves B's first look before A's first write. */
static void split_by_next(const struct dsp_map *m, const struct dsp_pair *p, candidates *c)
{
	const struct sym_trace *t = m->t;
	struct sched_ref e1 = p->before, f1 = p->after;
	const struct order_flow *flow = p->inverted ? dsp_flow_into(m, DSP_FAILING, f1) : NULL;

	if (!flow || flow->initial || e1.thread == f1.thread ||
	    flow->write.thread != e1.thread || flow->write.index != e1.index)
		return;
	for (uint32_t i = e1.index + 1; i < last_near(t, e1); i++) {
		struct sched_ref e2 = { e1.thread, i };

		if (!order_writes(order_event_at(t, e2)))
			continue;
		for (uint32_t k = f1.index + 1; k < last_near(t, f1); k++) {
			struct sched_ref f2 = { f1.thread, k };

			if (same_var(order_event_at(t, f2), order_event_at(t, e2)) &&
			    dsp_at(m, DSP_FAILING, f2) < dsp_at(m, DSP_FAILING, e2) &&
			    decides(t, order_event_at(t, f1))) {
				add(m, c, e1, f2, e2);
				return;
			}
		}
	}
}

/*
 * Two variables of which one says whether the other may be used: b came there by what its thread had
 * read, and a's thread changed that in between, too. Where the one created the other a join is
 * what is missing.
 */
static void split_by_check(const struct dsp_map *m, const struct dsp_pair *p, candidates *c)
{
	const struct sym_trace *t = m->t;
	struct sched_ref a = p->before, b = p->after, first = { b.thread, SYM_NONE };

	if (!p->inverted || a.thread == b.thread || !same_var(order_event_at(t, a), order_event_at(t, b)) ||
	    order_related(t, a.thread, b.thread))
		return;
	for (uint32_t i = b.index; i-- > 0 && b.index - i < NEAR;) {
		struct sched_ref r = { b.thread, i };
		const struct sym_event *e = order_event_at(t, r);

		/* The first check counts, but not that of the round before. */
		if (e->pc && e->pc == order_event_at(t, b)->pc)
			break;
		if (!order_reads(e) || e->target == order_event_at(t, b)->target || !is_between(m, r, a, b) ||
		    !depends(t, e, order_event_at(t, b)) ||
		    !written_between(m, a.thread, e->target, dsp_at(m, DSP_FAILING, r),
				     dsp_at(m, DSP_FAILING, b)))
			continue;
		first = r;
	}
	if (first.index != SYM_NONE)
		add_as(m, c, first, a, b, DEPENDENT);
}

static bool failure_reads(const struct sym_trace *t, const struct sym_event *e)
{
	return dsp_mentions_read(t, t->failure.condition, e);
}

/* What it read its creator had given it before it was there: nobody was going to change that. */
static bool given_at_birth(const struct dsp_map *m, struct sched_ref read)
{
	const struct order_flow *f = dsp_flow_into(m, DSP_FAILING, read);
	uint32_t fork = f && !f->initial ? order_fork_towards(m->t, f->write.thread, read.thread) : SYM_NONE;

	return fork != SYM_NONE && f->write.index < fork;
}

/* The other variable that decides the failure besides what f1 read: its read next to f1. */
static bool compared_with(const struct dsp_map *m, struct sched_ref f1, struct sched_ref *f2)
{
	const struct sym_thread *th = &m->t->threads[f1.thread];
	uint32_t from = f1.index > NEAR ? f1.index - NEAR : 0;

	for (uint32_t i = last_near(m->t, f1); i-- > from;) {
		const struct sym_event *e = &th->events[i];

		*f2 = (struct sched_ref){ f1.thread, i };
		if (e->target != th->events[f1.index].target && failure_reads(m->t, e) &&
		    dsp_at(m, DSP_FAILING, *f2) != ORDER_NOWHERE && !given_at_birth(m, *f2))
			return true;
	}
	return false;
}

/* In another round, or another thread, that does what e1 does: the write of var after it. */
static bool find_like(const struct sym_trace *t, const struct sym_event *e1, uint32_t var,
		      struct sched_ref *like)
{
	for (uint32_t th = 0; e1->pc && th < t->nthreads; th++) {
		const struct sym_thread *x = &t->threads[th];
		uint32_t since = SYM_NONE;

		for (uint32_t i = 0; i < x->nevents; i++) {
			if (x->events[i].pc == e1->pc)
				since = i;
			else if (since != SYM_NONE && i - since < NEAR &&
				 order_writes(&x->events[i]) && x->events[i].target == var) {
				*like = (struct sched_ref){ th, i };
				return true;
			}
		}
	}
	return false;
}

/*
 * The failure depends on two variables, and the one who changes both had changed
 * only the first: the run ended before the second. Had it been read before that
 * change, too, they would have fitted.
 */
static void split_unfinished(const struct dsp_map *m, const struct dsp_pair *p, candidates *c)
{
	const struct sym_trace *t = m->t;
	struct sched_ref e1 = p->before, f1 = p->after, f2, like;
	const struct order_flow *flow = p->inverted ? dsp_flow_into(m, DSP_FAILING, f1) : NULL;
	struct candidate n = { .evidence = COMPARED };

	if (!flow || flow->initial || !order_same_ref(flow->write, e1) || e1.thread == f1.thread ||
	    t->failure.condition == EXPR_NONE || t->failure.thread != f1.thread ||
	    (!failure_reads(t, order_event_at(t, f1)) && !decides(t, order_event_at(t, f1))) ||
	    !compared_with(m, f1, &f2))
		return;
	flow = dsp_flow_into(m, DSP_FAILING, f2);
	/* Seen from before that change, or from the same thread on its way behind it. */
	bool later = flow && !flow->initial &&
		     dsp_at(m, DSP_FAILING, flow->write) > dsp_at(m, DSP_FAILING, e1);
	if (!flow || (later && flow->write.thread != e1.thread))
		return;
	n.region = (struct dsp_region){ .var = SYM_NONE };
	if (!later && find_like(t, order_event_at(t, e1), order_event_at(t, f2)->target, &like)) {
		n.region.thread = e1.thread;
		n.region.first = e1.index;
		n.region.last = SYM_NONE;
		n.region.end = like;
		n.region.intruder = f2;
		n.evidence = SPLIT;
	} else {
		n.region.thread = f1.thread;
		n.region.first = f1.index < f2.index ? f1.index : f2.index;
		n.region.last = f1.index < f2.index ? f2.index : f1.index;
		n.region.end = (struct sched_ref){ f1.thread, n.region.last };
		n.region.intruder = later ? flow->write : e1;
		n.region.compared = true;
	}
	dsp_region_locks(t, &n.region);
	vec_push(c, n);
}

static enum evidence best_of(const candidates *c, size_t n)
{
	enum evidence best = NOTHING;

	for (size_t i = 0; i < n; i++)
		if (c->v[i].evidence > best)
			best = c->v[i].evidence;
	return best;
}

/*
 * All there is begins with what the thread wrote, and then let the lock go that goes with it: that was the end of something. A
 * check that was no longer true tells more.
 */
static bool begins_with_an_end(const candidates *c)
{
	if (best_of(c, c->n) > STALE_WRITE)
		return false;
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].region.common_lock == SYM_NONE)
			return false;
	return true;
}

void dsp_find_regions(const struct dsp_map *m, const dsp_pairs *pairs, dsp_regions *out)
{
	candidates c = { 0 };
	enum evidence best;
	size_t npairs = pairs->n < MAX_PAIRS ? pairs->n : MAX_PAIRS;

	for (size_t i = 0; i < npairs; i++)
		if (pairs->v[i].inverted) {
			split_by(m, pairs->v[i].before, pairs->v[i].after, &c);
			split_by_pointer(m, pairs->v[i].before, pairs->v[i].after, &c);
		}
	/* Two variables that were seen half changed tell more than one that was seen too early. */
	for (size_t i = 0, n = c.n; (!n || best_of(&c, n) < SPLIT) && i < npairs; i++)
		for (size_t k = 0; k < npairs; k++)
			if (i != k)
				split_by_two(m, &pairs->v[i], &pairs->v[k], &c);
	for (size_t i = 0, n = c.n; !n && i < npairs; i++) {
		split_by_look(m, pairs, &pairs->v[i], &c);
		split_by_next(m, &pairs->v[i], &c);
	}
	if (begins_with_an_end(&c)) {
		for (size_t i = 0; i < npairs; i++)
			split_by_check(m, &pairs->v[i], &c);
		struct sched_ref first, by, last;
		if (begins_with_an_end(&c) && dsp_find_stale_check(m, &first, &by, &last))
			add_as(m, &c, first, by, last, DEPENDENT);
	}
	for (size_t i = 0, n = c.n; !n && i < npairs; i++)
		split_unfinished(m, &pairs->v[i], &c);
	best = best_of(&c, c.n);
	for (size_t i = 0; i < c.n && out->n < MAX_REGIONS; i++)
		if (c.v[i].evidence == best)
			vec_push(out, c.v[i].region);
	vec_free(&c);
}
