/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The edges that matter: what must be kept of an order so that a live run
 * behaves like it where it counts.
 */
#ifndef CSCHED_ENFORCE_EDGES_H
#define CSCHED_ENFORCE_EDGES_H

#include "analyzer/dsp/dsp.h"
#include "analyzer/symtrace/extract.h"
#include "common/vec.h"

struct edges {
	VEC(struct sched_edge) v;
	/* Of waits for a condition: the first takes its wake-up before the second does. A wait is
	 * its SYM_WAIT, or the release that begins it when it is not woken in the order. */
	VEC(struct sched_edge) wakes;
};

/*
 * The root cause's pairs as the order has them, the order of all conflicting
 * accesses to the variables of the projection, and the order of the lock sections
 * a waiting thread might be in, and which thread is woken where several wait; nothing that the others imply. At most max, those
 * nearest to the failure. until: how many events of the order are to be kept.
 */
void edges_that_matter(const struct sym_trace *t, const struct sched_answer *a, const struct dsp *d,
		       const struct sched_order *order, size_t until, size_t max, struct edges *out);

/*
 * What has to be enforced so that a live run is where the window of the order begins: who had each lock
 * before whom, who came last to a barrier, who was woken. Refers to the trace that is returned (caller
 * frees): all synchronisation, that of the window as this order has it.
 */
struct sym_trace *edges_of_past(const struct ext_result *r, const struct sched_order *order, size_t until,
				struct edges *out);

/* The same trace up to where the window begins; empty when that is not known. */
struct sym_trace *edges_past_trace(const struct ext_result *r);

/*
 * Where to hold the thread of r so that r comes late: before the outermost lock section
 * around it that was entered behind this place of the order.
 */
struct sched_ref edges_outside(const struct sym_trace *t, const struct sched_order *order,
			       struct sched_ref r, size_t place);
/*
 * Somebody is going to wait at r, which may be behind the last event, for something that thread `before` does: who was in a section
 * of a lock that r's thread holds there has left it before that one enters it. Adds to out->v.
 */
void edges_around(const struct sym_trace *t, const struct sched_order *order, uint32_t before, struct sched_ref r,
		  struct edges *out);
/* Where it is in the order; order->n: not in it. */
size_t edges_place(const struct sched_order *order, struct sched_ref r);

/*
 * The last event of each thread among the first `until` of an order, of those that are
 * usable; index SYM_NONE: none. Caller frees.
 */
typedef bool (*edges_usable_fn)(void *arg, const struct sym_event *e);
struct sched_ref *edges_last(const struct sym_trace *t, const struct sched_order *order,
			     size_t until, edges_usable_fn usable, void *arg);

#endif
