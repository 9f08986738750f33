/*
 * A directed graph that stays acyclic while edges come and go like the
 * literals on a solver's trail. Knows nothing of Z3.
 *
 * Pearce and Kelly's dynamic topological order: adding an edge that fits the
 * current order is constant time; otherwise only the nodes between its ends
 * are looked at. Removing edges keeps any order valid, so backtracking is
 * free. Static edges carry no label and never go away.
 */
#ifndef CSCHED_SCHEDULE_ACYCLIC_H
#define CSCHED_SCHEDULE_ACYCLIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ACY_STATIC UINT32_MAX

struct acy;

struct acy *acy_new(void);
void acy_free(struct acy *g);
uint32_t acy_node(struct acy *g);
uint32_t acy_nodes(const struct acy *g);
/* Only before acy_start(). */
void acy_static(struct acy *g, uint32_t a, uint32_t b);
/*
 * Orders the static graph; false when it has a cycle. Among nodes free to come next the one
 * of smallest rank (acy_prefer(); else 0) is the first: edges that fit the ranks then cost nothing.
 */
void acy_prefer(struct acy *g, uint32_t node, uint64_t rank);
bool acy_start(struct acy *g);

/*
 * Add a -> b. Returns 0, or the number of labels on the cycle it would close
 * (without its own), which are then in acy_labels(); the edge is not added.
 * cycle is true in that case even when the number is 0.
 */
size_t acy_add(struct acy *g, uint32_t a, uint32_t b, uint32_t label, bool *cycle);
const uint32_t *acy_labels(const struct acy *g);
/* Nodes looked at so far: how much work it all was. */
uint64_t acy_looked_at(const struct acy *g);
/* Take back the newest edge, which was a -> b. */
void acy_undo(struct acy *g, uint32_t a, uint32_t b);

/*
 * After a -> b was added: calls found for each candidate edge x -> y, of those
 * given by acy_candidate(), that would now close a cycle through it; labels
 * are those on the way. Looks at no more than limit nodes each way. Of candidates that are settled,
 * by label, nothing is said: most are, sooner or later, and the labels are the dear part.
 */
void acy_candidate(struct acy *g, uint32_t x, uint32_t y, uint32_t label);
void acy_implied(struct acy *g, uint32_t a, uint32_t b, size_t limit, const uint8_t *settled,
		 void (*found)(void *arg, uint32_t candidate, const uint32_t *labels, size_t n),
		 void *arg);

/*
 * A total order of all nodes that respects every edge now present and takes,
 * among those free to come next, the one of smallest rank. out[k] is a node. Returns how
 * many there are: all of them, when there is no cycle.
 */
size_t acy_sort(const struct acy *g, const uint64_t *rank, uint32_t *out);

#endif
