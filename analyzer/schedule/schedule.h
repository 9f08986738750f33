/*
 * The schedule side's one entry point: from a symbolic trace to the failing
 * schedule, its root cause and alternates. Knows nothing of x86 or ELF.
 *
 * Everything in the answer has been executed by the independent checker
 * (order/check.h); what could not be confirmed is absent and `why` says so.
 */
#ifndef CSCHED_SCHEDULE_H
#define CSCHED_SCHEDULE_H

#include "analyzer/order/order.h"

/* What the reduced failing schedule keeps of the recorded run: it strays less far, which not every
 * run bears. */
enum sched_keeps {
	SCHED_KEEPS_FAILURE, /* only that it fails along the recorded paths */
	SCHED_KEEPS_TIMES,   /* the times, too */
	SCHED_KEEPS_VALUES,  /* and what every read sees */
};

struct sched_order;

struct sched_options {
	enum sched_model model;
	bool use_times;     /* respect time_lo/time_hi (default true) */
	double timeout;     /* seconds for the whole answer; 0: none */
	double effort;      /* the same in effort, which is counted and no clock's; 0: none */
	enum sched_keeps keeps;
	/*
	 * Executes the failing order, which keeps this much, before its cause is looked for; false: an
	 * order that keeps more is wanted. Not called when NULL.
	 */
	bool (*stands)(void *arg, const struct sched_order *failing, enum sched_keeps keeps);
	void *stands_arg;
	uint32_t alternates; /* how many to look for (default 1) */
	uint32_t window;    /* first window in events; 0: choose */
	bool unproved;      /* a root cause of the smallest window that has one will do */
	bool leave_path;    /* an answer to the same trace had to leave the recorded path: do so at
			     * once; only conditions have become firm since */
	/* Called now and then with a phase name and 0..1 (or <0: unknown); returning
	 * true stops the work: best so far is returned. May be NULL. */
	bool (*progress)(void *arg, const char *phase, double part);
	void *progress_arg;
};

struct sched_alternate {
	struct sched_order order;
	struct sched_edge inverted; /* the pair of the root cause it turns round; index SYM_NONE: none is known */
	bool single;                /* only that pair was turned (paper's nearest) */
	bool path_differs;          /* a branch after the pair goes elsewhere: conditions
				     * behind it were dropped, events up to it are exact */
	struct sched_ref left;      /* path_differs: threads[thread].conds[index] is that branch */
	bool executed;              /* found by executing it, not by solving: the checker has
				     * not seen it */
	size_t distance;            /* pairs ordered differently from the failing order */
};

/* A load that took its value while an earlier store of its thread was still in the buffer. */
struct sched_delay {
	struct sched_ref store, load;
};

struct sched_answer {
	bool found;             /* a failing schedule along the recorded paths exists */
	struct sched_order recorded; /* as solved, before reduction */
	struct sched_order failing;  /* after context-switch reduction */
	struct sched_edge *cause;    /* the root cause: minimal */
	size_t ncause;
	bool cause_minimal;
	size_t cause_events;    /* proved for every order of so many events at the end; 0: of all */
	const char *rule;       /* found by this rule, not as a core; NULL: by none */
	bool cause_executed;    /* found by executing an order that does not fail, which keeps ... */
	size_t cause_kept;      /* ... so many events of the failing one */
	bool cause_tested;      /* likewise; turning these pairs round is enough, and with any of them left as it was no order
				 * was found that passes: delta debugging */
	bool cause_earlier;     /* likewise; what was taken for the cause is its consequence, and harmless without it */
	/*
	 * SCHED_TSO, and the failure needs store buffers: kept in program order (a
	 * fence between store and load) these pairs make it impossible along the
	 * recorded paths; none can be left out. 0 when it fails without reordering, too.
	 */
	struct sched_delay *delays;
	size_t ndelays;
	bool deterministic;     /* proved: no feasible schedule avoids the failure */
	bool tried_always;      /* not proved, but every other order that was executed fails, too */
	struct sched_alternate *alternates; /* nearest first */
	size_t nalternates;
	bool timed_out;         /* or interrupted: the rest is the best so far */
	char *why;              /* what is missing and why, or NULL */
	struct {
		size_t events, window;               /* the largest window that the solver was asked about */
		size_t questions;                    /* to the solver, and of the largest of them ... */
		size_t constraints, variables;       /* ... clauses and Booleans */
		size_t core_plain, core_minimal, pairs_tried;
		double t_fail, t_csr, t_root, t_alt; /* seconds */
		double effort;                       /* a unit is about a second of a 3 GHz core */
	} stats;
};

void sched_options_init(struct sched_options *o);
err_t sched_solve(const struct sym_trace *t, const struct sched_options *o,
		  struct sched_answer **out);
void sched_answer_free(struct sched_answer *a);
struct sched_answer *sched_answer_copy(const struct sched_answer *a);
/*
 * For how much of the trace the root cause is proved, or how it was found, in words, malloc'd; NULL: for all of it, or
 * there is none.
 */
char *sched_reach(const struct sched_answer *a);

/*
 * The same answer for a trace that begins earlier: more[thread] events came to the front of each
 * thread of `was`, otherwise it is the same. Executed again; NULL when that does not hold.
 */
struct sched_answer *sched_lengthen(const struct sym_trace *was, const struct sym_trace *t,
				    enum sched_model model, const struct sched_answer *a,
				    const uint32_t *more);

/*
 * Is there an order of these events that satisfies all path conditions,
 * recorded values and synchronisation, failing or not? An error only when
 * stopped or timed out before that is known. Free *out when *found.
 */
err_t sched_feasible(const struct sym_trace *t, const struct sched_options *o,
		     struct sched_order *out, bool *found);

#endif
