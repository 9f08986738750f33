/*
 * Condition variables: a wake-up needs a broadcast, or a signal of its own,
 * between the moment it let go of the mutex and itself.
 */
#include "analyzer/schedule/encode.h"

#include <string.h>

/* Signal s goes to wait k. */
struct match {
	uint32_t wait, signal;
	Z3_ast lit;
};

struct conds {
	struct encoding *c;
	VEC(uint32_t) waits, signals, broadcasts; /* of one condition variable */
	VEC(struct match) matches;
	VEC(Z3_ast) tmp;
};

static const struct order_view_event *ev(const struct conds *k, uint32_t i)
{
	return &k->c->v->ev[i];
}

/* Where the wait let go of its mutex; SYM_NONE: before the window. */
static uint32_t began(const struct conds *k, uint32_t wait)
{
	uint32_t i = k->c->v->first[ev(k, wait)->e->thread] + ev(k, wait)->e->link;

	return order_window_has(k->c->w, i) ? i : SYM_NONE;
}

static void collect(struct conds *k, uint32_t object)
{
	k->waits.n = k->signals.n = k->broadcasts.n = k->matches.n = 0;
	for (uint32_t l = 0; l < k->c->w->n; l++) {
		uint32_t i = k->c->w->events[l];
		const struct sym_event *e = ev(k, i)->e;

		if (e->target != object)
			continue;
		if (e->op == SYM_WAIT)
			vec_push(&k->waits, i);
		else if (e->op == SYM_SIGNAL)
			vec_push(&k->signals, i);
		else if (e->op == SYM_BROADCAST)
			vec_push(&k->broadcasts, i);
	}
}

static Z3_ast not_happened(struct conds *k, uint32_t i)
{
	Z3_ast x = k->c->exec[k->c->w->local[i]];

	return x ? smt_not(k->c->smt, x) : k->c->no;
}

/* s between the wait's begin and its wake-up: a literal that implies it, or NULL. */
static Z3_ast between(struct conds *k, uint32_t wait, uint32_t s)
{
	uint32_t from = began(k, wait);
	Z3_ast lit;

	if (ev(k, s)->e->thread == ev(k, wait)->e->thread || encode_must(k->c, wait, s) ||
	    (from != SYM_NONE && encode_must(k->c, s, from)))
		return NULL;
	lit = smt_bool(k->c->smt);
	if (from != SYM_NONE)
		smt_implies(k->c->smt, lit, encode_before(k->c, from, s));
	smt_implies(k->c->smt, lit, encode_before(k->c, s, wait));
	return lit;
}

/* Somebody waits to the end: then who takes which signal matters to the last. */
static bool somebody_pends(const struct conds *k)
{
	for (size_t i = 0; i < k->waits.n; i++)
		if (ev(k, k->waits.v[i])->pending)
			return true;
	return false;
}

static void match_signals(struct conds *k, uint32_t wait, bool pends)
{
	for (size_t i = 0; i < k->signals.n; i++) {
		uint32_t s = k->signals.v[i], from = began(k, wait);
		Z3_ast lit = between(k, wait, s);

		if (!lit)
			continue;
		vec_push(&k->matches, (struct match){ wait, s, lit });
		vec_push(&k->tmp, lit);
		/* Woken by a broadcast before, it does not take a signal. */
		for (size_t b = 0; pends && b < k->broadcasts.n; b++) {
			uint32_t x = k->broadcasts.v[b];

			smt_or3(k->c->smt, smt_not(k->c->smt, lit),
				from != SYM_NONE ? encode_before(k->c, x, from) : k->c->no,
				encode_before(k->c, s, x));
		}
	}
}

