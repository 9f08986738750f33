/*
 * Locks: each stretch in which a thread holds a lock is a section; two
 * sections of different threads on one lock, not both shared, come one after
 * the other. Nested acquisitions of a recursive lock are one section.
 */
#include "analyzer/schedule/encode.h"

#include <string.h>

struct section {
	uint32_t object, thread;
	uint32_t from; /* event, or SYM_NONE: held when the window begins */
	uint32_t to;   /* event, or SYM_NONE: held to the end and beyond */
	bool shared;
	bool onward;   /* `to` is the thread's last event, after which it lets go */
};

struct locks {
	struct encoding *c;
	VEC(struct section) sections;
	uint32_t *first; /* by object: chains of sections */
	uint32_t *next;
};

struct hold {
	uint32_t depth, shares;
	uint32_t open, open_shared; /* 1 + section */
};

static uint32_t open_section(struct locks *k, uint32_t object, uint32_t thread, uint32_t from,
			     bool shared)
{
	vec_push(&k->sections, (struct section){ object, thread, from, SYM_NONE, shared, false });
	return k->sections.n;
}

static void take_lock(struct locks *k, struct hold *h, uint32_t i)
{
	struct encoding *c = k->c;
	const struct sym_event *e = c->v->ev[i].e;

	if (order_shared(e)) {
		if (!h->shares++)
			h->open_shared = open_section(k, e->target, e->thread, i, true);
		if (h->depth) /* a shared lock on what it holds exclusively never comes */
			smt_assert(c->smt, c->v->ev[i].pending ?
				   smt_not(c->smt, c->exec[c->w->local[i]]) : c->no);
		return;
	}
	if ((h->depth && !c->v->t->objects[e->target].recursive) || (!h->depth && h->shares))
		smt_assert(c->smt, c->v->ev[i].pending ?
			   smt_not(c->smt, c->exec[c->w->local[i]]) : c->no);
	if (!h->depth++)
		h->open = open_section(k, e->target, e->thread, i, false);
}

/* The same rule as the checker's: exclusive first, a foreign unlock is nothing. */
static void drop_lock(struct locks *k, struct hold *h, uint32_t i)
{
	if (h->depth) {
		if (!--h->depth)
			k->sections.v[h->open - 1].to = i;
	} else if (h->shares && !--h->shares) {
		k->sections.v[h->open_shared - 1].to = i;
	}
}

/* What is held at the end of the window: released after the thread's last event? */
static void end_section(struct locks *k, uint32_t number, uint32_t thread)
{
	struct encoding *c = k->c;
	struct section *s = &k->sections.v[number - 1];
	uint32_t last = c->v->first[thread + 1] - 1;

	if (c->w->end != ORDER_ONWARD)
		return;
	/* A thread that diverges ends at its branch. */
	if (c->w->diverge != SYM_NONE && c->v->conds[c->w->diverge].thread == thread)
		last = c->v->conds[c->w->diverge].after;
	else if (!order_goes_on(c->v, last))
		return;
	if (last != SYM_NONE && order_window_has(c->w, last)) {
		s->to = last;
		s->onward = true;
	}
}

static void thread_sections(struct locks *k, uint32_t thread, struct hold *holds)
{
	struct encoding *c = k->c;
	size_t nobjects = c->v->t->nobjects;

	memset(holds, 0, nobjects * sizeof *holds);
	for (size_t o = 0; o < nobjects; o++) {
		const struct order_check_object *s = order_check_object(c->w->start, o);
		enum sym_object_kind kind = c->v->t->objects[o].kind;

		if (kind != SYM_MUTEX && kind != SYM_RWLOCK)
			continue;
		holds[o].depth = s->owner == thread ? s->depth : 0;
		holds[o].shares = order_check_shares(c->w->start, o, thread);
		if (holds[o].depth)
			holds[o].open = open_section(k, o, thread, SYM_NONE, false);
		if (holds[o].shares)
			holds[o].open_shared = open_section(k, o, thread, SYM_NONE, true);
	}
	for (uint32_t i = c->v->first[thread]; i < c->v->first[thread + 1]; i++) {
		const struct sym_event *e = c->v->ev[i].e;

		if (!order_window_has(c->w, i))
			continue;
		if (order_acquires(e))
			take_lock(k, &holds[e->target], i);
		else if (e->op == SYM_UNLOCK)
			drop_lock(k, &holds[e->target], i);
	}
	for (size_t o = 0; o < nobjects; o++) {
		if (holds[o].depth)
			end_section(k, holds[o].open, thread);
		if (holds[o].shares)
			end_section(k, holds[o].open_shared, thread);
	}
}

/* A thread that has gone already (all committed) lets go in the start state. */
static void collect(struct locks *k)
{
	const struct sym_trace *t = k->c->v->t;
	struct hold *holds = xcalloc(t->nobjects + 1, sizeof *holds);

	for (uint32_t thread = 0; thread < t->nthreads; thread++)
		thread_sections(k, thread, holds);
	free(holds);
	k->first = xmalloc((t->nobjects + 1) * sizeof *k->first);
	memset(k->first, 0xff, (t->nobjects + 1) * sizeof *k->first);
	k->next = xcalloc(k->sections.n + 1, sizeof *k->next);
	for (uint32_t s = k->sections.n; s-- > 0;) {
		k->next[s] = k->first[k->sections.v[s].object];
		k->first[k->sections.v[s].object] = s;
	}
}

static Z3_ast happened(struct encoding *c, uint32_t i)
{
	Z3_ast x = c->exec[c->w->local[i]];

	return x ? x : c->yes;
}

