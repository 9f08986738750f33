/*
 * The pipeline: everything that is known about a recorded failure.
 *
 * A phase without an answer is not an error: it leaves a gap with its reason,
 * and what the phases before it found stays. Errors are for traces that cannot
 * be read or machines that cannot go on.
 */
#ifndef CSCHED_EXPLAIN_H
#define CSCHED_EXPLAIN_H

#include "analyzer/dsp/dsp.h"
#include "analyzer/enforce/enforce.h"
#include "analyzer/execute/orders.h"
#include "analyzer/report/report.h"
#include "analyzer/symtrace/extract.h"

struct explain_options {
	uint64_t window;     /* events of the first window; 0: choose */
	double timeout;      /* seconds for everything; 0: none ... */
	double effort;       /* ... then so much effort, behind the following; 0: no limit */
	bool wants_cause;    /* what has none is refused before it is followed */
	bool whole;          /* look at the whole run, however long: positions get occurrences */
	uint32_t alternates;
	enum sched_model model;
	/* True stops the work. part < 0: unknown. May be NULL. */
	bool (*progress)(void *arg, const char *phase, double part);
	void *progress_arg;
};

/* Orders that were to avoid the failure, as the machine executed them. */
struct explain_tried {
	unsigned orders;
	unsigned failed;   /* in the recorded failure */
	unsigned recurred; /* past it, and into the same one: another thread's, or a later round's */
	unsigned other;    /* into another failure */
	unsigned left;     /* not to their end: beyond what was recorded, or not to be executed */
	unsigned passed;
	bool held;         /* in the last of all orders another thread stood in a call whose end is not known */
	bool unknown;      /* the others, going on before the failing thread, came to what was never recorded */
};

/* What an analysis may look at. A value: what is extracted from a run follows from it alone. */
struct explain_scope {
	uint64_t window;    /* the last so many shared events; 0: none chosen yet */
	bool whole;         /* the run from its beginning, however long */
	bool in_middle;     /* a stretch in the middle of the run instead: around */
	struct ext_middle around;
	bool focus;         /* of what is shared only what the failing thread touched */
	bool onward;        /* and what threads do next, behind the record */
	enum sched_model model;
};

struct explanation {
	struct trc *t;
	struct img_set *images;
	struct mach_run *run;
	struct mach_result followed;
	struct explain_scope scope;   /* of the answer */
	double deadline;              /* of everything, on CLOCK_MONOTONIC; 0: none */
	double effort;                /* allowed behind the following */
	double effort_end;            /* the same in effort, see explain_effort(); 0: none */
	double computed_end;          /* and on CLOCK_PROCESS_CPUTIME_ID, should effort be far from time */
	double solved;                /* effort of the schedule side so far */
	struct ext_survey *surveys[5]; /* where shared events lie, by kind of scope */
	struct ext_result *extracted; /* of that scope; NULL: the run could not be followed */
	struct sched_answer *answer;  /* NULL: no symbolic trace */
	struct dsp *dsp;
	struct report_validation failing_proof, alternate_proof;
	char *failing_why, *alternate_why; /* owned texts of the proofs */
	uint64_t ordered_insns;       /* executed in other orders than the recorded one */
	struct explain_tried tried;   /* of these, for all answers */
	enum report_confidence confidence;
	const char *confidence_text;  /* see struct report; in texts */
	bool printed;                 /* one of these did, what was not recorded */
	bool timed;                   /* or was told a time that was not */
	VEC(struct report_phase) phases;
	VEC(struct report_gap) gaps;
	VEC(struct report_attempt) attempts;
	size_t asked, clauses, bools; /* of the solver, over all attempts; see struct sched_answer */
	VEC(char *) texts;            /* of gaps and attempts */
};


void explain_options_init(struct explain_options *o);

/* Opens a trace with its images and machine, and follows it to its end. */
err_t explain_follow(const char *path, const struct explain_options *o, struct explanation **out);
/* Its symbolic trace, of its scope: that is the options' at first. Needs a followed run. */
err_t explain_extract(struct explanation *e, const struct explain_options *o);
struct ext_options explain_extraction(struct explanation *e, const struct explain_scope *s);
/* The rest: schedule, root cause, alternate, projection, validation. */
err_t explain_solve(struct explanation *e, const struct explain_options *o);
void explanation_free(struct explanation *e);

/* effort.c */
/*
 * What has been done so far, counted: the same on every machine, and about seconds of a 3 GHz core.
 */
double explain_effort(const struct explanation *e);
double explain_effort_again(const struct explanation *e); /* what it takes to execute the run once more */
/* The run was followed: from now on that counts. */
void explain_allow_effort(struct explanation *e, const struct explain_options *o);
double explain_clock(void);
bool explain_out_of_time(const struct explanation *e); /* its deadline is over */
bool explain_past_deadline(const struct explanation *e); /* of a time that was asked for */
bool explain_computed_long(const struct explanation *e); /* far longer than the effort ought to take */
void explain_note_effort(struct explanation *e); /* as a gap, when it was all used */

/* outside.c: an error that says so when another process sent the signal that the run failed by. */
err_t explain_from_outside(const struct trc *t);
/* inherited.c: an error that says so when a forked process waits for a lock that nobody in it has. */
err_t explain_inherited_lock(const struct trc *t, struct img_set *images);

/* notes.c: all that is said beside the answer at hand. */
void explain_notes(struct explanation *e);

/* A gap, with its reason (copied). */
void explain_gap(struct explanation *e, const char *phase, const char *why);
/* So much more time for this phase. */
void explain_phase_done(struct explanation *e, const char *name, double since);

/* What a pair that is turned round tells, from worst to best. */
enum explain_pair {
	EXPLAIN_PAIR_NONE,
	EXPLAIN_PAIR_OBJECTS,
	EXPLAIN_PAIR_ACCESSES,
	EXPLAIN_PAIR_CUTS_GUARDED, /* both under one lock: what was cut is two stretches under it, at most */
	EXPLAIN_PAIR_CUTS,
};

/*
 * decisive.c: `saving` keeps the failing order for its first `kept` events and does not fail. The
 * pair of the stretch from..to of the failing order that `saving` turns round and that tells most;
 * *end: where both are behind in `saving`.
 */
enum explain_pair explain_decisive_pair(const struct sym_trace *t, const struct sched_order *failing,
					size_t from, size_t to, const struct sched_order *saving,
					size_t kept, struct sched_edge *pair, size_t *end);

/* "Use after free: ...", "Use after return: ...", "Destroyed mutex: ...", "Closed descriptor: ...", malloc'd; NULL: none was seen. (misuse.c) */
char *explain_misuse(const struct explanation *e);
/* What to do about a use after free, where the projection's hint is about something else. */
void explain_misuse_hint(struct explanation *e);

/* The points of an order; of, unless NULL: by event, its point from 1, 0: it has none. */
struct mach_point *explain_points(const struct ext_result *x, const struct sched_order *o, size_t *n, size_t *of);
/*
 * The run becomes the failing order of the answer, or the passing one (there is one, and it was executed): see `keep' in
 * execute/orders.h. Nothing else can be asked of the explanation any more.
 */
err_t explain_keep_order(struct explanation *e, bool failing, struct mach_outcome *out);

/* What its orders are enforced from, on the real program. */
struct enforce explain_enforce(struct explanation *e);
/* Schedule files of both orders, beside the streams of a trace that is a directory. */
void explain_keep_orders(struct explanation *e, const char *trace);

#endif
