/*
 * One answer in the making. sched_solve() owns it; the phases (search, reduce,
 * cause, alternates) read and fill it.
 */
#ifndef CSCHED_SCHEDULE_WORK_H
#define CSCHED_SCHEDULE_WORK_H

#include "analyzer/schedule/encode.h"
#include "analyzer/schedule/limits.h"
#include "analyzer/schedule/schedule.h"

struct work {
	const struct sched_options *o;
	struct order_view *v;
	struct order_view *timeless; /* the same without time stamps: they tell what happened
				      * in the recorded run and bind no other one */
	struct smt_limit limit;
	const char *phase;
	uint64_t *init, *syms; /* what the trace leaves open and we have chosen */
	uint32_t *order;       /* a total order of all events but pending ones */
	size_t n;
	uint64_t *rank;        /* by event: its place in order[]; pending ones at the end */
	uint32_t relax;        /* for studies: see order_check_set_relax(), or SYM_NONE */
	bool always;           /* range_always_fails() */
	bool trim;             /* for studies: see order_window_new() */
	enum sched_keeps keeps; /* what reduce_switches() keeps */
	size_t study_events;   /* how many a window for what-if questions may hold */
	struct sched_answer *a;
};

/* Search (search.c, guess.c). */
enum search_result { SEARCH_FOUND, SEARCH_NONE, SEARCH_UNKNOWN };

/* A plausible total order of all events but pending ones, in w->order. */
void guess_order(struct work *w, bool failing);
/* Turn w->order into a feasible one, and a failing one if asked to. */
enum search_result search_order(struct work *w, bool failing);
/* The conditions that cannot hold together, as a sentence; malloc'd. */
char *search_conflict(struct work *w);

/* Executed as an alternate, with diverge as in order_check_set_diverge(): is it one? */
bool work_avoids(struct work *w, const uint32_t *order, size_t n, uint32_t diverge);
/*
 * A state in which order[0..from) has been executed. ORDER_EXACT is about the
 * recorded run, with its time stamps, ORDER_ONWARD about runs that might be.
 */
struct order_check *work_state(struct work *w, size_t from, enum order_end end);
void work_rank(struct work *w);
/* The solver was asked about so many events. */
void work_asked(struct work *w, size_t events);
/* So many events were executed: counts as effort. */
void work_executed(struct work *w, size_t events);
/* Add a sentence to the answer's why. */
void work_why(struct work *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* As part of the answer: refs, switches, values. */
void work_export(struct work *w, const uint32_t *order, size_t n, bool fails,
		 struct sched_order *out);
bool work_stopped(struct work *w);

/* Context-switch reduction of w->order, which fails and keeps failing (reduce.c). */
void reduce_switches(struct work *w);

/* Root cause and alternates (cause.c, alternate.c). */
void find_writer_first(struct work *w); /* behind.c: of a deadlock for which no order of events accounts */
void find_cause(struct work *w);
/* A branch on the way to the failure (branch.c). */
#define BRANCHES 48
struct branch {
	uint32_t cond; /* view.conds[] */
	uint64_t at;   /* place of its event in the failing order */
	bool leads;    /* behind it lies what the failure depends on */
	bool asks;     /* it looks at what the failure's condition reads */
	bool own;      /* of the failing thread */
	bool behind;   /* the failure, in the failing order */
};
/* Those that could go elsewhere, the last of the run first. *some: there are firm ones apart. */
size_t find_branches(const struct work *w, struct branch *out, bool *some);
/* No order of the recorded events makes the failure's condition false, by adding up (range.c). */
bool range_always_fails(const struct order_view *v);
/* After find_cause(): which stores came too late (fence.c). */
void find_delays(struct work *w);

/* An ordering of the failing schedule that might belong to the cause. */
struct study_edge {
	uint32_t before, after;
	Z3_ast keep;   /* assumed: it stays so */
	Z3_ast turned; /* assumed: it is the other way round */
};

/* A window at the end of the failing order, ready for questions about "what if". */
struct study {
	struct work *w;
	struct order_window *win;
	struct encoding *enc;
	size_t from, to; /* the window is w->order[from..to) */
	uint32_t diverge;
	VEC(struct study_edge) edges;
	VEC(Z3_ast) assume;
	bool everybody;           /* all pending events must happen, not just one */
	uint32_t *witness;        /* a whole order that does not fail, or NULL ... */
	size_t nwitness;          /* ... if one was met when the window was chosen */
	double floor;             /* effort the easiest question takes: comes on top */
	bool by_states;           /* the states told what the solver did not know: ask them first */
	struct order_check *run, *base; /* to execute orders of the window */
	uint64_t *place;          /* by event: scratch */
};

/*
 * The last `window` events up to `to`; see window.h for diverge, with which a
 * window may end before the order does.
 */
struct study *study_new(struct work *w, size_t window, size_t to, uint32_t diverge);
void study_free(struct study *s);
/* Is there a run that does not fail and keeps these edges? */
enum smt_result study_ask(struct study *s, const uint32_t *keep, size_t nkeep, uint32_t turned,
			  double effort);
/* Execute an order of the window: feasible, and it does not fail? */
bool study_avoids(struct study *s, const uint32_t *order, size_t n);
/*
 * An order of the window, in out, with the edge the other way round that does
 * not fail and keeps these edges, found without the solver (turn.c); its length, or 0.
 */
size_t turn_directly(struct study *s, uint32_t edge, const uint32_t *keep, size_t nkeep,
		   uint32_t *out);
/* The same for any edge, nearest pairs first; SYM_NONE when there is none. */
uint32_t turn_any(struct study *s, uint32_t *out);
void turn_sort(const struct study *s, uint32_t *edges, size_t n); /* nearest pairs first */
/*
 * Is there an order of the window that keeps these edges, has that one (or SYM_NONE) the
 * other way round and does not fail? By walking all its states, at most limit of them (exhaust.c); it is then in out.
 */
#define EXHAUST_EVENTS 400
enum smt_result exhaust_window(struct study *s, const uint32_t *keep, size_t nkeep, uint32_t turned,
			       size_t limit, uint32_t *out);
/* Where to look for the cause (cause_window.c). */
/* A window in which something avoids the failure, or NULL; ... */
struct study *find_study(struct work *w);
/* ... how many events it may hold by the pairs in them, and in all, and the next size. */
size_t study_affordable(const struct work *w);
size_t study_largest(const struct work *w);
size_t study_grow(const struct work *w, size_t size);
/* After SMT_SAT: the whole order; malloc'd. */
uint32_t *study_order(struct study *s, size_t *n);
/* By turning orderings of the cause; if those are not enough, any. */
/* by_moving: only those that are found without the solver, among the pairs of the cause. */
void find_alternates(struct work *w, struct study *s, const uint32_t *cause, size_t ncause,
		     bool by_moving);

#endif
