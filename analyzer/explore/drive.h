/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which order next: the strategies, over whatever executes orders.
 *
 * pcr   an uncovered pattern that the filter rules leave and an order can show, longest first; when
 *       there is none left, the ways out of the traces seen (as mcr), so that what remains is proved
 * mcr   every combination of values that reads can see, one execution for each
 * pct   random priorities with a few change points
 * random   random orders
 */
#ifndef CSCHED_EXPLORE_DRIVE_H
#define CSCHED_EXPLORE_DRIVE_H

#include "analyzer/explore/cores.h"
#include "analyzer/explore/observe.h"
#include "analyzer/explore/patterns.h"
#include "analyzer/explore/search.h"

enum xpl_strategy { XPL_PCR, XPL_MCR, XPL_PCT, XPL_RANDOM };

/* What executes orders. Steps are in its terms: places of former traces. */
struct xpl_executor {
	void *arg;
	err_t (*run)(void *arg, const struct xpl_order *order, struct xpl_seen *out);
	/* Several at a time; NULL: one after the other. */
	err_t (*run_all)(void *arg, const struct xpl_order *orders, size_t n, struct xpl_seen *out);
	unsigned width; /* so many; 0: one */
};

enum xpl_status { XPL_OPEN, XPL_COVERED, XPL_INFEASIBLE };

/* Why no order shows a pattern. */
enum xpl_reason { XPL_BY_ORDER, XPL_BY_LOCKS, XPL_BY_DATA, XPL_BY_WRITES, XPL_REASONS };
extern const char *const xpl_reason_name[XPL_REASONS];

/* A pattern by its code places, whatever trace it was seen in. */
struct xpl_known {
	uint64_t key;
	uint8_t kind, n;
	uint64_t places[4];
	enum xpl_status status;
	enum xpl_reason reason;  /* of XPL_INFEASIBLE, and what was in the way of one that is open */
	uint64_t object;         /* address of the lock that is in the way, or 0 */
	bool undecided;          /* a search for it was given up */
	bool met;                /* in some trace of this exploration */
	bool from_file;          /* a coverage file had it, with status ... */
	enum xpl_status earlier; /* ... this */
	uint64_t vars[2];        /* addresses of x and y, where it was met first */
	uint32_t trace;          /* where an instance of it was seen last */
	uint32_t steps[4];
	uint32_t score;
	bool wanted;             /* the filter rules leave it */
	uint8_t effort;          /* how often a search for it was cut short: the next may go on for longer */
};

/* How an execution ended, when that is a failure. */
enum xpl_bad { XPL_FINE, XPL_BAD_FAILED, XPL_BAD_DEADLOCK, XPL_BAD_ENDLESS, XPL_BAD_EXIT, XPL_BAD_DIFFERS };

struct xpl_drive_options {
	enum xpl_strategy strategy;
	uint64_t seed;
	uint64_t max_schedules; /* 0: no limit */
	double deadline;        /* CLOCK_MONOTONIC; 0: none */
	bool keep_going;        /* behind a failure */
	uint32_t shard, shards; /* the shard-th of so many, from 0: see xpl_is_mine(); shards 0: all of it */
	bool endless;           /* the recorded run did not end: an order that does not is none the worse */
	bool (*bad_exit)(void *arg, int status);
	/* Is it known that no serial order ends like that? NULL: not asked. */
	bool (*differs)(void *arg, const struct xpl_seen *seen);
	/* A failing order: false: it does not count (it could not be confirmed). *stop: that is enough. */
	bool (*failed)(void *arg, const struct xpl_seen *seen, enum xpl_bad bad, bool *stop);
	/* After every execution, and now and then in between; true: stop. */
	bool (*progress)(void *arg);
	void *arg;
};

struct xpl_point {
	double seconds;
	uint64_t schedules, covered;
};

