/*
 * Brute force for small symbolic traces: every interleaving, executed by a
 * machine of its own (no code shared with analyzer/schedule). Signals choose
 * whom they wake, store buffers choose when they drain: all choices are tried.
 */
#ifndef CSCHED_TESTS_BRUTE_H
#define CSCHED_TESTS_BRUTE_H

#include "analyzer/schedule/schedule.h"

#include <string.h>

#define BT 4  /* threads */
#define BE 16 /* events */
#define BO 8  /* objects, variables */

struct brute_state {
	uint8_t pc[BT];           /* next event to issue */
	uint8_t buf[BT][BE];      /* TSO: issued writes not yet visible */
	uint8_t nbuf[BT];
	uint64_t mem[BO], vals[BE];
	bool read[BE];
	int8_t owner[BO];
	uint8_t depth[BO], readers[BO][BT];
	int count[BO], round[BT];
	int8_t asleep[BT];        /* cond it waits on, or -1 */
	bool woken[BT];
	int8_t once[BO], once_by[BO];
	uint64_t latest;
	int8_t at[BT][BE];        /* place in the order, or -1 */
	int n;
	int went_on;
};

struct brute {
	const struct sym_trace *t;
	bool tso, onward, times;
	const struct sched_order *forced; /* only this order, or NULL */
	/* Called at the end of every feasible run; true stops. */
	bool (*done)(struct brute *b, const struct brute_state *s);
	void *arg;
	uint64_t steps, limit;
};

static inline bool brute_pending(const struct brute *b, unsigned t, unsigned i)
{
	for (size_t k = 0; k < b->t->failure.nblocked; k++)
		if (b->t->failure.blocked[k].thread == t && b->t->failure.blocked[k].event == i)
			return true;
	return false;
}

static inline bool brute_conds(const struct brute *b, const struct brute_state *s, bool all)
{
	for (size_t t = 0; t < b->t->nthreads; t++) {
		for (size_t k = 0; k < b->t->threads[t].nconds; k++) {
			const struct sym_cond *c = &b->t->threads[t].conds[k];

			if (!all) {
				if (c->after == SYM_NONE || s->at[t][c->after] < 0)
					continue;
				/* Only when every symbol a thread could have read is there. */
				bool known = true;
				for (size_t q = 0; q < expr_symbol_count(b->t->pool); q++)
					known &= s->read[q];
				if (!known)
					continue;
			}
			if (!expr_eval(b->t->pool, c->cond, s->vals))
				return false;
		}
	}
	return true;
}

static inline bool brute_run(struct brute *b, const struct brute_state *s);

static inline bool brute_lock_free(const struct brute *b, const struct brute_state *s,
				   const struct sym_event *e, bool shared)
{
	if (shared)
		return s->owner[e->target] < 0;
	if (s->owner[e->target] == (int)e->thread)
		return b->t->objects[e->target].recursive;
	for (unsigned t = 0; t < BT; t++)
		if (s->readers[e->target][t])
			return false;
	return s->owner[e->target] < 0;
}

static inline bool brute_held(const struct brute_state *s, uint32_t o, bool only_writer)
{
	bool held = s->owner[o] >= 0;

	for (unsigned t = 0; t < BT && !only_writer; t++)
		held |= s->readers[o][t] > 0;
	return held;
}

/* Can a blocked event go on in this final state? */
static inline bool brute_can(const struct brute *b, const struct brute_state *s,
			     const struct sym_event *e)
{
	switch (e->op) {
	case SYM_LOCK: return brute_lock_free(b, s, e, false);
	case SYM_RDLOCK: return brute_lock_free(b, s, e, true);
	case SYM_SEMWAIT: return s->count[e->target] > 0;
	case SYM_WAIT: return s->woken[e->thread];
	case SYM_BARRIER_LEAVE:
		return s->count[e->target] >=
		       (s->round[e->thread] + 1) * b->t->objects[e->target].count;
	case SYM_JOIN: {
		const struct sym_thread *p = &b->t->threads[e->peer];

		return s->pc[e->peer] == p->nevents && p->events[p->nevents - 1].op == SYM_EXIT;
	}
	default: return true;
	}
}

static inline bool brute_fails(const struct brute *b, const struct brute_state *s)
{
	const struct sym_failure *f = &b->t->failure;

	if (!f->nblocked)
		return !f->condition || expr_eval(b->t->pool, f->condition, s->vals);
	if (s->went_on)
		return false;
	for (size_t k = 0; k < f->nblocked; k++)
		if (brute_can(b, s, &b->t->threads[f->blocked[k].thread].events[f->blocked[k].event]))
			return false;
	return true;
}

static inline bool brute_avoids(const struct brute *b, const struct brute_state *s)
{
	const struct sym_failure *f = &b->t->failure;

	if (f->nblocked)
		return s->went_on > 0;
	return f->condition && !expr_eval(b->t->pool, f->condition, s->vals);
}

