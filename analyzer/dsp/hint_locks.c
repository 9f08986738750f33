/* Advice about locks: who holds which at what they share, and what is left behind when one is let go. */
#include "analyzer/dsp/pattern.h"

/* So far back it is looked for where a thread took what it holds. */
#define NEAR 400

/* "Hold `m' where T0.1 reads `n' at a.c:3, and around all that belongs to it: T0.2 holds it when it ..." */
char *dsp_hold_text(const struct sym_trace *t, uint32_t lock, struct sched_ref without, struct sched_ref with)
{
	struct strbuf b = { 0 };

	strbuf_fmt(&b, "Hold `%s' where %s ", t->objects[lock].name, dsp_thread_id(t, without.thread));
	dsp_say_does(&b, t, without);
	strbuf_str(&b, " at ");
	dsp_say_at(&b, t, without);
	strbuf_fmt(&b, ", and around all that belongs to it: %s holds it when it ",
		   dsp_thread_id(t, with.thread));
	dsp_say_does(&b, t, with);
	strbuf_str(&b, " at ");
	dsp_say_at(&b, t, with);
	strbuf_char(&b, '.');
	return strbuf_take(&b);
}

/* A lock that is held at the one and not at the other, where none is held at both; SYM_NONE: none. */
static uint32_t held_at_one(const struct sym_trace *t, struct sched_ref with, struct sched_ref without)
{
	order_held_locks a = { 0 }, b = { 0 };
	uint32_t lock = SYM_NONE;

	order_locks_held(t, with.thread, with.index, &a);
	order_locks_held(t, without.thread, without.index, &b);
	for (size_t i = 0; i < a.n && lock == SYM_NONE; i++)
		lock = a.v[i].object;
	for (size_t i = 0; i < a.n; i++)
		for (size_t k = 0; k < b.n; k++)
			if (a.v[i].object == b.v[k].object)
				lock = SYM_NONE;
	vec_free(&a);
	vec_free(&b);
	return lock;
}

static bool takes(const struct sym_trace *t, uint32_t thread, uint32_t lock)
{
	for (size_t i = 0; i < t->threads[thread].nevents; i++) {
		const struct sym_event *e = &t->threads[thread].events[i];

		if (order_acquires(e) && e->target == lock)
			return true;
	}
	return false;
}

static void say_holds(struct strbuf *b, const struct sym_trace *t, struct sched_ref r, uint32_t lock)
{
	strbuf_fmt(b, "%s holds `%s' when it ", dsp_thread_id(t, r.thread), t->objects[lock].name);
	dsp_say_does(b, t, r);
	strbuf_str(b, " at ");
	dsp_say_at(b, t, r);
}

/* Both were careful, each with a lock of its own. */
char *dsp_two_locks_text(const struct sym_trace *t, struct sched_ref x, uint32_t its, struct sched_ref y,
			 uint32_t others)
{
	struct strbuf b = { 0 };

	strbuf_str(&b, "Hold the same lock at both places, and around all that belongs together: ");
	say_holds(&b, t, x, its);
	strbuf_str(&b, ", ");
	say_holds(&b, t, y, others);
	strbuf_char(&b, '.');
	return strbuf_take(&b);
}

/*
 * A thread reads what its creator had when it made it, and that writes only then: whatever lock
 * they share, it may look first.
 */
static bool looks_before_made(const struct dsp_map *m, const struct dsp_pair *p)
{
	uint32_t fork = order_fork_towards(m->t, p->after.thread, p->before.thread);
	const struct order_flow *f = order_reads(order_event_at(m->t, p->before)) ?
					   dsp_flow_into(m, DSP_FAILING, p->before) : NULL;

	return f && fork != SYM_NONE && fork < p->after.index &&
	       (f->initial || (f->write.thread == p->after.thread && f->write.index < fork));
}

/*
 * One guards what they share with a lock, and the other does not take it. Where one made the other an
 * order may be what is missing, unless the other takes that lock elsewhere.
 */
