/*
 * The independent checker: executes a total order of events, one by one, and
 * says whether the order is possible and whether it fails.
 *
 * It shares nothing with the encoding but the trace: memory, locks, condition
 * variables, semaphores, barriers, once, thread life, time bounds, path
 * conditions and recorded values are a small state machine here. No schedule
 * leaves this room that has not run through it.
 *
 * Time is linear in the events executed plus the expressions evaluated.
 *
 * A recorded thread ends where the recording ended, not where its program
 * does. CHECK_EXACT takes the end literally: a lock still held stays held.
 * CHECK_ONWARD lets a thread that has executed its last event go on
 * (view_goes_on()), so what it still holds counts as released; alternates are
 * judged so, because the lock an assertion failed under is released once the
 * assertion holds.
 */
#ifndef CSCHED_SCHEDULE_CHECK_H
#define CSCHED_SCHEDULE_CHECK_H

#include "analyzer/schedule/view.h"

enum check_end { CHECK_EXACT, CHECK_ONWARD };

enum check_status {
	CHECK_OK,
	CHECK_NOT_NEXT, /* program order, fork/join or time bounds broken */
	CHECK_BLOCKED,  /* synchronisation does not let it happen now */
	CHECK_VALUE,    /* a recorded value is not what it would read */
	CHECK_PATH,     /* a branch would go elsewhere */
};

struct check;

/*
 * init: value of each variable without a recorded one, and syms: of each
 * symbol nobody reads; NULL for zeros.
 */
struct check *check_new(const struct sched_view *v, enum check_end end, const uint64_t *init,
			const uint64_t *syms);
void check_free(struct check *c);

/*
 * A state to come back to. It shares the values of symbols with c, so going
 * back is right only while the events before it are executed as they were.
 */
struct check *check_save(const struct check *c);
void check_restore(struct check *c, const struct check *saved);
/*
 * Let the thread of this condition (a view.conds[] number; it has an event it
 * comes after) leave the recorded path behind that event: at this or another
 * condition there. Its later conditions do not count, and an order may end
 * with that event.
 */
void check_set_diverge(struct check *c, uint32_t cond);
/*
 * Or only forget the conditions of its thread from there on: the events stay.
 * For branches on the way to the failure that decide no event, such as those
 * of printing a number.
 */
void check_set_relax(struct check *c, uint32_t cond);

enum check_status check_step(struct check *c, uint32_t event);
/* Could it happen now, path conditions and values aside? Executes nothing. */
enum check_status check_ready(struct check *c, uint32_t event);
/* The same for states with the same future, as far as symbols already read do not matter. */
uint64_t check_hash(const struct check *c);
/* The next event of a chain, or VIEW_NONE. */
uint32_t check_next(const struct check *c, uint32_t chain);
/* Would a read of this event now see what its conditions ask for? Executes nothing. */
enum check_status check_peek(struct check *c, uint32_t event);
/* Conditions no single event completes; call after the last event. */
enum check_status check_late(struct check *c);
/* Did the run fail? Everything but pending events must have executed. */
bool check_fails(struct check *c);
/* Did it surely not? It took another branch, or a pending event happened, or ... */
bool check_avoids(struct check *c);
const struct sched_view *check_view(const struct check *c);
uint64_t *check_values(struct check *c);  /* by symbol; valid for reads executed */
uint64_t check_memory(const struct check *c, uint32_t var);
bool check_executed(const struct check *c, uint32_t event);
uint64_t check_eval(struct check *c, expr_id e);
/* The condition that made the last step answer CHECK_PATH. */
const struct view_cond *check_broken(const struct check *c);

/* What a window that starts in this state must know. */
struct check_object {
	uint32_t owner; /* exclusive holder, or VIEW_NONE */
	uint32_t depth;
	int64_t count;  /* semaphore: its value; barrier: arrivals so far; once: 0, 1 begun, 2 done */
};
const struct check_object *check_object(const struct check *c, uint32_t object);
uint32_t check_shares(const struct check *c, uint32_t object, uint32_t thread);
/* Signals sent since thread began to wait on cond that nobody took; *all: or a broadcast. */
uint32_t check_tokens(const struct check *c, uint32_t cond, uint32_t thread, bool *all);
int64_t check_round(const struct check *c, uint32_t thread); /* of its barrier arrival */

/*
 * Execute a whole order from the start. *at: how far it came. Pending events
 * may be missing from it; other events may not.
 */
enum check_status check_order(struct check *c, const uint32_t *order, size_t n, size_t *at);

#endif
