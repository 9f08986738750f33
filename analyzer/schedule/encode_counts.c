/*
 * Semaphores and barriers: how many came before.
 *
 * A semaphore's value never gets negative exactly when each successful wait
 * can be given an earlier post of its own, or one of the initial units.
 */
#include "analyzer/schedule/encode.h"

struct counts {
	struct encoding *c;
	VEC(uint32_t) waits, posts, fails, enters, leaves;
	VEC(Z3_ast) tmp, initial;
	VEC(Z3_ast) given; /* posts x waits; NULL where impossible */
	VEC(Z3_ast) lent;  /* waits x waits: the second has what the thread of the first gives back */
};

static const struct sym_event *op(const struct counts *k, uint32_t i)
{
	return k->c->v->ev[i].e;
}

static void collect(struct counts *k, uint32_t object)
{
	k->waits.n = k->posts.n = k->fails.n = k->enters.n = k->leaves.n = 0;
	for (uint32_t l = 0; l < k->c->w->n; l++) {
		uint32_t i = k->c->w->events[l];
		const struct sym_event *e = op(k, i);

		if (e->target != object)
			continue;
		switch (e->op) {
		case SYM_SEMPOST: vec_push(&k->posts, i); break;
		case SYM_SEMWAIT:
			if (e->result)
				vec_push(&k->waits, i);
			else
				vec_push(&k->fails, i);
			break;
		case SYM_BARRIER_ENTER: vec_push(&k->enters, i); break;
		case SYM_BARRIER_LEAVE: vec_push(&k->leaves, i); break;
		default: break;
		}
	}
}

static Z3_ast pending(const struct counts *k, uint32_t i)
{
	return k->c->exec[k->c->w->local[i]];
}

/* Does the thread still have at its end what it took here? */
static bool keeps(const struct counts *k, uint32_t i)
{
	const struct order_view *v = k->c->v;
	uint32_t end = v->first[op(k, i)->thread + 1];

	for (uint32_t n = i + 1; n < end; n++)
		if (v->ev[n].e->op == SYM_SEMPOST && v->ev[n].e->target == op(k, i)->target)
			return false;
	return true;
}

/* The wait has what another one took, whose thread goes on behind its last event. */
static void give_back(struct counts *k, uint32_t wait)
{
	struct encoding *c = k->c;

	for (size_t q = 0; q < k->waits.n; q++) {
		uint32_t thread = op(k, k->waits.v[q])->thread, last = c->v->first[thread + 1] - 1;
		Z3_ast lit = NULL;

		if (thread != op(k, wait)->thread && keeps(k, k->waits.v[q]) && c->w->end == ORDER_ONWARD && order_goes_on(c->v, last) &&
		    order_window_has(c->w, last) && !encode_must(c, wait, last)) {
			lit = smt_bool(c->smt);
			smt_implies(c->smt, lit, encode_before(c, last, wait));
			if (pending(k, last))
				smt_implies(c->smt, lit, pending(k, last));
			vec_push(&k->tmp, lit);
		}
		vec_push(&k->lent, lit);
	}
}

static void give_units(struct counts *k, uint32_t object, int64_t count)
{
	struct smt *s = k->c->smt;

	k->initial.n = k->given.n = k->lent.n = 0;
	for (size_t w = 0; w < k->waits.n; w++) {
		uint32_t wait = k->waits.v[w];

		k->tmp.n = 0;
		for (size_t p = 0; p < k->posts.n; p++) {
			uint32_t post = k->posts.v[p];
			Z3_ast lit = NULL;

			if (!encode_must(k->c, wait, post)) {
				lit = smt_bool(s);
				smt_implies(s, lit, encode_before(k->c, post, wait));
				vec_push(&k->tmp, lit);
			}
			vec_push(&k->given, lit);
		}
		if (k->c->v->lent[object])
			give_back(k, wait);
		if (count > 0) {
			vec_push(&k->initial, smt_bool(s));
			vec_push(&k->tmp, k->initial.v[k->initial.n - 1]);
		}
		if (pending(k, wait))
			vec_push(&k->tmp, smt_not(s, pending(k, wait)));
		smt_clause(s, k->tmp.v, k->tmp.n);
	}
	for (size_t p = 0; p < k->posts.n; p++) {
		k->tmp.n = 0;
		for (size_t w = 0; w < k->waits.n; w++)
			if (k->given.v[w * k->posts.n + p])
				vec_push(&k->tmp, k->given.v[w * k->posts.n + p]);
		smt_at_most(s, k->tmp.v, k->tmp.n, 1);
	}
	for (size_t q = 0; k->lent.n && q < k->waits.n; q++) {
		k->tmp.n = 0;
		for (size_t w = 0; w < k->waits.n; w++)
			if (k->lent.v[w * k->waits.n + q])
				vec_push(&k->tmp, k->lent.v[w * k->waits.n + q]);
		smt_at_most(s, k->tmp.v, k->tmp.n, 1);
	}
	if (count > 0)
		smt_at_most(s, k->initial.v, k->initial.n, count);
}

