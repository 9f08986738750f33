/* SPDX-License-Identifier: GPL-2.0-or-later */
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
 * does. ORDER_EXACT takes the end literally: a lock still held stays held.
 * ORDER_ONWARD lets a thread that has executed its last event go on
 * (order_goes_on()), so what it still holds counts as released; alternates are
 * judged so, because the lock an assertion failed under is released once the
 * assertion holds.
 */
#ifndef CSCHED_ORDER_CHECK_H
#define CSCHED_ORDER_CHECK_H

#include "analyzer/order/view.h"

enum order_end { ORDER_EXACT, ORDER_ONWARD };

enum order_status {
	ORDER_OK,
	ORDER_NOT_NEXT, /* program order, fork/join or time bounds broken */
	ORDER_BLOCKED,  /* synchronisation does not let it happen now */
	ORDER_VALUE,    /* a recorded value is not what it would read */
	ORDER_PATH,     /* a branch would go elsewhere */
};

struct order_check;

/*
 * init: value of each variable without a recorded one, and syms: of each
 * symbol nobody reads; NULL for zeros.
 */
struct order_check *order_check_new(const struct order_view *v, enum order_end end, const uint64_t *init,
				    const uint64_t *syms);
void order_check_free(struct order_check *c);

/*
 * A state to come back to. It shares the values of symbols with c, so going
 * back is right only while the events before it are executed as they were.
 */
struct order_check *order_check_save(const struct order_check *c);
void order_check_restore(struct order_check *c, const struct order_check *saved);
/*
 * Let the thread of this condition (a view.conds[] number; it has an event it
 * comes after) leave the recorded path behind that event: at this or another
 * condition there. Its later conditions do not count, and an order may end
 * with that event.
 */
void order_check_set_diverge(struct order_check *c, uint32_t cond);
/*
 * Or only forget the conditions of its thread from there on: the events stay.
 * For branches on the way to the failure that decide no event, such as those
 * of printing a number.
 */
void order_check_set_relax(struct order_check *c, uint32_t cond);

enum order_status order_check_step(struct order_check *c, uint32_t event);
/* Could it happen now, path conditions and values aside? Executes nothing. */
enum order_status order_check_ready(struct order_check *c, uint32_t event);
/* The same for states with the same future, as far as symbols already read do not matter. */
uint64_t order_check_hash(const struct order_check *c);
/* The next event of a chain, or SYM_NONE. */
uint32_t order_check_next(const struct order_check *c, uint32_t chain);
/* Would a read of this event now see what its conditions ask for? Executes nothing. */
enum order_status order_check_peek(struct order_check *c, uint32_t event);
/* Conditions no single event completes; call after the last event. */
enum order_status order_check_late(struct order_check *c);
/* Did the run fail? Everything but pending events must have executed. */
bool order_check_fails(struct order_check *c);
/* Did it surely not? It took another branch, or a pending event happened, or ... */
bool order_check_avoids(struct order_check *c);
const struct order_view *order_check_view(const struct order_check *c);
uint64_t *order_check_values(struct order_check *c);  /* by symbol; valid for reads executed */
uint64_t order_check_memory(const struct order_check *c, uint32_t var);
bool order_check_executed(const struct order_check *c, uint32_t event);
uint64_t order_check_eval(struct order_check *c, expr_id e);
/* The condition that made the last step answer ORDER_PATH. */
const struct order_view_cond *order_check_broken(const struct order_check *c);

/* What a window that starts in this state must know. */
struct order_check_object {
	uint32_t owner; /* exclusive holder, or SYM_NONE */
	uint32_t depth;
	int64_t count;  /* semaphore: its value; barrier: arrivals so far; once: 0, 1 begun, 2 done */
};
const struct order_check_object *order_check_object(const struct order_check *c, uint32_t object);
uint32_t order_check_shares(const struct order_check *c, uint32_t object, uint32_t thread);
/* Signals sent since thread began to wait on cond that nobody took; *all: or a broadcast. */
uint32_t order_check_tokens(const struct order_check *c, uint32_t cond, uint32_t thread, bool *all);
int64_t order_check_round(const struct order_check *c, uint32_t thread); /* of its barrier arrival */

/*
 * Execute a whole order from the start. *at: how far it came. Pending events
 * may be missing from it; other events may not.
 */
enum order_status order_check_run(struct order_check *c, const uint32_t *order, size_t n, size_t *at);

#endif