/* Signals from before the window that wait for a taker; each suits those who began before it. */
static void match_tokens(struct conds *k, uint32_t wait, bool *free_pass)
{
	bool all = false;
	uint32_t n = 0;

	*free_pass = false;
	if (began(k, wait) != SYM_NONE)
		return;
	n = order_check_tokens(k->c->w->start, ev(k, wait)->e->target, ev(k, wait)->e->thread, &all);
	*free_pass = all;
	for (uint32_t i = 0; i < n; i++) {
		Z3_ast lit = smt_bool(k->c->smt);

		/* Counted from the newest, the i-th token is the same for every waiter. */
		vec_push(&k->matches, (struct match){ wait, SYM_NONE - 1 - i, lit });
		vec_push(&k->tmp, lit);
	}
}

static void wake_up(struct conds *k, uint32_t wait, bool pends)
{
	bool needs = ev(k, wait)->e->result == 1, free_pass;

	k->tmp.n = 0;
	match_signals(k, wait, pends);
	match_tokens(k, wait, &free_pass);
	if (pends)
		smt_at_most(k->c->smt, k->tmp.v, k->tmp.n, 1);
	for (size_t i = 0; i < k->broadcasts.n; i++) {
		Z3_ast lit = between(k, wait, k->broadcasts.v[i]);

		if (lit)
			vec_push(&k->tmp, lit);
	}
	if (ev(k, wait)->pending)
		vec_push(&k->tmp, not_happened(k, wait));
	if (needs && !free_pass)
		smt_clause(k->c->smt, k->tmp.v, k->tmp.n);
}

static void one_taker_each(struct conds *k)
{
	for (size_t i = 0; i < k->matches.n; i++) {
		uint32_t s = k->matches.v[i].signal;
		bool seen = false;

		for (size_t j = 0; j < i && !seen; j++)
			seen = k->matches.v[j].signal == s;
		if (seen)
			continue;
		k->tmp.n = 0;
		for (size_t j = i; j < k->matches.n; j++)
			if (k->matches.v[j].signal == s)
				vec_push(&k->tmp, k->matches.v[j].lit);
		smt_at_most(k->c->smt, k->tmp.v, k->tmp.n, 1);
	}
}

/* The failing run: each signal after the pending wait began went to somebody else. */
static void stays_asleep(struct conds *k, uint32_t wait)
{
	uint32_t from = began(k, wait);
	struct smt *smt = k->c->smt;

	for (size_t i = 0; i < k->signals.n; i++) {
		uint32_t s = k->signals.v[i];

		k->tmp.n = 0;
		vec_push(&k->tmp, smt_not(smt, k->c->fails));
		if (from != SYM_NONE)
			vec_push(&k->tmp, encode_before(k->c, s, from));
		for (size_t j = 0; j < k->matches.n; j++)
			if (k->matches.v[j].signal == s && !ev(k, k->matches.v[j].wait)->pending)
				vec_push(&k->tmp, k->matches.v[j].lit);
		smt_clause(smt, k->tmp.v, k->tmp.n);
	}
	for (size_t i = 0; i < k->broadcasts.n; i++)
		smt_or2(smt, smt_not(smt, k->c->fails), from == SYM_NONE ? k->c->no :
			encode_before(k->c, k->broadcasts.v[i], from));
}

void encode_conds(struct encoding *c)
{
	struct conds k = { .c = c };

	for (size_t o = 0; o < c->v->t->nobjects; o++) {
		bool pends;

		if (c->v->t->objects[o].kind != SYM_COND)
			continue;
		collect(&k, o);
		pends = somebody_pends(&k);
		for (size_t i = 0; i < k.waits.n; i++)
			wake_up(&k, k.waits.v[i], pends);
		one_taker_each(&k);
		for (size_t i = 0; i < k.waits.n; i++)
			if (ev(&k, k.waits.v[i])->pending)
				stays_asleep(&k, k.waits.v[i]);
	}
	vec_free(&k.waits);
	vec_free(&k.signals);
	vec_free(&k.broadcasts);
	vec_free(&k.matches);
	vec_free(&k.tmp);
}