static bool unguarded_hint(const struct dsp_map *m, const struct dsp_pair *p, struct dsp_hint *h)
{
	const struct sym_trace *t = m->t;
	struct sched_ref with = p->before, without = p->after;
	uint32_t lock, own;

	if (!order_is_access(order_event_at(t, with)) || !order_is_access(order_event_at(t, without)) ||
	    looks_before_made(m, p))
		return false;
	bool related = order_related(t, with.thread, without.thread);

	lock = held_at_one(t, with, without);
	if (lock == SYM_NONE) {
		with = p->after;
		without = p->before;
		lock = held_at_one(t, with, without);
	}
	if (lock == SYM_NONE)
		return false;
	own = held_at_one(t, without, with);
	if (related && own == SYM_NONE && !takes(t, without.thread, lock))
		return false;
	h->kind = DSP_HINT_ATOMIC;
	h->text = own != SYM_NONE ? dsp_two_locks_text(t, with, lock, without, own) :
				    dsp_hold_text(t, lock, without, with);
	dsp_ask_hold(h, with, with);
	dsp_ask_hold(h, without, without);
	dsp_ask_lock(h, lock);
	dsp_ask_lock(h, own);
	return true;
}

/* The lock that is held at both, let go by the first in between; SYM_NONE: none. *release: where. */
static uint32_t passed_on(const struct sym_trace *t, struct sched_ref first, struct sched_ref second,
			  uint32_t *release)
{
	order_held_locks a = { 0 }, b = { 0 };
	uint32_t lock = SYM_NONE;

	order_locks_held(t, first.thread, first.index, &a);
	order_locks_held(t, second.thread, second.index, &b);
	for (size_t i = 0; i < a.n; i++)
		for (size_t k = 0; k < b.n; k++)
			if (a.v[i].object == b.v[k].object)
				lock = a.v[i].object;
	*release = first.index + 1;
	for (; lock != SYM_NONE && *release < t->threads[first.thread].nevents; ++*release) {
		const struct sym_event *e = &t->threads[first.thread].events[*release];

		if (order_releases(e) && e->target == lock)
			break;
	}
	vec_free(&a);
	vec_free(&b);
	return *release < t->threads[first.thread].nevents ? lock : SYM_NONE;
}

/*
 * Both take the same lock, so either may come first; but what the one leaves behind when it lets the
 * lock go is what the other's check does not allow.
 */
static bool half_done_hint(const struct sym_trace *t, const struct dsp_pair *p, struct dsp_hint *h)
{
	const struct sym_event *write = order_event_at(t, p->before), *read = order_event_at(t, p->after);
	struct strbuf b = { 0 };
	uint32_t lock, release;

	if (t->failure.kind != SYM_FAIL_ASSERT || t->failure.thread != p->after.thread ||
	    !order_writes(write) || !order_reads(read) || order_related(t, write->thread, read->thread))
		return false;
	lock = passed_on(t, p->before, p->after, &release);
	if (lock == SYM_NONE)
		return false;
	strbuf_fmt(&b, "Both hold `%s', so either may come first: what %s checks at ",
		   t->objects[lock].name, dsp_thread_id(t, read->thread));
	dsp_say_at(&b, t, p->after);
	strbuf_fmt(&b, " must hold again before %s releases it at ", dsp_thread_id(t, write->thread));
	dsp_say_at(&b, t, (struct sched_ref){ write->thread, release });
	strbuf_str(&b, ", after it ");
	dsp_say_does(&b, t, p->before);
	strbuf_str(&b, " at ");
	dsp_say_at(&b, t, p->before);
	strbuf_str(&b, ". What belongs to that should be done under the same lock, at once.");
	h->kind = DSP_HINT_ATOMIC;
	h->text = strbuf_take(&b);
	return true;
}

/* Where in the failing order a thread that holds the lock since an event lets it go. */
static size_t let_go(const struct dsp_map *m, uint32_t thread, uint32_t since, uint32_t lock)
{
	const struct sym_thread *th = &m->t->threads[thread];

	for (uint32_t i = since + 1; i < th->nevents; i++)
		if (order_releases(&th->events[i]) && th->events[i].target == lock)
			return dsp_at(m, DSP_FAILING, (struct sched_ref){ thread, i });
	return ORDER_NOWHERE;
}

/* Two that hold it for reading, at the same time. */
static bool overlap(const struct dsp_map *m, uint32_t x, const struct order_held *a, uint32_t y, const struct order_held *b)
{
	struct sched_ref at = { x, a->since }, bt = { y, b->since };

	return order_is_for_reading(m->t, x, a) && order_is_for_reading(m->t, y, b) &&
	       dsp_at(m, DSP_FAILING, at) < let_go(m, y, b->since, b->object) &&
	       dsp_at(m, DSP_FAILING, bt) < let_go(m, x, a->since, a->object);
}

