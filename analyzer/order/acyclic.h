/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A directed graph that stays acyclic while edges come and go like the
 * literals on a solver's trail. Knows nothing of Z3.
 *
 * Pearce and Kelly's dynamic topological order: adding an edge that fits the
 * current order is constant time; otherwise only the nodes between its ends
 * are looked at. Removing edges keeps any order valid, so backtracking is
 * free. Static edges carry no label and never go away.
 */
#ifndef CSCHED_ORDER_ACYCLIC_H
#define CSCHED_ORDER_ACYCLIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORDER_ACYCLIC_STATIC UINT32_MAX

struct order_acyclic;

struct order_acyclic *order_acyclic_new(void);
void order_acyclic_free(struct order_acyclic *g);
uint32_t order_acyclic_node(struct order_acyclic *g);
uint32_t order_acyclic_nodes(const struct order_acyclic *g);
/* Only before order_acyclic_start(). */
void order_acyclic_static(struct order_acyclic *g, uint32_t a, uint32_t b);
/*
 * Orders the static graph; false when it has a cycle. Among nodes free to come next the one
 * of smallest rank (order_acyclic_prefer(); else 0) is the first: edges that fit the ranks then cost nothing.
 */
void order_acyclic_prefer(struct order_acyclic *g, uint32_t node, uint64_t rank);
bool order_acyclic_start(struct order_acyclic *g);

/*
 * Add a -> b. Returns 0, or the number of labels on the cycle it would close
 * (without its own), which are then in order_acyclic_labels(); the edge is not added.
 * cycle is true in that case even when the number is 0.
 */
size_t order_acyclic_add(struct order_acyclic *g, uint32_t a, uint32_t b, uint32_t label, bool *cycle);
const uint32_t *order_acyclic_labels(const struct order_acyclic *g);
/* Nodes looked at so far: how much work it all was. */
uint64_t order_acyclic_looked_at(const struct order_acyclic *g);
/* Take back the newest edge, which was a -> b. */
void order_acyclic_undo(struct order_acyclic *g, uint32_t a, uint32_t b);

/*
 * After a -> b was added: calls found for each candidate edge x -> y, of those
 * given by order_acyclic_candidate(), that would now close a cycle through it; labels
 * are those on the way. Looks at no more than limit nodes each way. Of candidates that are settled,
 * by label, nothing is said: most are, sooner or later, and the labels are the dear part.
 */
void order_acyclic_candidate(struct order_acyclic *g, uint32_t x, uint32_t y, uint32_t label);
void order_acyclic_implied(struct order_acyclic *g, uint32_t a, uint32_t b, size_t limit, const uint8_t *settled,
			   void (*found)(void *arg, uint32_t candidate, const uint32_t *labels, size_t n),
			   void *arg);

/*
 * A total order of all nodes that respects every edge now present and takes,
 * among those free to come next, the one of smallest rank. out[k] is a node. Returns how
 * many there are: all of them, when there is no cycle.
 */
size_t order_acyclic_sort(const struct order_acyclic *g, const uint64_t *rank, uint32_t *out);

#endif
