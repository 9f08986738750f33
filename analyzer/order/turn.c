/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An order with some pairs turned round: events are taken as they stood; one that has to wait for its partner holds up its
 * thread, and with it whatever must stay behind it.
 */
#include "analyzer/order/turn.h"

#include "common/vec.h"

#include <string.h>

/* Looks at waiting events, all in all: what needs more is no order that anybody could follow. */
#define MOST_LOOKS 20000000u
/* Times that a thread is held up at an earlier lock than before. */
#define MOST_RETREATS 8

size_t order_turned(const struct sym_trace *t, const struct sched_order *was, const struct sched_order *is, size_t from,
		    size_t to, struct sched_edge *out, size_t most)
{
	struct order_places there = order_places_of(t, is);
	size_t n = 0;

	for (size_t i = from; i < to && i < was->n && n < most; i++) {
		struct sched_ref z = was->refs[i];

		if (!order_is_access(order_event(t, z)))
			continue;
		for (size_t k = i + 1; k < was->n && n < most; k++) {
			struct sched_ref y = was->refs[k];
			size_t at = order_place(&there, y);

			if (y.thread != z.thread && at != ORDER_NOWHERE && order_place(&there, z) > at &&
			    order_conflict(order_event(t, z), order_event(t, y)))
				out[n++] = (struct sched_edge){ z, y };
		}
	}
	order_places_free(&there);
	return n;
}

struct holder {
	uint32_t owner, depth, readers;
};

struct turn {
	const struct sym_trace *t;
	const struct sched_order *was;
	struct order_places places;
	const struct sched_edge *pairs;
	size_t n;
	const bool *marked;
	uint32_t *hold;       /* by pair: its thread stops before this event, until the other one was */
	bool *there;          /* by place in `was`: emitted */
	bool *stopped;        /* by thread: while looking through those that wait */
	struct holder *locks; /* by object */
	VEC(size_t) waiting;  /* places in `was` */
	struct sched_order *out;
	uint64_t looks;
};

static const struct sym_event *event_at(const struct turn *x, size_t place)
{
	return order_event(x->t, x->was->refs[place]);
}

static bool is_lock(const struct turn *x, const struct sym_event *e)
{
	return !order_is_access(e) && e->target != SYM_NONE &&
	       (x->t->objects[e->target].kind == SYM_MUTEX || x->t->objects[e->target].kind == SYM_RWLOCK);
}

bool order_turn_implies(const struct sched_edge *a, const struct sched_edge *b)
{
	return a->before.thread == b->before.thread && a->before.index <= b->before.index &&
	       a->after.thread == b->after.thread && a->after.index >= b->after.index;
}

static bool is_turned(const struct turn *x, size_t before, size_t after)
{
	const struct sched_edge pair = { x->was->refs[before], x->was->refs[after] };

	for (size_t i = 0; i < x->n; i++)
		if (x->marked[i] && order_turn_implies(&x->pairs[i], &pair))
			return true;
	return false;
}

static bool may_acquire(const struct turn *x, const struct sym_event *e)
{
	const struct holder *h = &x->locks[e->target];
	bool shared = order_shared(e);

	if (shared)
		return h->owner == SYM_NONE || h->owner == e->thread;
	return (h->owner == SYM_NONE && !h->readers) || h->owner == e->thread;
}

/* d, which stood before e, has not been: must e wait for it? */
static bool must_follow(const struct turn *x, size_t d, size_t e)
{
	const struct sym_event *a = event_at(x, d), *b = event_at(x, e);

	if ((a->op == SYM_FORK && a->peer == b->thread) || (b->op == SYM_JOIN && b->peer == a->thread))
		return true;
	return order_conflict(a, b) && !is_lock(x, a) && !is_turned(x, d, e);
}

static bool is_held_up(const struct turn *x, struct sched_ref r)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->marked[i] && x->pairs[i].before.thread == r.thread && r.index >= x->hold[i] &&
		    !x->there[order_place(&x->places, x->pairs[i].after)])
			return true;
	return false;
}

static bool can_be(struct turn *x, size_t place, size_t nwaiting)
{
	const struct sym_event *e = event_at(x, place);

	x->looks += nwaiting + x->n + 1;
	if (x->stopped[e->thread] || is_held_up(x, x->was->refs[place]))
		return false;
	if (is_lock(x, e) && order_acquires(e) && !may_acquire(x, e))
		return false;
	for (size_t i = 0; i < nwaiting; i++)
		if (must_follow(x, x->waiting.v[i], place))
			return false;
	return true;
}

/* Behind its last recorded event a thread goes on, and lets go of what it holds. */
static void go_on(struct turn *x, uint32_t thread)
{
	for (size_t i = 0; i < x->t->nobjects; i++)
		if (x->locks[i].owner == thread)
			x->locks[i] = (struct holder){ .owner = SYM_NONE, .readers = x->locks[i].readers };
}

