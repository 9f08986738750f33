/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Candidates and the search for them: what the files of this room share. Nobody outside includes this. */
#ifndef CSCHED_EXPLAIN_CANDIDATE_H
#define CSCHED_EXPLAIN_CANDIDATE_H

#include "analyzer/explain/explain.h"
#include "analyzer/explain/limits.h"

#include <math.h>

/*
 * One answer: a failing order, a passing one, the pairs in which they differ, and what came of executing both. A method makes
 * it; after that it does not change.
 */
struct candidate {
	struct explanation *e;              /* whose run it is executed on; not owned */
	struct explain_scope scope;
	const struct ext_result *extracted; /* of the scope, likewise */
	struct sched_answer *answer;
	struct report_validation failing_proof, alternate_proof;
	char *failing_why, *alternate_why;  /* owned texts of the proofs */
	enum sched_keeps kept;              /* what the failing order keeps of the recorded run */
	char *note;                         /* an assumption to be added if this one is the answer; or NULL */
	size_t attempt;                     /* number of its attempt */
};

struct candidate *candidate_new(struct explanation *e, const struct explain_scope *scope, const struct ext_result *extracted);
/* With the failing order and the cause of `of`, as they were executed, and no passing order. */
struct candidate *candidate_copy(const struct candidate *of);
/* The failing order is the one of `of`, as that was executed. */
void candidate_failed_as(struct candidate *c, const struct candidate *of);
void candidate_free(struct candidate *c);

/* A scope that is looked at, what was extracted from it, and what has come of it so far. */
struct view {
	struct explain_scope scope;
	struct ext_result *extracted; /* NULL: not yet */
	double price;                 /* nominal cost of looking here at all */
	unsigned tried[8];            /* by method: times */
	bool closed;                  /* nothing more is to be tried here */
	bool executed_only;           /* larger than what the solver should see */
	const struct candidate *solved; /* what the solver found here last; or NULL */
	const struct candidate *last;   /* likewise, or by turning another branch */
	const struct candidate *base;   /* the best of these: where execution begins */
	const struct candidate *executed; /* the base from which execution began last */
	const struct candidate *traced; /* whose cause was last asked for what led to it */
	double branch_effort;           /* spent on branches */
	VEC(struct sched_ref) firm;     /* branches that were turned in vain: a thread, and the event they come after */
};

struct search {
	struct explanation *e;
	const struct explain_options *o;
	bool lost_sought;              /* lost updates were looked for */
	bool chosen;                   /* the window was asked for, and does not grow */
	VEC(struct view *) views;
	VEC(struct candidate *) found; /* all there are; owned */
	const struct candidate *best;  /* one of them, or NULL */
};

#define NO_USE INFINITY

/* How a method looks for a candidate in a scope. The table is in search.c. */
struct method {
	const char *name; /* as --why shows it */
	/* Nominal cost of trying it there (once more); NO_USE: there is nothing to be gained. */
	double (*cost)(const struct search *s, const struct view *v, unsigned tried);
	/* *out is NULL when it has nothing to offer; *outcome, unless NULL then, says what came of it instead (malloc'd). */
	err_t (*run)(struct search *s, struct view *v, unsigned tried, struct candidate **out, char **outcome);
};

/* core.c: Z3. */
double core_cost(const struct search *s, const struct view *v, unsigned tried);
err_t core_run(struct search *s, struct view *v, unsigned tried, struct candidate **out, char **outcome);
double branch_cost(const struct search *s, const struct view *v, unsigned tried);
err_t branch_run(struct search *s, struct view *v, unsigned tried, struct candidate **out, char **outcome);

struct core_options {
	double effort;           /* 0: all that is left */
	enum sched_keeps keeps;
	bool leave_path, unproved;
};
/* Solves the scope and executes its failing order; the candidate's passing orders are not executed yet. */
err_t core_solve(struct search *s, const struct view *v, const struct core_options *how, struct candidate **out);

/* difference.c: execution. */
double difference_cost(const struct search *s, const struct view *v, unsigned tried);
err_t difference_run(struct search *s, struct view *v, unsigned tried, struct candidate **out, char **outcome);
/* An order of base's threads that passes, looked for before this event of its failing order, within so much effort (0: no limit). */
err_t difference_from(const struct candidate *base, size_t before, double effort, struct candidate **out, char **outcome);

/* earlier.c: what led to the cause. */
double earlier_cost(const struct search *s, const struct view *v, unsigned tried);
err_t earlier_run(struct search *s, struct view *v, unsigned tried, struct candidate **out, char **outcome);

/* middle.c: updates lost far back. */
double lost_cost(const struct search *s, const struct view *v, unsigned tried);
err_t lost_run(struct search *s, struct view *v, unsigned tried, struct candidate **out, char **outcome);

/* scope.c */
char *scope_text(const struct explain_scope *s, const struct ext_result *x); /* malloc'd */
bool scope_same(const struct explain_scope *a, const struct explain_scope *b);
err_t scope_extract(struct explanation *e, const struct explain_options *o, const struct explain_scope *s,
		    struct ext_result **out);
/* The window that holds the so much longer stretch that the next look needs; UINT64_MAX: the whole run. */
uint64_t scope_larger(const struct explanation *e, uint64_t window, const struct ext_result *x);

/* search.c */
err_t search_run(struct search *s);
/* The view of this scope; made where there is none. */
struct view *search_view(struct search *s, const struct explain_scope *scope, double price);

/* attempt.c: what this method came to, since so much effort was spent. */
void attempt_note(struct explanation *e, const struct view *v, const char *method, double since, struct candidate *c,
		  const char *outcome);

/* validate.c */
/* Counts how an order ended that was to pass. */
void candidate_count(struct explanation *e, const struct mach_outcome *out);
/* Has the machine do this order; *why is an owned text that the proof points to. */
err_t candidate_execute(const struct candidate *c, const struct sched_order *order, enum mach_outcome_kind wanted,
			bool others_first, struct report_proof *proof, char **why);
/* Both ways of going on behind it: does it pass? */
err_t candidate_execute_alternate(const struct candidate *c, const struct sched_alternate *alt, struct report_proof *proof,
				  char **why);
err_t candidate_execute_failing(struct candidate *c, const struct sched_order *failing);
/* Executes the alternates until one passes the failure; that one becomes the first. */
err_t candidate_execute_alternates(struct candidate *c);

/* onward.c */
/* Some pair of the root cause is about an event that was still to come when the run failed. */
bool candidate_blames_computed(const struct candidate *c);
/* The last read of the failing thread that its failure depends on. */
bool onward_decisive_read(const struct sym_trace *t, struct sched_ref *out);
/* A thread other than the failing one that had not ended, or NULL. */
const struct sym_thread *onward_unended(const struct sym_trace *t);
bool onward_may_help(const struct sym_trace *t); /* one thread fails by itself, and another one had still something to do */
void onward_assume(const struct candidate *c); /* says in the trace's assumptions what was computed */
/* It does not fail once the others go on before this event of the failing thread: executed. */
bool onward_waiting_helps(const struct candidate *c, struct sched_ref *at);
void onward_hold_back(const struct candidate *c); /* executes that; it is counted among what was tried */

/* history.c: the same answer in a larger window, where this one cuts off what led to it; or c. */
struct candidate *history_extend(struct search *s, struct candidate *c);
/* c's answer told of a larger extraction; NULL: it cannot be. *more: events that come before it now. */
struct candidate *history_lengthen(const struct candidate *c, const struct view *larger, size_t *more);

#endif
