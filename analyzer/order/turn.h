/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Orders with some of their pairs turned round, and the smallest set of pairs that makes a difference. */
#ifndef CSCHED_ORDER_TURN_H
#define CSCHED_ORDER_TURN_H

#include "analyzer/order/order.h"

/*
 * Pairs of accesses that conflict, in `was` one before the other, and in `is` not: the second is there, the first comes
 * later or never. The first of a pair stands at from..to in `was`; at most `most` pairs. Their number.
 */
size_t order_turned(const struct sym_trace *t, const struct sched_order *was, const struct sched_order *is, size_t from,
		    size_t to, struct sched_edge *out, size_t most);

/*
 * Program order: with a turned round, b is, too, because its first event comes after a's in their thread, and its second before.
 */
bool order_turn_implies(const struct sched_edge *a, const struct sched_edge *b);

/*
 * `was` with those of the pairs turned round that are marked, and those that they imply. All other conflicting accesses keep
 * their order; a thread that has to wait while it holds a lock waits before it acquires that. False when there is no such order. *end: behind this many
 * events every pair that is marked has been turned. refs is allocated.
 */
bool order_turn(const struct sym_trace *t, const struct sched_order *was, const struct sched_edge *pairs, size_t n,
		const bool *marked, struct sched_order *out, size_t *end);

/* ---- delta debugging ---- */

enum order_verdict { ORDER_FAILS, ORDER_PASSES, ORDER_UNRESOLVED };

/* What becomes of the failing order when the marked pairs are turned round. */
typedef enum order_verdict (*order_test)(void *arg, const bool *marked);

/*
 * All n pairs turned round pass, none fails: marks a set that passes and of which none can be left out, in at most so many
 * tests, each of which counts. True: that was shown for every pair of the set. Pairs are tried alone first, as they stand: those
 * that turn least should come first.
 */
bool order_ddmin(size_t n, order_test test, void *arg, unsigned *tests, bool *marked);

#endif
