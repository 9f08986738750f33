/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Total orders over a symbolic trace: where an event stands, and which events' order matters. */
#ifndef CSCHED_ORDER_H
#define CSCHED_ORDER_H

#include "analyzer/symtrace/symtrace.h"

enum sched_model { SCHED_SC, SCHED_TSO };

/* An event by thread and program-order index. */
struct sched_ref {
	uint32_t thread;
	uint32_t index;
};

struct sched_order {
	struct sched_ref *refs; /* every event executed, in order */
	size_t n;
	size_t switches;  /* context switches */
	uint64_t *values; /* value of each read symbol, by symbol number */
	size_t nvalues;
	bool fails;
};

void sched_order_free(struct sched_order *o);

struct sched_edge {
	struct sched_ref before, after;
};

const struct sym_event *order_event(const struct sym_trace *t, struct sched_ref r);

static inline bool order_reads(const struct sym_event *e)
{
	return e->op == SYM_READ || e->op == SYM_RMW;
}

/* Of memory, in fact: a compare-and-swap that found something else has only read. */
static inline bool order_writes(const struct sym_event *e)
{
	return e->op == SYM_WRITE || (e->op == SYM_RMW && e->value != EXPR_NONE);
}

/* Of memory: READ, WRITE, RMW. */
static inline bool order_is_access(const struct sym_event *e)
{
	return order_reads(e) || e->op == SYM_WRITE;
}

/* A lock is acquired (or would be, by who waits for it to the end); semaphores are none. */
static inline bool order_acquires(const struct sym_event *e)
{
	return e->op == SYM_LOCK || e->op == SYM_RDLOCK ||
	       ((e->op == SYM_TRYLOCK || e->op == SYM_TRYRDLOCK) && e->result == 1);
}

/* For reading, which keeps no other reader out. */
static inline bool order_shared(const struct sym_event *e)
{
	return e->op == SYM_RDLOCK || e->op == SYM_TRYRDLOCK;
}

/* About the same variable or object: these are counted apart. */
bool order_same_target(const struct sym_event *a, const struct sym_event *b);
/* Their order matters: about the same, and not two reads. */
bool order_conflict(const struct sym_event *a, const struct sym_event *b);

/* Index of the acquisition of the lock that the thread holds before this event and acquired last; SYM_NONE: it holds none. */
uint32_t order_innermost_lock(const struct sym_trace *t, uint32_t thread, uint32_t index);

/* Where each event stands in an order; it must live as long. */
struct order_places {
	size_t **at;
	uint32_t nthreads;
};
#define ORDER_NOWHERE SIZE_MAX

struct order_places order_places_of(const struct sym_trace *t, const struct sched_order *o);
void order_places_free(struct order_places *p);

static inline size_t order_place(const struct order_places *p, struct sched_ref r)
{
	return p->at[r.thread][r.index];
}

#endif