static void at_least(struct counts *k, Z3_ast when, int64_t n)
{
	struct smt *s = k->c->smt;
	Z3_ast enough;

	if (n <= 0)
		return;
	if ((size_t)n > k->tmp.n)
		enough = k->c->no;
	else
		enough = Z3_mk_atleast(s->z, k->tmp.n, k->tmp.v, n);
	if (when)
		smt_implies(s, when, enough);
	else
		smt_assert(s, enough);
}

/* It found zero: waits before it and posts after it make up for all units. */
static void found_zero(struct counts *k, uint32_t i, int64_t count)
{
	struct smt *s = k->c->smt;

	k->tmp.n = 0;
	for (size_t w = 0; w < k->waits.n; w++) {
		Z3_ast lit = encode_before(k->c, k->waits.v[w], i);
		Z3_ast x = pending(k, k->waits.v[w]);

		vec_push(&k->tmp, x ? smt_and(s, x, lit) : lit);
	}
	for (size_t p = 0; p < k->posts.n; p++)
		vec_push(&k->tmp, encode_before(k->c, i, k->posts.v[p]));
	at_least(k, pending(k, i), count + (int64_t)k->posts.n);
}

static void semaphore(struct counts *k, uint32_t object)
{
	int64_t count = order_check_object(k->c->w->start, object)->count;

	if ((int64_t)k->waits.n > count)
		give_units(k, object, count);
	for (size_t f = 0; f < k->fails.n; f++)
		found_zero(k, k->fails.v[f], count);
}

static void arrivals_before(struct counts *k, uint32_t i)
{
	k->tmp.n = 0;
	for (size_t e = 0; e < k->enters.n; e++)
		if (k->enters.v[e] != i)
			vec_push(&k->tmp, encode_before(k->c, k->enters.v[e], i));
}

/* Arrivals are told apart by rank, so every two of them must be ordered. */
static void order_arrivals(struct counts *k)
{
	for (size_t a = 0; a < k->enters.n; a++)
		for (size_t b = 0; b < a; b++)
			smt_or2(k->c->smt,
				encode_before(k->c, k->enters.v[a], k->enters.v[b]),
				encode_before(k->c, k->enters.v[b], k->enters.v[a]));
}

/* A literal that is true when at least n arrivals of the window precede i. */
static Z3_ast rank_at_least(struct counts *k, uint32_t i, int64_t n)
{
	if (n <= 0)
		return k->c->yes;
	arrivals_before(k, i);
	if ((size_t)n > k->tmp.n)
		return k->c->no;
	return Z3_mk_atleast(k->c->smt->z, k->tmp.n, k->tmp.v, n);
}

/*
 * The arrival with j others before it belongs to round j / size and leaves
 * when that round is full. done: arrivals before the window.
 */
static void leave(struct counts *k, uint32_t i, int64_t size, int64_t done)
{
	struct smt *s = k->c->smt;
	uint32_t enter = k->c->v->first[op(k, i)->thread] + op(k, i)->link;
	int64_t total = done + (int64_t)k->enters.n;
	Z3_ast when = pending(k, i);

	if (!order_window_has(k->c->w, enter)) {
		int64_t round = order_check_round(k->c->w->start, op(k, i)->thread);

		arrivals_before(k, i);
		at_least(k, when, (round + 1) * size - done);
		return;
	}
	for (int64_t round = done / size; round * size < total; round++) {
		Z3_ast in_round = rank_at_least(k, enter, round * size - done);
		Z3_ast full = rank_at_least(k, i, (round + 1) * size - done);

		smt_or3(s, smt_not(s, in_round), full, when ? smt_not(s, when) : k->c->no);
	}
	if (!k->c->v->ev[i].pending)
		return;
	/* Stuck: it arrived in the round that never filled. */
	smt_implies(s, k->c->fails, rank_at_least(k, enter, total / size * size - done));
	if (total % size == 0)
		smt_assert(s, smt_not(s, k->c->fails));
}

void encode_counts(struct encoding *c)
{
	struct counts k = { .c = c };

	for (size_t o = 0; o < c->v->t->nobjects; o++) {
		const struct sym_object *x = &c->v->t->objects[o];

		if (x->kind != SYM_SEM && x->kind != SYM_BARRIER)
			continue;
		collect(&k, o);
		if (x->kind == SYM_SEM)
			semaphore(&k, o);
		if (k.leaves.n)
			order_arrivals(&k);
		for (size_t i = 0; i < k.leaves.n; i++)
			leave(&k, k.leaves.v[i], x->count, order_check_object(c->w->start, o)->count);
	}
	vec_free(&k.waits);
	vec_free(&k.posts);
	vec_free(&k.fails);
	vec_free(&k.enters);
	vec_free(&k.leaves);
	vec_free(&k.tmp);
	vec_free(&k.initial);
	vec_free(&k.given);
	vec_free(&k.lent);
}
