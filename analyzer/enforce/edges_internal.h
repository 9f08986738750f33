/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of edges_that_matter() share while they collect. */
#ifndef CSCHED_ENFORCE_EDGES_INTERNAL_H
#define CSCHED_ENFORCE_EDGES_INTERNAL_H

#include "analyzer/enforce/edges.h"

/* What is known about one variable while going through the order. */
struct access {
	bool relevant;
	bool written;
	struct sched_ref write;
	VEC(struct sched_ref) reads; /* since that write, the last one of each thread */
};

/* Of a lock that a deadlock is about: who gave it back last. */
struct lock {
	bool relevant;
	bool released;
	struct sched_ref release;
};

/* A thread, before the last of its events that was asked for: asking goes forward, and there may be many of them. */
struct edges_thread {
	uint32_t upto;
	order_held_locks held;
	bool permits; /* it takes some, of semaphores */
	order_held_locks released; /* where it gives locks back, by object */
};

struct edges_work {
	const struct sym_trace *t;
	const struct sched_order *order;
	size_t until;
	struct order_places places;
	size_t **place;          /* of these: [thread][index] -> place in the order, ORDER_NOWHERE: not in it */
	struct access *vars;
	struct lock *locks;      /* by object */
	struct edges_thread *threads;
	VEC(struct sched_ref) arrived; /* at barriers, not left yet */
	struct edges *out;
};

static inline size_t edges_place_of(const struct edges_work *w, struct sched_ref r)
{
	return w->place[r.thread][r.index];
}

/* .t, .order, .until and .out are set; the rest is made, and freed again. */
void edges_begin(struct edges_work *w);
void edges_end(struct edges_work *w);

/* Adds an edge unless one that is there implies it. */
void edges_push(struct edges_work *w, struct sched_ref before, struct sched_ref after);

/* Who comes last to a barrier; to be called for every event in order. */
void edges_barrier(struct edges_work *w, struct sched_ref r);

/* edges_reduce.c: leaves out what the other edges imply. */
void edges_reduce(struct edges_work *w);

/* wakes.c: which of several waiters a signal wakes. */
void edges_wakes(struct edges_work *w);

#endif
