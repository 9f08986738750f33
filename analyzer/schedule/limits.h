/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every limit of solving, with its unit and its reason. A unit of effort (smt.h) is about a second of a 3 GHz core; it is counted
 * in steps of Z3 and of execution, and the same on every machine.
 */
#ifndef CSCHED_SCHEDULE_LIMITS_H
#define CSCHED_SCHEDULE_LIMITS_H

#include <stddef.h>

#define SCHED_LIMITS(X) \
	/* units of effort */ \
	X(double, RESOURCES, 4e6, "steps of Z3's own count per effort", "as measured") \
	X(double, NODES, 6e6, "nodes of the order per effort", "looked at between Z3's steps, which it does not count") \
	X(double, EXECUTED, 2e6, "events per effort", "executed by the checker; expressions aside") \
	X(double, PATIENCE, 3.0, "seconds per effort", "Z3's count runs slowly over long sums: this binds only there ...") \
	X(double, PATIENCE_LEAST, 5.0, "seconds", "... and not for small questions on a busy machine") \
	X(double, STATE_COST, 12, "events", "that could be executed instead of entering a state") \
	/* the failing order */ \
	X(size_t, FIRST_WINDOW, 160, "events", "around the place where a guess breaks, to be solved first") \
	X(size_t, WHOLE_AT_ONCE, 400, "events", "a trace so short is one window when that does not do") \
	X(size_t, REDUCE_EVENTS, 2500, "events", "reduction is quadratic in the stretch it works on; what lies before stays") \
	/* where the cause is looked for */ \
	X(size_t, FIRST_STUDY, 256, "events", "the first window of what-if questions: most causes are near the failure") \
	X(size_t, STUDY_GROWTH, 4, "times", "the next one") \
	X(size_t, STUDY_PAIRS, 60000, "conflicting pairs", "a few seconds, half a gigabyte: what lies before is taken as found") \
	X(size_t, CARRY_SEARCH, 2000, "edges", "how far back a stronger edge is looked for: keeps this linear") \
	X(double, QUICK_ASK, 0.3, "effort", "of a question that is easy, or not worth it") \
	X(size_t, EXHAUST_STATES, 40000, "states", "about a quarter of a second") \
	X(double, SAME_PATH_ASK, 3.0, "effort", "along the recorded path, before branches: a sum that is always the same takes for ever") \
	X(double, BRANCH_QUICK, 0.1, "effort per branch", "all are tried a little ...") \
	X(double, BRANCH_ASK, 0.5, "effort per branch", "where nothing is decided on the way to the failure's condition, ...") \
	X(double, RELAX_ALL, 4.0, "effort", "... for all of these") \
	X(double, BRANCH_ALL, 20.0, "effort", "for all branches") \
	X(size_t, MOST_VALUES, 4096, "values", "of a variable that are tried one by one") \
	/* the cause */ \
	X(double, MINIMIZE_ASK, 1.5, "effort", "to find out whether an ordering is needed; more: it stays, unproved") \
	X(double, MINIMIZE_ALL, 20.0, "effort", "for all orderings") \
	X(double, MINIMIZE_MANY, 2.0, "effort", "where they are many") \
	X(size_t, MINIMIZE_STATES, 1000000, "states", "a few seconds, where nothing else tells") \
	X(size_t, CAUSE_MANY, 64, "orderings", "nobody reads so many: only what is easy to drop is dropped") \
	X(size_t, CAUSE_HOPELESS, 1000, "orderings", "even the question takes a second") \
	X(double, PROOF_ALL, 3.0, "effort", "to make sure in larger windows") \
	/* alternates */ \
	X(size_t, SECTION_SEARCH, 400, "events", "a lock section longer than this is not turned as a whole") \
	X(size_t, TURN_LIMIT, 200, "pairs", "tried by execution before the solver is asked") \
	X(double, TURN_ASK, 1.0, "effort", "to turn one pair: the next may be easier, so all are tried a little first") \
	X(double, TURN_ALL, 15.0, "effort", "for all pairs") \
	X(int, GROW_QUESTIONS, 24, "questions", "to come closer to the failing order") \
	X(double, GROW_ALL, 1.0, "effort", "for these") \
	/* store buffers */ \
	X(double, FENCE_ASK, 2.0, "effort", "whether a store may stay late") \
	X(double, FENCE_ALL, 8.0, "effort", "for all stores") \
	X(size_t, FENCE_STORES, 6, "stores", "before a load that are looked at")

#define SCHED_LIMIT(type, name, value, unit, reason) static const type name = value;
SCHED_LIMITS(SCHED_LIMIT)
#undef SCHED_LIMIT

#endif
