/*
 * Small random concurrent programs as symbolic traces, for tests that judge
 * them by brute force (brute.h). The seed decides everything.
 */
#ifndef CSCHED_TESTS_RANDOM_TRACE_H
#define CSCHED_TESTS_RANDOM_TRACE_H

#include "analyzer/symtrace/symtrace.h"
#include "common/vec.h"
#include "tests/lib/brute.h"

enum kind {
	RACES, ATOMICS, LOCKS, RWLOCKS, SEMS, WAITS, BARRIERS, MIXED, DEADLOCKS, TIMES, BUFFERS, KINDS
};

static const char *const kind_names[KINDS] = {
	"races", "atomics", "locks", "rwlocks", "semaphores", "waits", "barriers and once",
	"mixed", "deadlocks", "time stamps", "store buffering",
};

static uint64_t state;

static unsigned rnd(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 20) % n;
}

struct maker {
	struct sym_trace *t;
	enum kind kind;
	expr_id syms[BT][BE]; /* read so far, by thread */
	unsigned nsyms[BT];
	unsigned budget, symbols;
	bool once; /* somebody runs the initialiser already */
};

static uint32_t put(struct maker *m, unsigned t, enum sym_op op, uint32_t target, int result)
{
	struct sym_event e;

	sym_event_init(&e, op);
	e.target = target;
	e.result = result;
	if (m->budget)
		m->budget--;
	return sym_add_event(m->t, t, &e);
}

static expr_id value(struct maker *m, unsigned t)
{
	struct expr_pool *p = m->t->pool;

	if (m->nsyms[t] && rnd(2))
		return expr_binary(p, EX_ADD, m->syms[t][rnd(m->nsyms[t])],
				   expr_const(p, 8, rnd(3)));
	return expr_const(p, 8, rnd(3));
}

static void access_as(struct maker *m, unsigned t, enum sym_op op)
{
	struct sym_event e;
	char name[16];

	sym_event_init(&e, op);
	/* Mostly the first: what is not contended tests nothing. */
	e.target = rnd(3) ? 0 : rnd(m->t->nvars);
	if (op != SYM_WRITE) {
		snprintf(name, sizeof name, "r%u", m->symbols++);
		e.symbol = expr_symbol(m->t->pool, 8, name);
		m->syms[t][m->nsyms[t]++] = e.symbol;
	}
	if (op == SYM_WRITE || (op == SYM_RMW && rnd(5)))
		e.value = value(m, t);
	if (op == SYM_READ && rnd(20) == 0) {
		e.has_seen = e.fixed = true;
		e.seen = rnd(3);
	}
	if (m->budget)
		m->budget--;
	sym_add_event(m->t, t, &e);
}

static void access(struct maker *m, unsigned t)
{
	static const enum sym_op ops[] = { SYM_READ, SYM_WRITE, SYM_WRITE, SYM_RMW, SYM_RMW };

	access_as(m, t, ops[rnd(m->kind == ATOMICS || m->kind == MIXED ? 5 : 3)]);
}

static expr_id condition(struct maker *m, unsigned t)
{
	static const enum expr_op ops[] = { EX_EQ, EX_ULT, EX_ULE };
	struct expr_pool *p = m->t->pool;
	expr_id a, b, c;

	if (!m->nsyms[t])
		return expr_bool(p, true);
	a = m->syms[t][rnd(m->nsyms[t])];
	b = rnd(3) ? expr_const(p, 8, rnd(3)) : m->syms[t][rnd(m->nsyms[t])];
	c = expr_binary(p, ops[rnd(3)], a, b);
	return rnd(2) ? c : expr_unary(p, EX_BNOT, c);
}

static void branch(struct maker *m, unsigned t)
{
	struct sym_cond c = { .stack = SYM_NONE };
	unsigned from = t;

	if (!m->t->threads[t].nevents)
		return;
	/* Now and then on what another thread has read, as other tools write them. */
	if (rnd(12) == 0)
		from = rnd(m->t->nthreads);
	c.after = m->t->threads[t].nevents - 1;
	c.cond = condition(m, from);
	sym_add_cond(m->t, t, &c);
}

static void section(struct maker *m, unsigned t, unsigned lock, bool rw)
{
	int how = rnd(6);
	bool taken = true;

	if (rw)
		put(m, t, rnd(2) ? SYM_RDLOCK : SYM_LOCK, lock, 1);
	else if (how == 0)
		put(m, t, SYM_TRYLOCK, lock, taken = rnd(2));
	else
		put(m, t, SYM_LOCK, lock, 1);
	if (rw && rnd(8) == 0) {
		put(m, t, rnd(2) ? SYM_TRYRDLOCK : SYM_TRYLOCK, lock, 0);
	}
	if (m->t->objects[lock].recursive && taken && rnd(2) && m->budget > 3) {
		put(m, t, SYM_LOCK, lock, 1);
		access(m, t);
		put(m, t, SYM_UNLOCK, lock, 1);
	}
	if (m->budget)
		access(m, t);
	if (m->budget > 1 && rnd(2))
		access(m, t);
	if (taken && rnd(10))
		put(m, t, SYM_UNLOCK, lock, 1);
}