/* A lock that both hold at once, for reading; SYM_NONE: none. */
static uint32_t shared_at(const struct dsp_map *m, struct sched_ref x, struct sched_ref y)
{
	order_held_locks a = { 0 }, b = { 0 };
	uint32_t lock = SYM_NONE;

	order_locks_held(m->t, x.thread, x.index, &a);
	order_locks_held(m->t, y.thread, y.index, &b);
	for (size_t i = 0; i < a.n; i++)
		for (size_t k = 0; k < b.n; k++)
			if (a.v[i].object == b.v[k].object && overlap(m, x.thread, &a.v[i], y.thread, &b.v[k]))
				lock = a.v[i].object;
	vec_free(&a);
	vec_free(&b);
	return lock;
}

static bool readers_hint(const struct dsp_map *m, const struct dsp_pair *p, struct dsp_hint *h)
{
	const struct sym_trace *t = m->t;
	bool first = order_writes(order_event_at(t, p->before)), second = order_writes(order_event_at(t, p->after));
	struct sched_ref write = first ? p->before : p->after, other = first ? p->after : p->before;
	struct strbuf b = { 0 };

	if (!(first || second) || !order_is_access(order_event_at(t, p->before)) || !order_is_access(order_event_at(t, p->after)))
		return false;
	uint32_t lock = shared_at(m, p->before, p->after);
	if (lock == SYM_NONE)
		return false;
	strbuf_fmt(&b, "Lock `%s' for writing where %s ", t->objects[lock].name, dsp_thread_id(t, write.thread));
	dsp_say_does(&b, t, write);
	strbuf_str(&b, " at ");
	dsp_say_at(&b, t, write);
	strbuf_fmt(&b, "%s: it holds it for reading, as %s does, which ", first && second ? ", and at the other place" : "",
		   dsp_thread_id(t, other.thread));
	dsp_say_does(&b, t, other);
	strbuf_str(&b, " at ");
	dsp_say_at(&b, t, other);
	strbuf_str(&b, ", and that keeps no other reader out.");
	dsp_ask_hold(h, p->before, p->before);
	dsp_ask_hold(h, p->after, p->after);
	h->kind = DSP_HINT_ATOMIC;
	h->text = strbuf_take(&b);
	return true;
}

/* A lock of the program's own making that is taken in two steps: looked at, and written when it is free. */
struct taken {
	struct sched_ref look, take;
	uint64_t was, is; /* free and taken */
};

static const struct expr *constant(const struct sym_trace *t, const struct sym_event *e)
{
	const struct expr *x = e->op == SYM_WRITE && e->value != EXPR_NONE ? expr_get(t->pool, e->value) : NULL;

	return x && x->op == EX_CONST ? x : NULL;
}

/* The thread's next write of it, or else the end of the order. */
static size_t held_until(const struct dsp_map *m, const struct taken *k)
{
	const struct sym_thread *th = &m->t->threads[k->take.thread];

	for (uint32_t i = k->take.index + 1; i < th->nevents; i++)
		if (order_writes(&th->events[i]) && th->events[i].target == th->events[k->take.index].target)
			return dsp_at(m, DSP_FAILING, (struct sched_ref){ k->take.thread, i });
	return ORDER_NOWHERE;
}

/* Does the thread make it free elsewhere? Else it is a flag, not a lock. */
static bool lets_go(const struct sym_trace *t, const struct taken *k)
{
	const struct sym_thread *th = &t->threads[k->take.thread];

	for (uint32_t i = 0; i < th->nevents; i++) {
		const struct expr *x = constant(t, &th->events[i]);

		if (x && th->events[i].target == th->events[k->take.index].target && x->value == k->was)
			return true;
	}
	return false;
}