struct xpl_drive {
	const struct xpl_drive_options *o;
	const struct xpl_executor *exec;
	VEC(struct xpl_trace *) traces;  /* one per class of orders that was seen */
	VEC(struct xpl_known) known;
	uint32_t *table;                 /* key -> 1 + number in known */
	size_t table_cap;
	double estimate, estimate_by_kind[XPL_KINDS + 1];
	VEC(struct xpl_point) over_time;
	/* counts */
	uint64_t schedules, not_enforced, left, failing, repeated, constraints, cores_used, too_large;
	uint64_t filtered[XPL_RULES];
	uint64_t covered, ways, states;
	uint64_t missed;               /* ways out that could not be executed as they were meant */
	uint64_t first_schedules, first_constraints; /* up to the first failure */
	double first_seconds, began;
	bool first_found;
	bool exhausted, stopped, over; /* over: the budget */
	bool late;                     /* work was given up in the middle: time, or asked to */
	bool timed;                    /* some thread waited with a time limit, in some order */
	bool cut;                      /* some trace had more events than are looked at */
	uint64_t told;                 /* patterns, for xpl_drive_stops() */
	bool unknown_left;             /* orders were not executed to their end: what they hide is open */
	char *left_why;
	/* private */
	struct xpl_closure *closure;
	const struct xpl_event *expect; /* what the next execution is to show; NULL: nothing */
	VEC(uint32_t) failing_traces;
	VEC(uint64_t) failures;        /* failing orders that differ, see xpl_trace_print() */
	struct xpl_cores cores;
	uint64_t random;
};

void xpl_drive_new(struct xpl_drive *d, const struct xpl_drive_options *o, const struct xpl_executor *exec);
/* The trace of the first, recorded run; then everything else. */
err_t xpl_drive_go(struct xpl_drive *d, struct xpl_trace *first);
/* The first failure, if it is: as far as the work has come. */
void xpl_drive_found(struct xpl_drive *d);
void xpl_drive_free(struct xpl_drive *d);
double xpl_now(void);

/* ---- between drive.c, closure.c and pcr.c ---- */

/* The order as steps, up to its last event. */
void xpl_steps_of(const struct xpl_trace *t, const struct xpl_path *p, struct mach_step **steps, size_t *n);
/* Executes it and takes in what it showed; *number: of its trace, XPL_NONE when it is not new or failed to run. */
err_t xpl_drive_try(struct xpl_drive *d, struct mach_step *steps, size_t n, uint32_t *number);
/* The same for what was executed already: n steps were meant. Takes what it keeps from seen, and frees the rest. */
void xpl_drive_take(struct xpl_drive *d, struct xpl_seen *seen, size_t n, uint32_t *number);
typedef VEC(struct xpl_order) xpl_orders;
/* How many orders may be chosen before they are executed. */
size_t xpl_drive_room(const struct xpl_drive *d);
/* Executes them, takes in what they showed, and empties the list. */
err_t xpl_drive_try_all(struct xpl_drive *d, xpl_orders *orders);
bool xpl_drive_over(struct xpl_drive *d);
/*
 * Several explorations of one program share the work when each begins with the same order: the ways out of the first trace are
 * divided among them, and who owns one goes on from there alone, so that together they come to every class; and so are the
 * patterns that are looked for. part: a number that does not depend on where modules lie.
 */
bool xpl_is_mine(const struct xpl_drive *d, uint64_t part);
#define XPL_IN_PAGE 0xfff /* of a place: the same wherever its module lies */
/* For long work in between (d is the argument): is the time over, or was it asked to stop? */
bool xpl_drive_stops(void *arg);
/* What the thread would do next behind the end of this trace, as another trace shows it; NULL: unknown. */
const struct xpl_event *xpl_drive_next(const struct xpl_drive *d, const struct xpl_trace *t, uint32_t thread);
struct xpl_known *xpl_known_at(struct xpl_drive *d, uint64_t key);

/* closure.c */
struct xpl_closure *xpl_closure_new(void);
void xpl_closure_free(struct xpl_closure *c);
void xpl_closure_add(struct xpl_closure *c, const struct xpl_trace *t);
/* Is there an execution that extends this state and the way out? */
bool xpl_closure_has(struct xpl_closure *c, const struct xpl_trace *t, const uint32_t *position,
		     uint32_t thread, uint64_t history);
/* Is it the same class as an earlier one? */
bool xpl_closure_same(const struct xpl_closure *c, const struct xpl_trace *t);
/* One more execution that must be of a new class; *done: there is none left. */
err_t xpl_closure_step(struct xpl_drive *d, bool *done);

/* vary.c: nothing is left; failing orders besides those that were come to. */
err_t xpl_drive_vary(struct xpl_drive *d);
/* Such an order was executed: does it fail in a way that no other did? */
bool xpl_drive_varied(struct xpl_drive *d, const struct xpl_seen *seen);

/* pcr.c */
err_t xpl_pcr_step(struct xpl_drive *d, bool *done);
/* Every pattern that is neither covered nor proved: solved in each trace. */
err_t xpl_pcr_settle(struct xpl_drive *d);

#endif
