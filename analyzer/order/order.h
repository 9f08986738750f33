/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Total orders over a symbolic trace: where an event stands, and which events' order matters. */
#ifndef CSCHED_ORDER_H
#define CSCHED_ORDER_H

#include "analyzer/symtrace/symtrace.h"
#include "common/vec.h"

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
struct sched_order sched_order_copy(const struct sched_order *o);

struct sched_edge {
	struct sched_ref before, after;
};

static inline bool order_same_ref(struct sched_ref a, struct sched_ref b)
{
	return a.thread == b.thread && a.index == b.index;
}

/* Does the trace have it? */
bool order_has(const struct sym_trace *t, struct sched_ref r);
/* It has. */
const struct sym_event *order_event(const struct sym_trace *t, struct sched_ref r);
/* NULL: it has not. */
const struct sym_event *order_event_at(const struct sym_trace *t, struct sched_ref r);

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

static inline bool order_releases(const struct sym_event *e)
{
	return e->op == SYM_UNLOCK || e->op == SYM_SEMPOST;
}

/* ---- locks held (locks.c) ---- */

struct order_held {
	uint32_t object;
	uint32_t since; /* index of the acquisition; SYM_NONE: before the trace */
};
typedef VEC(struct order_held) order_held_locks; /* the last that was acquired comes last */

/* Locks the thread holds just before its event `index`; semaphores that are used as locks count. */
void order_locks_held(const struct sym_trace *t, uint32_t thread, uint32_t index, order_held_locks *held);
/* The thread does its event `index`: what it then holds. Of locks alone, not of semaphores. */
void order_pass(const struct sym_trace *t, uint32_t thread, uint32_t index, order_held_locks *held);
/* The lock sections the event lies in that begin within the trace. */
void order_sections(const struct sym_trace *t, struct sched_ref r, order_held_locks *held);
/* The thread holds it for reading, which keeps no other reader out. */
bool order_is_for_reading(const struct sym_trace *t, uint32_t thread, const struct order_held *held);
/* Index of the acquisition of the lock that the thread holds before this event and acquired last; SYM_NONE: it holds none. */
uint32_t order_innermost_lock(const struct sym_trace *t, uint32_t thread, uint32_t index);

/* ---- threads that make threads (life.c) ---- */

/* From a FORK, or a JOIN, among the thread's events from `from' on and before `to' a chain of the same leads to `other'. */
bool order_leads_to(const struct sym_trace *t, enum sym_op op, uint32_t thread, uint32_t from, uint32_t to, uint32_t other);
/* The fork in `parent` from which `child` descends; SYM_NONE if there is none. */
uint32_t order_fork_towards(const struct sym_trace *t, uint32_t parent, uint32_t child);
/* Did the parent make it, or who made it, before its event `before`? Before the window, too: names tell. */
bool order_made_before(const struct sym_trace *t, uint32_t parent, uint32_t child, uint32_t before);
/* Did one of the two make the other, or who made it? */
bool order_related(const struct sym_trace *t, uint32_t a, uint32_t b);

/* ---- places ---- */

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

/* A lock keeps z, which comes first in the order, and y apart: whoever has it at z lets it go before y's thread takes it. */
bool order_guarded(const struct sym_trace *t, const struct order_places *p, struct sched_ref z, struct sched_ref y);

/* ---- values (flow.c) ---- */

/* A value travelling: write -> the read that sees it. */
struct order_flow {
	struct sched_ref read;
	struct sched_ref write; /* meaningless when initial */
	bool initial;           /* no write before it: the variable's first value */
	bool differs;           /* to whoever compares two orders: the other one's read sees something else */
	bool has_value;
	uint64_t value;
};

/*
 * Every dataflow of a whole order; under total store order a thread sees its own
 * writes while they wait in its store buffer; malloc'd into *flows. Reads of variables
 * nothing wrote before see the initial value.
 */
size_t order_flows(const struct sym_trace *t, const struct sched_order *o, struct order_flow **flows);
/* What the event read (READ) or wrote (WRITE, RMW) in this order, when known. */
bool order_value(const struct sym_trace *t, const struct sched_order *o, struct sched_ref r, uint64_t *value);

#endif