/* lock; release, sleep, wake, lock again; unlock */
static void sleep_section(struct maker *m, unsigned t)
{
	struct sym_event e;

	put(m, t, SYM_LOCK, 0, 1);
	sym_event_init(&e, SYM_WAIT);
	e.link = put(m, t, SYM_UNLOCK, 0, 1);
	e.target = 3;
	e.result = rnd(6) ? 1 : rnd(2) * 2;
	m->budget -= m->budget > 0;
	sym_add_event(m->t, t, &e);
	put(m, t, SYM_LOCK, 0, 1);
	if (m->budget)
		access(m, t);
	put(m, t, SYM_UNLOCK, 0, 1);
}

static void piece(struct maker *m, unsigned t)
{
	enum kind k = m->kind;
	struct sym_event e;
	uint32_t enter;

	if (k == MIXED)
		k = rnd(BARRIERS + 1);
	if (k == TIMES)
		k = rnd(2) ? RACES : LOCKS;
	switch (rnd(3) ? k : RACES) {
	case LOCKS: section(m, t, rnd(2), false); return;
	case RWLOCKS: section(m, t, 2, true); return;
	case SEMS:
		if (rnd(2))
			put(m, t, SYM_SEMPOST, 4, 1);
		else
			put(m, t, SYM_SEMWAIT, 4, rnd(5) > 0);
		access(m, t);
		return;
	case WAITS:
		if (rnd(3) == 0)
			sleep_section(m, t);
		else
			put(m, t, rnd(4) ? SYM_SIGNAL : SYM_BROADCAST, 3, 1);
		access(m, t);
		return;
	case BARRIERS:
		if (rnd(2)) {
			enter = put(m, t, SYM_BARRIER_ENTER, 5, 1);
			sym_event_init(&e, SYM_BARRIER_LEAVE);
			e.target = 5;
			e.link = enter;
			sym_add_event(m->t, t, &e);
		} else {
			put(m, t, SYM_ONCE_BEGIN, 6, !m->once);
			m->once = true;
			access(m, t);
			put(m, t, SYM_ONCE_END, 6, 1);
		}
		access(m, t);
		return;
	default: access(m, t); return;
	}
}

/* The thread reads once more and fails, or not, on what it has read. */
static void fail_in(struct maker *m, unsigned t)
{
	struct sym_failure *f = &m->t->failure;
	struct expr_pool *p = m->t->pool;

	f->kind = SYM_FAIL_ASSERT;
	f->thread = t;
	access_as(m, t, SYM_READ);
	f->condition = expr_binary(p, EX_EQ, m->syms[t][m->nsyms[t] - 1],
				   expr_const(p, 8, rnd(3)));
	if (rnd(3) == 0)
		f->condition = expr_unary(p, EX_BNOT, f->condition);
	if (rnd(4) == 0 && m->nsyms[t] > 1)
		f->condition = expr_binary(p, EX_BAND, f->condition, condition(m, t));
	put(m, t, SYM_FAIL, SYM_NONE, 1);
}

static void fail_somewhere(struct maker *m)
{
	unsigned t = rnd(m->t->nthreads);

	fail_in(m, t);
}

/* The last event of one to three threads never completed. */
static void block_somewhere(struct maker *m)
{
	struct sym_failure *f = &m->t->failure;
	unsigned n = 1 + rnd(m->t->nthreads);

	f->kind = SYM_FAIL_DEADLOCK;
	f->blocked = xcalloc(n, sizeof *f->blocked);
	for (unsigned t = 0; t < n; t++) {
		struct sym_event e;
		unsigned what = rnd(8);

		if (what < 5) { /* mostly the lock its neighbour may hold */
			put(m, t, SYM_LOCK, rnd(4) ? (t + 1) % 2 : rnd(2), 1);
		} else if (what == 5) {
			put(m, t, SYM_SEMWAIT, 4, 1);
		} else {
			put(m, t, SYM_LOCK, 0, 1);
			sym_event_init(&e, SYM_WAIT);
			e.link = put(m, t, SYM_UNLOCK, 0, 1);
			e.target = 3;
			sym_add_event(m->t, t, &e);
		}
		f->blocked[f->nblocked].thread = t;
		f->blocked[f->nblocked++].event = m->t->threads[t].nevents - 1;
	}
}

static void deadlock_piece(struct maker *m, unsigned t)
{
	switch (rnd(8)) {
	case 0: section(m, t, rnd(2), false); break;
	case 1: put(m, t, rnd(3) ? SYM_SIGNAL : SYM_BROADCAST, 3, 1); break;
	case 2: put(m, t, SYM_SEMPOST, 4, 1); break;
	case 3: sleep_section(m, t); break;
	default: put(m, t, SYM_LOCK, t % 2, 1); break;
	}
}

