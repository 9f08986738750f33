/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The orders that a trace stands for (maximal causality): every order of its events, or of the first
 * ones of each thread, that keeps program order, creation and joining, and what locks, conditions,
 * semaphores and barriers allow, and in which each read sees what it saw in the trace. They are the ways
 * through a graph of states; a state once seen is not entered again, so a search that comes to its
 * end without an answer has proved that there is none.
 */
#ifndef CSCHED_EXPLORE_SEARCH_H
#define CSCHED_EXPLORE_SEARCH_H

#include "analyzer/explore/model.h"

#define XPL_STEPS 4 /* of the longest pattern */

enum xpl_found {
	XPL_FOUND,      /* path is an order that shows it; its last event may see another value */
	XPL_IMPOSSIBLE, /* proved for all orders that the trace stands for */
	XPL_TOO_LARGE,  /* more states than are looked at */
	XPL_STOPPED,    /* path->stop said so */
};

/* What was in the way, of all that was tried. */
struct xpl_obstacles {
	bool order; /* program order, creation, joining */
	bool locks; /* and what else threads wait for */
	bool data;  /* a read would have seen something else, and what follows need not happen then */
	bool writes; /* another write of the variable comes between the steps */
	uint32_t object; /* one that was waited for; XPL_NONE */
	uint32_t reached; /* steps of the pattern that were reached, at most */
	uint32_t used;    /* of its steps, from the first on, so many decided what was refused */
};

struct xpl_path {
	VEC(uint32_t) events; /* numbers in the trace */
	uint64_t states;
	struct xpl_obstacles obstacles;
	/* Asked every few thousand states; true: give up. NULL: nobody is asked. */
	bool (*stop)(void *arg);
	void *stop_arg;
};

/*
 * An order in which these events (numbers) follow each other like that, and between steps on one
 * variable nobody else writes it.
 */
enum xpl_found xpl_search_pattern(const struct xpl_trace *t, const uint32_t *steps, unsigned n,
				  uint64_t most, struct xpl_path *out);

/* An order in which `second' comes behind `first', whatever comes between and reads see: a guess, to be executed. */
enum xpl_found xpl_search_order(const struct xpl_trace *t, uint32_t first, uint32_t second, uint64_t most,
				struct xpl_path *out);

/* A read (or a try) that would see something else than in the trace: the next event of `thread' in this state. */
struct xpl_way_out {
	const uint32_t *position; /* by thread: events executed */
	uint32_t thread;
	const struct xpl_event *event; /* the read; or what the thread waited for at the trace's end, and can have here */
	uint64_t value;           /* what it would see; or the result */
	const struct xpl_path *path; /* to there, with the event at its end unless it was never executed */
};

struct xpl_ways {
	void *arg;
	/* true: enough */
	bool (*out)(void *arg, const struct xpl_way_out *w);
	/*
	 * No thread can go on in this state. Or, with `first' (else NULL): a thread that has a lock for reading is about to acquire it
	 * once more, and this event of a writer waits for it: whether that comes between is the lock's kind to say.
	 */
	bool (*deadlock)(void *arg, const uint32_t *position, const struct xpl_path *path, const struct xpl_event *first);
	/* Every event is executed; memory is a hash of what the variables hold. NULL: not asked for. */
	bool (*last)(void *arg, const uint32_t *position, uint64_t memory, const struct xpl_path *path);
};

/* All states of the trace. XPL_FOUND: a callback had enough; XPL_IMPOSSIBLE: all were seen. */
enum xpl_found xpl_search_ways(const struct xpl_trace *t, const struct xpl_ways *w, uint64_t most,
			       struct xpl_path *path);

/* What xpl_ways.last() is told when the trace's own order was executed. */
uint64_t xpl_search_memory(const struct xpl_trace *t);

void xpl_path_free(struct xpl_path *p);

#endif