/* This write: is it of a constant, since what the thread read there last was another one? */
static bool is_taking(const struct dsp_map *m, struct sched_ref write, struct taken *k)
{
	const struct sym_thread *th = &m->t->threads[write.thread];
	const struct expr *x = constant(m->t, &th->events[write.index]);

	for (uint32_t i = write.index; x && i-- > 0 && write.index - i < NEAR;) {
		const struct sym_event *e = &th->events[i];
		const struct order_flow *f;

		if (!order_is_access(e) || e->target != th->events[write.index].target)
			continue;
		*k = (struct taken){ { write.thread, i }, write, 0, x->value };
		f = e->op == SYM_READ ? dsp_flow_into(m, DSP_FAILING, k->look) : NULL;
		if (!f || !f->has_value || f->value == k->is || !dsp_decides_on_way(m->t, e, &th->events[write.index]))
			return false;
		k->was = f->value;
		return lets_go(m->t, k);
	}
	return false;
}

/* Does the thread hold this variable at r, as a lock? */
static bool holds_word(const struct dsp_map *m, struct sched_ref r, uint32_t var, struct taken *k)
{
	const struct sym_thread *th = &m->t->threads[r.thread];

	for (uint32_t i = r.index; i-- > 0 && r.index - i < NEAR;)
		if (order_writes(&th->events[i]) && th->events[i].target == var)
			return is_taking(m, (struct sched_ref){ r.thread, i }, k);
	return false;
}

static bool both_hold(const struct dsp_map *m, struct sched_ref x, struct sched_ref y, uint32_t var, struct taken *a,
		      struct taken *b)
{
	return holds_word(m, x, var, a) && holds_word(m, y, var, b) && a->was == b->was &&
	       dsp_at(m, DSP_FAILING, a->take) < held_until(m, b) && dsp_at(m, DSP_FAILING, b->take) < held_until(m, a);
}

static char *broken_lock_text(const struct sym_trace *t, const struct taken *a, const struct taken *b,
			      struct sched_ref x, struct sched_ref y)
{
	struct dsp_region r = { .thread = a->look.thread, .first = a->look.index, .last = a->take.index,
				.end = a->take, .var = order_event_at(t, a->take)->target };
	struct strbuf s = { 0 };

	strbuf_str(&s, "Make ");
	dsp_say_span(&s, t, &r);
	strbuf_fmt(&s, " one atomic step (an exchange or a compare-and-swap whose result is looked at): %s finds `%s' "
		   "free there and takes it, and so does %s at ", dsp_thread_id(t, a->take.thread),
		   dsp_subject(t, order_event_at(t, a->take)), dsp_thread_id(t, b->take.thread));
	dsp_say_at(&s, t, b->take);
	strbuf_fmt(&s, " before it is let go. Both are inside when %s ", dsp_thread_id(t, x.thread));
	dsp_say_does(&s, t, x);
	strbuf_str(&s, " at ");
	dsp_say_at(&s, t, x);
	strbuf_fmt(&s, " and %s ", dsp_thread_id(t, y.thread));
	dsp_say_does(&s, t, y);
	strbuf_str(&s, " at ");
	dsp_say_at(&s, t, y);
	strbuf_char(&s, '.');
	return strbuf_take(&s);
}

bool dsp_broken_lock_hint(const struct dsp_map *m, struct sched_ref x, struct sched_ref y, struct dsp_hint *h)
{
	const struct sym_thread *th = &m->t->threads[x.thread];
	struct taken a, b;

	for (uint32_t i = x.index; x.thread != y.thread && i-- > 0 && x.index - i < NEAR;) {
		if (!constant(m->t, &th->events[i]) || th->events[i].target == order_event_at(m->t, x)->target ||
		    !both_hold(m, x, y, th->events[i].target, &a, &b))
			continue;
		h->kind = DSP_HINT_ATOMIC;
		h->text = broken_lock_text(m->t, &a, &b, x, y);
		dsp_ask_hold(h, a.look, a.take);
		dsp_ask_hold(h, b.look, b.take);
		return true;
	}
	return false;
}

bool dsp_match_readers(const struct dsp_case *c, struct dsp_hint *h)
{
	return c->order && (!c->d->nregions || c->d->regions[0].shared_lock == SYM_NONE) && readers_hint(c->m, c->order, h);
}

bool dsp_match_unguarded(const struct dsp_case *c, struct dsp_hint *h)
{
	return c->order && unguarded_hint(c->m, c->order, h);
}

bool dsp_match_half_done(const struct dsp_case *c, struct dsp_hint *h)
{
	return c->order && half_done_hint(c->m->t, c->order, h);
}
