/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every limit of the search for an explanation, with its unit and its reason. Effort is counted work: a unit is about a second
 * of a 3 GHz core (explain_effort()), and the same on every machine.
 */
#ifndef CSCHED_EXPLAIN_LIMITS_H
#define CSCHED_EXPLAIN_LIMITS_H

#define EXPLAIN_LIMITS(X) \
	/* how long it may take */ \
	X(EFFORT, 60, "effort", "for everything after the following; more patience must be asked for") \
	X(EFFORT_AGAIN, 8, "executions of the run", "come on top: a long run was followed, and is worth some more") \
	X(MOST_EFFORT, 240, "effort", "whatever the run's length") \
	X(COMPUTING, 2.5, "seconds of processor time per effort", "should a step take far longer than it ought to") \
	X(INSNS, 60e6, "instructions per effort", "executed, symbolic and concrete ones on the average") \
	/* scopes */ \
	X(WINDOW, 2000, "shared events", "the first scope: solved in a blink, and most bugs lie close to their failure") \
	X(WINDOW_TSO, 60, "shared events", "store buffers make the search much larger, and reach only a few events far") \
	X(TAIL_TSO, 20, "shared events", "of other threads behind the failing one's last") \
	X(GROWTH, 4, "times", "the next larger scope, where the smaller one is exhausted") \
	X(HISTORY_GROWTH, 16, "times", "where only execution looks: larger windows cost it little") \
	X(THIN, 16, "times", "a stretch that holds so many times fewer events than were asked for grows by this much") \
	X(LARGEST_WINDOW, 200000, "shared events", "more than the schedule side can show anyone") \
	X(EXECUTIONS, 4, "executions of the run", "to extract a scope; where half of the effort pays for them the whole run is one") \
	X(FOCUS_EVENTS, 20000, "shared events", "a failing thread that touched more is no smaller scope than all threads") \
	X(FOCUS_RUN, 2e8, "instructions", "a longer run is not executed as a whole, watched, three times") \
	X(FOCUS_EFFORT, 10, "effort", "for the focused scope, even when all else is spent: it has few events") \
	X(ONWARD_RUN, 2e8, "instructions", "a longer run is not gone through again for an answer that may be a little better") \
	X(ONWARD_EFFORT, 6, "effort", "nor is more than this spent on it") \
	/* methods */ \
	X(SOON, 1, "effort", "the solver's first try; most answers take less than a tenth of it") \
	X(LATER, 3, "effort", "its second, before it has all that is left") \
	X(REST, 10, "nominal cost", "of its third: other scopes and methods go before that") \
	X(HARD, 2, "effort", "what took the solver more than this is hard for each branch again; executing is not") \
	X(READABLE_PAIRS, 3, "pairs", "needed all together: nobody reads more") \
	X(PRICE_BRANCH, 1.05, "nominal cost", "of turning another branch: after the solver has named one that does not help, ...") \
	X(PRICE_BRANCH_HARD, 1.6, "nominal cost", "... and, where it is hard to solve, after execution") \
	X(PRICE_DIFFERENCE, 1.2, "nominal cost", "of execution: before the solver gets more effort, ...") \
	X(PRICE_DIFFERENCE_KNOWN, 1.5, "nominal cost", "... but after what threads do next, where there is a cause already") \
	X(PRICE_ONWARD, 0.1, "nominal cost", "on top, for looking at what threads do next") \
	X(PRICE_EARLIER, 2.5, "nominal cost", "of looking for what led to a cause: when nothing else is left for it") \
	X(PRICE_LOST, 2.2, "nominal cost", "of watching a sum's updates over the whole run") \
	X(PRICE_FOCUS, 2.3, "nominal cost", "on top, for looking at the whole run") \
	X(PRICE_BEFORE, 3.5, "nominal cost", "on top, for executing in a larger window") \
	X(PRICE_LARGER, 4, "nominal cost", "on top, for each step to a larger window") \
	X(PRICE_TSO, 40, "nominal cost", "on top, for store buffers, where nothing points to them") \
	X(BRANCHES, 8, "branches", "are turned and executed before it is given up to leave the recorded path") \
	X(BRANCH_EFFORT, 15, "effort", "for all of these") \
	X(BLOCKED_FIRST, 4, "threads", "of a deadlock that are let go first, in turn") \
	X(MOMENTS, 72, "executions", "each of three ways of going on, to and fro between a thousand switches") \
	X(CUT_EVENTS, 400, "events of a thread", "how far back the access may lie that begins what a second one ends") \
	X(REACH, 4000, "events", "of either order that are compared with each other ...") \
	X(WEIGHED, 20000, "pairs", "... and weighed") \
	X(TURNED, 128, "pairs", "that a passing order turns round, of which the smallest set is looked for") \
	X(DELTAS, 48, "executions", "to find it: enough for three of a hundred pairs") \
	X(DELTA_EFFORT, 2, "effort", "for these") \
	X(EARLIER, 48, "executions", "to find what led to a cause: two for each operation that was cut before it") \
	X(EARLIER_EFFORT, 2, "effort", "for these") \
	X(BEFORE_TRIES, 40, "executions of the stretch", "to look for a passing order in a larger window") \
	X(BEFORE_SOLVED, 20000, "shared events", "a larger window is not solved: the solver has shown that it finds nothing better") \
	X(LOST_EXECUTIONS, 8, "executions of the run", "to find the first lost update, write its window down and execute some of its rest") \
	X(LOST_EFFORT, 10, "effort", "for the solver, who sees a small window") \
	X(LOST_INSNS, 4e6, "instructions", "of that window: a thread that spins in it leaves events all along") \
	/* telling */ \
	X(CONTEXT, 8, "events of a thread", "before the root cause that should be seen, to say what fix fits") \
	X(LEAST_FAILING, 3, "orders", "have to fail, executed, before it is said that all that were tried did")

#define EXPLAIN_LIMIT(name, value, unit, reason) static const double LIMIT_##name = value;
EXPLAIN_LIMITS(EXPLAIN_LIMIT)
#undef EXPLAIN_LIMIT

#endif