static void emit(struct turn *x, size_t place)
{
	const struct sym_event *e = event_at(x, place);
	struct holder *h = is_lock(x, e) ? &x->locks[e->target] : NULL;
	bool shared = order_shared(e);

	x->out->refs[x->out->n++] = x->was->refs[place];
	x->there[place] = true;
	if (h && order_acquires(e)) {
		h->readers += shared;
		h->owner = shared ? h->owner : e->thread;
		h->depth += !shared;
	} else if (h && e->op == SYM_UNLOCK) {
		if (h->owner == e->thread && h->depth && !--h->depth)
			h->owner = SYM_NONE;
		else if (h->owner != e->thread && h->readers)
			h->readers--;
	}
	if (e->index + 1 == x->t->threads[e->thread].nevents)
		go_on(x, e->thread);
}

/* What waits, from the front: the first that can be. False: none can. */
static bool emit_waiting(struct turn *x)
{
	size_t found = SIZE_MAX;

	memset(x->stopped, 0, x->t->nthreads);
	for (size_t i = 0; i < x->waiting.n && found == SIZE_MAX; i++) {
		if (can_be(x, x->waiting.v[i], i))
			found = i;
		else
			x->stopped[event_at(x, x->waiting.v[i])->thread] = true;
	}
	if (found == SIZE_MAX)
		return false;
	emit(x, x->waiting.v[found]);
	memmove(x->waiting.v + found, x->waiting.v + found + 1, (x->waiting.n - found - 1) * sizeof *x->waiting.v);
	x->waiting.n--;
	return true;
}

static bool go_through(struct turn *x)
{
	for (size_t i = 0; i < x->was->n; i++) {
		while (x->waiting.n && x->looks < MOST_LOOKS && emit_waiting(x))
			;
		if (x->looks >= MOST_LOOKS)
			return false;
		/* emit_waiting() has left behind which threads stand still. */
		if (can_be(x, i, x->waiting.n))
			emit(x, i);
		else
			vec_push(&x->waiting, i);
		memset(x->stopped, 0, x->t->nthreads);
	}
	while (x->waiting.n && emit_waiting(x))
		;
	return !x->waiting.n;
}

static void begin(struct turn *x)
{
	x->out->n = 0;
	x->waiting.n = 0;
	memset(x->there, 0, x->was->n);
	memset(x->stopped, 0, x->t->nthreads);
	for (size_t i = 0; i < x->t->nobjects; i++)
		x->locks[i] = (struct holder){ .owner = x->t->objects[i].owner,
					       .depth = x->t->objects[i].owner != SYM_NONE };
}

/* Pairs that could not be turned, their thread holding a lock: it stops before that. False: there is none. */
static bool retreat(struct turn *x)
{
	bool any = false;

	for (size_t i = 0; i < x->n; i++) {
		uint32_t lock = x->marked[i] ? order_innermost_lock(x->t, x->pairs[i].before.thread, x->hold[i]) : SYM_NONE;

		if (lock == SYM_NONE || x->there[order_place(&x->places, x->pairs[i].after)])
			continue;
		x->hold[i] = lock;
		any = true;
	}
	return any;
}

static size_t end_of(const struct turn *x)
{
	struct order_places p = order_places_of(x->t, x->out);
	size_t end = 0;

	for (size_t i = 0; i < x->n; i++)
		if (x->marked[i] && order_place(&p, x->pairs[i].before) >= end)
			end = order_place(&p, x->pairs[i].before) + 1;
	order_places_free(&p);
	return end;
}

bool order_turn(const struct sym_trace *t, const struct sched_order *was, const struct sched_edge *pairs, size_t n,
		const bool *marked, struct sched_order *out, size_t *end)
{
	struct turn x = { .t = t, .was = was, .places = order_places_of(t, was), .pairs = pairs, .n = n, .marked = marked,
			  .hold = xcalloc(n + 1, sizeof *x.hold), .there = xcalloc(was->n + 1, 1),
			  .stopped = xcalloc(t->nthreads + 1, 1), .locks = xcalloc(t->nobjects + 1, sizeof *x.locks),
			  .out = out };
	bool good = false;

	*out = (struct sched_order){ .refs = xcalloc(was->n + 1, sizeof *out->refs) };
	for (size_t i = 0; i < n; i++)
		x.hold[i] = pairs[i].before.index;
	for (int i = 0; i <= MOST_RETREATS && !good; i++) {
		begin(&x);
		good = go_through(&x);
		if (!good && !retreat(&x))
			break;
	}
	if (good)
		*end = end_of(&x);
	else
		sched_order_free(out);
	order_places_free(&x.places);
	vec_free(&x.waiting);
	free(x.hold);
	free(x.there);
	free(x.stopped);
	free(x.locks);
	return good;
}