/* a's section ends before b's begins. */
static Z3_ast ends_before(struct locks *k, const struct section *a, const struct section *b)
{
	struct encoding *c = k->c;

	if (a->to == SYM_NONE || b->from == SYM_NONE)
		return c->no;
	if (c->exec[c->w->local[a->to]])
		return smt_and(c->smt, happened(c, a->to), encode_before(c, a->to, b->from));
	return encode_before(c, a->to, b->from);
}

static void exclude(struct locks *k, const struct section *a, const struct section *b)
{
	struct encoding *c = k->c;
	Z3_ast lits[4];
	size_t n = 0;

	if (a->thread == b->thread || (a->shared && b->shared))
		return;
	lits[n++] = ends_before(k, a, b);
	lits[n++] = ends_before(k, b, a);
	if (a->from != SYM_NONE && c->v->ev[a->from].pending)
		lits[n++] = smt_not(c->smt, happened(c, a->from));
	if (b->from != SYM_NONE && c->v->ev[b->from].pending)
		lits[n++] = smt_not(c->smt, happened(c, b->from));
	smt_clause(c->smt, lits, n);
}

/*
 * All pairs but those the static order settles through a nearer section: when
 * a must begin before b, then it must before all later ones of b's thread, and
 * ending before b is enough for them.
 */
static void exclude_all(struct locks *k, uint32_t object)
{
	struct encoding *c = k->c;

	for (uint32_t a = k->first[object]; a != SYM_NONE; a = k->next[a]) {
		const struct section *x = &k->sections.v[a];
		uint32_t settled = SYM_NONE; /* thread whose later sections need no clause */

		for (uint32_t b = k->next[a]; b != SYM_NONE; b = k->next[b]) {
			const struct section *y = &k->sections.v[b];

			if (y->thread == settled)
				continue;
			exclude(k, x, y);
			if (x->from != SYM_NONE && y->from != SYM_NONE && !x->shared &&
			    !y->shared && encode_must(c, x->from, y->from))
				settled = y->thread;
		}
	}
}

/* Somebody holds it at event i. */
static void require_busy(struct locks *k, uint32_t i)
{
	struct encoding *c = k->c;
	const struct sym_event *e = c->v->ev[i].e;
	struct smt *s = c->smt;

	c->tmp.n = 0;
	for (uint32_t a = k->first[e->target]; a != SYM_NONE; a = k->next[a]) {
		const struct section *x = &k->sections.v[a];
		Z3_ast held;

		if (x->shared && e->op == SYM_TRYRDLOCK)
			continue;
		held = smt_bool(s);
		if (x->from != SYM_NONE) {
			smt_implies(s, held, encode_before(c, x->from, i));
			smt_implies(s, held, happened(c, x->from));
		}
		if (x->to != SYM_NONE)
			smt_or3(s, smt_not(s, held), encode_before(c, i, x->to),
				smt_not(s, happened(c, x->to)));
		vec_push(&c->tmp, held);
	}
	smt_clause(s, c->tmp.v, c->tmp.n);
}

void encode_locks(struct encoding *c)
{
	struct locks k = { .c = c };

	collect(&k);
	for (size_t o = 0; o < c->v->t->nobjects; o++)
		exclude_all(&k, o);
	for (uint32_t l = 0; l < c->w->n; l++) {
		const struct sym_event *e = c->v->ev[c->w->events[l]].e;

		if ((e->op == SYM_TRYLOCK || e->op == SYM_TRYRDLOCK) && !e->result)
			require_busy(&k, c->w->events[l]);
	}
	vec_free(&k.sections);
	free(k.first);
	free(k.next);
}

/* Who holds what when all but the pending events are done does not depend on the order. */
static bool lock_is_held(struct encoding *c, const struct sym_event *want)
{
	for (size_t t = 0; t < c->v->t->nthreads; t++) {
		const struct sym_object *o = &c->v->t->objects[want->target];
		uint32_t depth = o->owner == t, shares = 0;

		for (uint32_t i = c->v->first[t]; i < c->v->first[t + 1]; i++) {
			const struct sym_event *e = c->v->ev[i].e;

			if (e->target != want->target || c->v->ev[i].pending)
				continue;
			if (order_acquires(e))
				++*(order_shared(e) ? &shares : &depth);
			else if (e->op == SYM_UNLOCK && depth)
				depth--;
			else if (e->op == SYM_UNLOCK && shares)
				shares--;
		}
		if (depth && !(t == want->thread && o->recursive && !order_shared(want)))
			return true;
		if (shares && !order_shared(want))
			return true;
	}
	return false;
}

bool encode_stuck(struct encoding *c, uint32_t i)
{
	const struct sym_event *e = c->v->ev[i].e;
	int64_t count;

	switch (e->op) {
	case SYM_LOCK: case SYM_RDLOCK: case SYM_TRYLOCK: case SYM_TRYRDLOCK:
		return lock_is_held(c, e) || order_behind_writer(c->v, e);
	case SYM_JOIN: {
		uint32_t last = c->v->first[e->peer + 1];

		return last > c->v->first[e->peer] && c->v->ev[last - 1].e->op != SYM_EXIT;
	}
	case SYM_SEMWAIT:
		count = c->v->t->objects[e->target].count;
		for (uint32_t k = 0; k < c->v->n; k++) {
			const struct sym_event *x = c->v->ev[k].e;

			if (x->target != e->target || c->v->ev[k].pending)
				continue;
			count += x->op == SYM_SEMPOST;
			count -= x->op == SYM_SEMWAIT && x->result;
		}
		return count <= 0;
	case SYM_ONCE_BEGIN: case SYM_ONCE_END:
	case SYM_WAIT: case SYM_BARRIER_LEAVE:
		return true; /* depends on the order: said by those who encode them */
	default:
		return false;
	}
}