static inline bool brute_end(struct brute *b, const struct brute_state *s)
{
	for (unsigned t = 0; t < b->t->nthreads; t++) {
		unsigned n = b->t->threads[t].nevents;

		if (s->nbuf[t] || s->pc[t] + (unsigned)(n && brute_pending(b, t, n - 1)) < n)
			return false;
	}
	if (b->forced && s->n != (int)b->forced->n)
		return false;
	if (!brute_conds(b, s, true))
		return false;
	return b->done(b, s);
}

/* Record the event's place; false when the forced order or time says no. */
static inline bool brute_place(struct brute *b, struct brute_state *s, unsigned t, unsigned i)
{
	const struct sym_event *e = &b->t->threads[t].events[i];

	if (b->forced && ((size_t)s->n >= b->forced->n || b->forced->refs[s->n].thread != t ||
			  b->forced->refs[s->n].index != i))
		return false;
	if (b->times) {
		if (e->time_hi < s->latest)
			return false;
		if (e->time_lo > s->latest)
			s->latest = e->time_lo;
	}
	s->at[t][i] = s->n++;
	return true;
}

static inline uint64_t brute_sym(const struct brute *b, expr_id e)
{
	return expr_get(b->t->pool, e)->value;
}

/* One event of thread t; waits for nothing. False: not possible now. */
static inline bool brute_issue(const struct brute *b, struct brute_state *s,
			       const struct sym_event *e)
{
	unsigned t = e->thread;
	const struct sym_thread *peer;

	switch (e->op) {
	case SYM_READ: case SYM_RMW: {
		uint64_t v = s->mem[e->target];

		for (unsigned k = 0; k < s->nbuf[t]; k++) {
			const struct sym_event *w = &b->t->threads[t].events[s->buf[t][k]];

			if (w->target == e->target)
				v = expr_eval(b->t->pool, w->value, s->vals);
		}
		s->vals[brute_sym(b, e->symbol)] = v;
		s->read[brute_sym(b, e->symbol)] = true;
		if (e->fixed && v != e->seen)
			return false;
		if (e->op == SYM_RMW && e->value)
			s->mem[e->target] = expr_eval(b->t->pool, e->value, s->vals);
		return true;
	}
	case SYM_WRITE:
		s->mem[e->target] = expr_eval(b->t->pool, e->value, s->vals);
		return true;
	case SYM_TRYLOCK:
		if (!e->result)
			return brute_held(s, e->target, false);
		/* fall through */
	case SYM_LOCK:
		if (!brute_lock_free(b, s, e, false))
			return false;
		s->owner[e->target] = t;
		s->depth[e->target]++;
		return true;
	case SYM_TRYRDLOCK:
		if (!e->result)
			return brute_held(s, e->target, true);
		/* fall through */
	case SYM_RDLOCK:
		if (!brute_lock_free(b, s, e, true))
			return false;
		s->readers[e->target][t]++;
		return true;
	case SYM_UNLOCK:
		if (s->owner[e->target] == (int)t) {
			if (--s->depth[e->target] == 0)
				s->owner[e->target] = -1;
		} else if (s->readers[e->target][t]) {
			s->readers[e->target][t]--;
		}
		for (unsigned k = e->index + 1; k < b->t->threads[t].nevents; k++) {
			const struct sym_event *w = &b->t->threads[t].events[k];

			if (w->op == SYM_WAIT && w->link == e->index) {
				s->asleep[t] = w->target;
				s->woken[t] = false;
			}
		}
		return true;
	case SYM_WAIT:
		if (e->result == 1 && !s->woken[t])
			return false;
		s->asleep[t] = -1;
		s->woken[t] = false;
		return true;
	case SYM_BROADCAST:
		for (unsigned k = 0; k < BT; k++)
			if (s->asleep[k] == (int)e->target)
				s->woken[k] = true;
		return true;
	case SYM_SEMWAIT:
		if (!e->result)
			return s->count[e->target] == 0;
		return s->count[e->target]-- > 0;
	case SYM_SEMPOST: s->count[e->target]++; return true;
	case SYM_BARRIER_ENTER:
		s->round[t] = s->count[e->target]++ / (int)b->t->objects[e->target].count;
		return true;
	case SYM_BARRIER_LEAVE: return brute_can(b, s, e);
	case SYM_ONCE_BEGIN:
		if (e->result != 1)
			return s->once[e->target] > 0;
		if (s->once[e->target])
			return false;
		s->once[e->target] = 1;
		s->once_by[e->target] = t;
		return true;
	case SYM_ONCE_END:
		if (s->once_by[e->target] == (int)t && s->once[e->target] == 1)
			s->once[e->target] = 2;
		return s->once[e->target] == 2;
	case SYM_JOIN:
		peer = &b->t->threads[e->peer];
		if (brute_pending(b, t, e->index))
			return brute_can(b, s, e);
		return s->pc[e->peer] == peer->nevents && !s->nbuf[e->peer];
	default: return true;
	}
}