static void stamp(struct maker *m)
{
	for (unsigned t = 0; t < m->t->nthreads; t++) {
		uint64_t now = rnd(4);

		for (unsigned i = 0; i < m->t->threads[t].nevents; i++) {
			now += 1 + rnd(6);
			m->t->threads[t].events[i].time_lo = now;
			m->t->threads[t].events[i].time_hi = now + 8;
		}
	}
}

/* Each thread writes here and reads there; it fails when they all missed each other. */
static void store_buffering(struct maker *m, unsigned nthreads)
{
	struct expr_pool *p = m->t->pool;
	struct sym_event e;
	expr_id all = expr_bool(p, true);

	for (unsigned t = 0; t < nthreads; t++) {
		for (unsigned k = 0; k < (nthreads == 2 && rnd(3) == 0 ? 2u : 1u); k++) {
			sym_event_init(&e, SYM_WRITE);
			e.target = rnd(8) ? t % m->t->nvars : rnd(m->t->nvars);
			e.value = expr_const(p, 8, 1 + k);
			sym_add_event(m->t, t, &e);
		}
		if (rnd(5) == 0)
			put(m, t, SYM_FENCE, SYM_NONE, 1);
		else if (rnd(8) == 0)
			put(m, t, SYM_LOCK, 0, 1);
		access_as(m, t, SYM_READ);
		m->t->threads[t].events[m->t->threads[t].nevents - 1].target =
			rnd(8) ? (t + 1) % m->t->nvars : rnd(m->t->nvars);
		all = expr_binary(p, EX_BAND, all,
				  expr_binary(p, EX_EQ, m->syms[t][0], expr_const(p, 8, rnd(10) == 0)));
		if (nthreads == 2 && rnd(3) == 0)
			access(m, t);
	}
	m->t->failure.kind = SYM_FAIL_ASSERT;
	m->t->failure.thread = rnd(nthreads);
	m->t->failure.condition = all;
	put(m, m->t->failure.thread, SYM_FAIL, SYM_NONE, 1);
}

static void add_world(struct maker *m)
{
	static const enum sym_object_kind kinds[] = { SYM_MUTEX, SYM_MUTEX, SYM_RWLOCK, SYM_COND,
						      SYM_SEM, SYM_BARRIER, SYM_ONCE };

	for (unsigned i = 0; i < 2 + rnd(2); i++)
		sym_add_var(m->t, &(struct sym_var){ .name = "v", .width = 8, .has_init = true,
						     .init = expr_const(m->t->pool, 8, 0) });
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		sym_add_object(m->t, &(struct sym_object){ .name = "o", .kind = kinds[i],
			.owner = SYM_NONE, .recursive = i == 1,
			.count = kinds[i] == SYM_BARRIER ? 2 : kinds[i] == SYM_SEM ? rnd(2) : 0 });
}

/* Store buffers multiply the interleavings: those programs are a little smaller. */
static struct sym_trace *make(enum kind kind, bool tso)
{
	struct maker m = { .t = sym_trace_new(), .kind = kind };
	unsigned nthreads = 2 + rnd(tso || kind == BUFFERS ? 2 : 3);
	bool forks = rnd(4) == 0 && kind != DEADLOCKS;

	m.budget = tso && kind == RACES ? 6 : kind == DEADLOCKS || nthreads == 4 ? 7 : tso ? 8 : 9;
	add_world(&m);
	for (unsigned t = 0; t < nthreads; t++)
		sym_add_thread(m.t, (const char *[]){ "T0", "T0.1", "T0.2", "T0.3" }[t], NULL);
	if (kind == BUFFERS) {
		store_buffering(&m, nthreads);
		return m.t;
	}
	while (m.budget > 0) {
		unsigned t = rnd(nthreads);

		if (m.t->threads[t].nevents > 8)
			break;
		if (kind == DEADLOCKS)
			deadlock_piece(&m, t);
		else
			piece(&m, t);
		if (rnd(6) == 0)
			branch(&m, t);
	}
	if (forks && m.t->threads[0].nevents) {
		uint32_t i = put(&m, 0, SYM_FORK, SYM_NONE, 1);

		m.t->threads[0].events[i].peer = nthreads - 1;
		if (rnd(2)) {
			i = put(&m, 0, SYM_JOIN, SYM_NONE, 1);
			m.t->threads[0].events[i].peer = nthreads - 1;
			put(&m, nthreads - 1, SYM_EXIT, SYM_NONE, 1);
		}
	}
	if (kind == DEADLOCKS) {
		block_somewhere(&m);
	} else if (m.t->threads[nthreads - 1].nevents &&
		   m.t->threads[nthreads - 1].events[m.t->threads[nthreads - 1].nevents - 1].op ==
			   SYM_EXIT) {
		fail_in(&m, 0);
	} else {
		fail_somewhere(&m);
	}
	if (kind == TIMES)
		stamp(&m);
	return m.t;
}

#endif
