/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between search.c, which goes through the states of a trace, and search_state.c, which says what an event does to one. */
#ifndef CSCHED_EXPLORE_SEARCH_INTERNAL_H
#define CSCHED_EXPLORE_SEARCH_INTERNAL_H

#include "analyzer/explore/search.h"

/*
 * A state is one array of 64-bit words: per thread its position and flags, per variable its value,
 * per object two words (owner and depth; readers, or: waiting and woken; or a count).
 */
#define POSITION(w) ((uint32_t)(w))
#define ALIVE (1ull << 32)   /* was made */
#define STOPPED (1ull << 33) /* its last read saw something else: what it does then is not known */
/* Of a thread that waits for a condition: so many of its wake-ups that nobody took yet are older than this wait, and not for it. */
#define LATE_BY_ONE (1ull << 40)
#define LATE(w) ((w) >> 40)

struct search {
	const struct xpl_trace *t;
	size_t words, vars_at, objects_at;
	/* pattern */
	const uint32_t *steps;
	unsigned nsteps;
	bool loose; /* others may write between the steps, and reads see what they see: executing it decides */
	/* visited: hashes of states */
	uint64_t *seen;
	size_t nseen, cap;
	uint64_t most;
	struct xpl_path *path;
	const struct xpl_ways *ways;
	uint32_t *position; /* for callbacks */
	uint64_t *now;      /* scratch */
	bool *try_on;       /* by object: somebody tries to lock it */
	bool *again;        /* by event: acquires for reading what its thread has for reading; NULL: none does */
};

enum can { CAN, CANNOT, OTHERWISE }; /* OTHERWISE: with another outcome than in the trace */

/* What the thread would do next, or NULL; its pending event at the trace's end, too. */
const struct xpl_event *xpl_state_next(const struct search *s, const uint64_t *st, uint32_t t);
bool xpl_state_is_pending(const struct search *s, const struct xpl_event *e);
/* May it? *value: what it sees, where that is asked. */
enum can xpl_state_can(const struct search *s, uint64_t *st, const struct xpl_event *e, uint64_t *value);
void xpl_state_go(const struct search *s, uint64_t *st, const struct xpl_event *e);
/* The one before the first event. */
void xpl_state_start(struct search *s, uint64_t *st);

/* A hash over the words in any order, and by how much an event changed it. */
uint64_t xpl_state_hash(const struct search *s, const uint64_t *st);
uint64_t xpl_state_change(const struct search *s, const uint64_t *st, const uint64_t *next, const struct xpl_event *e);

#endif
