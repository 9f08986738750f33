/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A symbolic trace as the schedule side looks at it: events numbered through,
 * with what follows from the trace alone worked out once. Read-only after
 * order_view_new(); everything here takes time linear in the trace.
 *
 * A *chain* is a sequence of events that every schedule keeps in order. Under
 * sequential consistency a thread is one chain. Under TSO it is two: its plain
 * writes, which stand in a schedule where they leave the store buffer, and
 * everything else; a write may so come later than reads that follow it.
 */
#ifndef CSCHED_ORDER_VIEW_H
#define CSCHED_ORDER_VIEW_H

#include "analyzer/order/order.h"

struct order_view_event {
	const struct sym_event *e;
	uint32_t chain, pos; /* pos-th event of its chain */
	uint32_t wait;       /* UNLOCK inside a wait: the number of its WAIT, else SYM_NONE */
	bool drains;         /* TSO: earlier writes of the thread are visible before it */
	bool pending;        /* one of failure.blocked[]: never completed in the recorded run */
	bool last;           /* last event of its thread */
	bool foreign;        /* its value needs symbols other threads read, or later ones */
	uint64_t lo, hi;     /* time bounds, monotone along the chain; 0/UINT64_MAX if unused */
	uint32_t cond, ncond; /* view.conds[]: to be checked when it executes */
};

struct order_view_cond {
	expr_id cond;
	uint32_t thread, number; /* sym_trace.threads[thread].conds[number] */
	uint32_t after;          /* event number, or SYM_NONE */
};

struct order_view {
	const struct sym_trace *t;
	enum sched_model model;
	bool use_times; /* asked for, and there are some */
	struct order_view_event *ev;
	uint32_t n;
	uint32_t *first;      /* by thread: number of its first event; [nthreads] is n */
	uint32_t **chain;     /* by chain: its events */
	uint32_t *chain_len;
	uint32_t nchains;
	uint32_t *forked_by;  /* by thread: its FORK, or SYM_NONE */
	uint32_t *reader;     /* by symbol: the event that reads it, or SYM_NONE */
	struct order_view_cond *conds; /* grouped by the event that completes them ... */
	uint32_t nconds;
	uint32_t first_late;  /* ... from here on: those that only the end decides */
	bool *lent;           /* by object: a semaphore used as a lock, as far as was recorded, see view.c */
	bool deadlock;        /* failure is a set of blocked events */
	uint32_t fail;        /* number of the FAIL event, or SYM_NONE */
};

struct order_view *order_view_new(const struct sym_trace *t, enum sched_model model, bool use_times);
void order_view_free(struct order_view *v);

static inline uint32_t order_number(const struct order_view *v, struct sched_ref r)
{
	return v->first[r.thread] + r.index;
}

static inline struct sched_ref order_view_ref(const struct order_view *v, uint32_t i)
{
	return (struct sched_ref){ v->ev[i].e->thread, v->ev[i].e->index };
}

/*
 * Does a thread that has executed this, its last recorded event, go on beyond
 * the recording and let go of its locks? One that exited does not; and where
 * a deadlock ended the recording, only those do that got out of it.
 */
static inline bool order_goes_on(const struct order_view *v, uint32_t i)
{
	return v->ev[i].last && v->ev[i].e->op != SYM_EXIT && (!v->deadlock || v->ev[i].pending);
}

/* Is condition k checked behind the same event as d, by the same thread? */
static inline bool order_same_branch(const struct order_view *v, uint32_t k, uint32_t d)
{
	return k == d || (k < v->first_late && d < v->first_late &&
			  v->conds[k].thread == v->conds[d].thread &&
			  v->conds[k].after == v->conds[d].after);
}

/* A thread that goes elsewhere at d: does condition k still bind it? */
static inline bool order_still_binds(const struct order_view *v, uint32_t k, uint32_t d)
{
	if (v->conds[k].thread != v->conds[d].thread)
		return true;
	return v->conds[k].after == SYM_NONE || v->conds[k].after < v->conds[d].after;
}

/*
 * A reader that waits for ever, and somebody who waits to write under the same lock: a lock that
 * prefers writers lets no further reader in, though only readers hold it.
 */
bool order_behind_writer(const struct order_view *v, const struct sym_event *e);

/* Context switches of an order of so many events. */
size_t order_switches(const struct order_view *v, const uint32_t *order, size_t n);
/* Pairs that stand otherwise than in the order with these ranks (by event): inversions, by a Fenwick tree. */
size_t order_distance(const struct order_view *v, const uint64_t *rank, const uint32_t *order, size_t n);
/*
 * Where the outermost lock section around place k of its thread begins or ends: looked for towards the place `limit', over at
 * most so many events.
 */
size_t order_section_edge(const struct order_view *v, const uint32_t *order, size_t k, size_t limit, size_t most);

/* Variables, by number: what an expression is computed from, and what the values written there were made of, and so on. */
struct order_cone {
	const struct order_view *v;
	bool *var;
	VEC(uint32_t) todo;
};

/* The variables that e reads; order_cone_close() adds what went into them, and is done with it. */
void order_cone_add(struct order_cone *x, expr_id e);
void order_cone_close(struct order_cone *x);

#endif