static inline void brute_let_go(const struct brute *b, struct brute_state *s, unsigned t)
{
	const struct sym_thread *th = &b->t->threads[t];

	if (!b->onward || s->pc[t] != th->nevents || s->nbuf[t])
		return;
	/* Who exited holds what it holds; out of a deadlock come those it had blocked. */
	if (th->events[th->nevents - 1].op == SYM_EXIT ||
	    (b->t->failure.nblocked && !brute_pending(b, t, th->nevents - 1)))
		return;
	for (unsigned o = 0; o < BO; o++) {
		if (s->owner[o] == (int)t) {
			s->owner[o] = -1;
			s->depth[o] = 0;
		}
		s->readers[o][t] = 0;
	}
}

static inline bool brute_forked(const struct brute *b, const struct brute_state *s, unsigned t)
{
	for (unsigned k = 0; k < b->t->nthreads; k++)
		for (unsigned i = 0; i < b->t->threads[k].nevents; i++)
			if (b->t->threads[k].events[i].op == SYM_FORK &&
			    b->t->threads[k].events[i].peer == t)
				return s->at[k][i] >= 0;
	return true;
}

/* A signal wakes one sleeper, any of them; without one it is lost. */
static inline bool brute_signal(struct brute *b, const struct brute_state *s, uint32_t cond)
{
	bool some = false;

	for (unsigned k = 0; k < BT; k++) {
		struct brute_state n = *s;

		if (s->asleep[k] != (int)cond || s->woken[k])
			continue;
		some = true;
		n.woken[k] = true;
		if (brute_run(b, &n))
			return true;
	}
	return !some && brute_run(b, s);
}

static inline bool brute_step(struct brute *b, const struct brute_state *s, unsigned t)
{
	const struct sym_thread *th = &b->t->threads[t];
	struct brute_state n = *s;
	unsigned i = s->pc[t];
	const struct sym_event *e = &th->events[i];

	if (i == 0 && !brute_forked(b, s, t))
		return false;
	if (b->tso && e->op == SYM_WRITE) {
		n.buf[t][n.nbuf[t]++] = i;
		n.pc[t]++;
		return brute_run(b, &n);
	}
	if (b->tso && e->op != SYM_READ && s->nbuf[t])
		return false;
	if (!brute_issue(b, &n, e) || !brute_place(b, &n, t, i))
		return false;
	n.pc[t]++;
	n.went_on += brute_pending(b, t, i);
	brute_let_go(b, &n, t);
	if (!brute_conds(b, &n, false))
		return false;
	return e->op == SYM_SIGNAL ? brute_signal(b, &n, e->target) : brute_run(b, &n);
}

static inline bool brute_flush(struct brute *b, const struct brute_state *s, unsigned t)
{
	struct brute_state n = *s;
	unsigned i = s->buf[t][0];

	n.mem[b->t->threads[t].events[i].target] =
		expr_eval(b->t->pool, b->t->threads[t].events[i].value, s->vals);
	memmove(n.buf[t], n.buf[t] + 1, --n.nbuf[t]);
	if (!brute_place(b, &n, t, i))
		return false;
	brute_let_go(b, &n, t);
	return brute_run(b, &n);
}

static inline bool brute_run(struct brute *b, const struct brute_state *s)
{
	if (++b->steps > b->limit)
		return true;
	for (unsigned t = 0; t < b->t->nthreads; t++) {
		if (s->nbuf[t] && brute_flush(b, s, t))
			return true;
		if (s->pc[t] < b->t->threads[t].nevents && brute_step(b, s, t))
			return true;
	}
	return brute_end(b, s);
}

static inline bool brute_all(struct brute *b)
{
	struct brute_state s;

	memset(&s, 0, sizeof s);
	memset(s.at, 0xff, sizeof s.at);
	memset(s.owner, 0xff, sizeof s.owner);
	memset(s.asleep, 0xff, sizeof s.asleep);
	memset(s.once_by, 0xff, sizeof s.once_by);
	for (size_t i = 0; i < b->t->nvars; i++)
		s.mem[i] = expr_eval(b->t->pool, b->t->vars[i].init, s.vals);
	for (size_t i = 0; i < b->t->nobjects; i++)
		if (b->t->objects[i].kind == SYM_SEM)
			s.count[i] = b->t->objects[i].count;
	/* An initialiser nobody runs here was run before. */
	memset(s.once, 2, sizeof s.once);
	for (unsigned t = 0; t < b->t->nthreads; t++)
		for (unsigned i = 0; i < b->t->threads[t].nevents; i++)
			if (b->t->threads[t].events[i].op == SYM_ONCE_BEGIN &&
			    b->t->threads[t].events[i].result == 1)
				s.once[b->t->threads[t].events[i].target] = 0;
	b->steps = 0;
	return brute_run(b, &s);
}

#endif
