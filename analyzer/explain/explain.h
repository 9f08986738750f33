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
#include "analyzer/machine/machine.h"
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
	struct explain_scope scope;   /* of the answer at hand, or of what is looked at now */
	double deadline;              /* of everything, on CLOCK_MONOTONIC; 0: none */
	double effort;                /* allowed behind the following */
	double effort_end;            /* the same in effort, see explain_effort(); 0: none */
	double computed_end;          /* and on CLOCK_PROCESS_CPUTIME_ID, should effort be far from time */
	double solved;                /* effort of the schedule side so far */
	enum sched_keeps keeps;       /* what a failing schedule keeps of the recorded run at first */
	enum sched_keeps kept;        /* what the one that was executed last keeps of it */
	bool lost_sought;             /* lost updates were looked for (middle.c) */
	bool focus_tried;
	double soon;                  /* effort that one window may take now; 0: all that is left */
	bool unproved;                /* whether a root cause stands in larger windows is not asked now */
	struct ext_survey *survey;    /* where shared events lie, for every window */
	struct ext_result *extracted; /* NULL: the run could not be followed */
	struct sched_answer *answer;  /* NULL: no symbolic trace */
	struct dsp *dsp;
	struct report_validation failing_proof, alternate_proof;
	char *failing_why, *alternate_why; /* owned texts of the proofs */
	uint64_t ordered_insns;       /* executed in other orders than the recorded one */
	struct explain_tried tried;   /* of these, for all answers */
	enum report_confidence confidence;
	const char *confidence_text;  /* see struct report; in texts */
	bool printed;                 /* one of these did, what was not recorded */
	VEC(struct report_phase) phases;
	VEC(struct report_gap) gaps;
	VEC(struct report_attempt) attempts;
	size_t attempt;               /* which of these the answer at hand is from */
	size_t asked, clauses, bools; /* of the solver, over all attempts; see struct sched_answer */
	VEC(char *) texts;            /* of gaps and attempts */
};


void explain_options_init(struct explain_options *o);

/* Opens a trace with its images and machine, and follows it to its end. */
err_t explain_follow(const char *path, const struct explain_options *o, struct explanation **out);
/* Its symbolic trace, of its scope: that is the options' at first. Needs a followed run. */
err_t explain_extract(struct explanation *e, const struct explain_options *o);
struct ext_options explain_extraction(struct explanation *e);
/* The rest: schedule, root cause, alternate, projection, validation. */
err_t explain_solve(struct explanation *e, const struct explain_options *o);
void explanation_free(struct explanation *e);

/*
 * Schedule, root cause and alternates of the symbolic trace at hand; leave_path as in schedule.h. The failing
 * schedule has been executed, unless its answer had to leave the path before, or under TSO: then the
 * machine may lack what it needs.
 */
err_t explain_solve_window(struct explanation *e, const struct explain_options *o, bool leave_path);

/* soon.c: the same; where that takes long an answer is also looked for by executing. chosen: the window is not to grow. */
err_t explain_solve_soon(struct explanation *e, const struct explain_options *o, bool chosen);
bool explain_executed(const struct explanation *e); /* the answer's alternate was found by that, and does not fail */

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

/*
 * attempt.c: what this method (a constant text) came to, since so much effort was spent. outcome: in words; NULL: it is the
 * answer at hand. taken: that is from this attempt.
 */
void explain_attempt(struct explanation *e, const char *method, double since, const char *outcome, bool taken);
/* The orders of the last attempt have been executed meanwhile. */
void explain_attempt_executed(struct explanation *e, double since);

/* notes.c: all that is said beside the answer at hand. */
void explain_notes(struct explanation *e);
/* The machine has no store buffers: what needs them would only keep its threads spinning. */
bool explain_needs_buffers(const struct explanation *e);

/* A gap, with its reason (copied). */
void explain_gap(struct explanation *e, const char *phase, const char *why);

/* validate.c */
/* Counts how an order ended that was to pass. */
void explain_count_tried(struct explanation *e, const struct mach_outcome *out);
/* Has the machine do this order; *why is an owned text that the proof points to. */
err_t explain_execute(struct explanation *e, const struct sched_order *order,
		      enum mach_outcome_kind wanted, bool others_first, struct report_proof *proof,
		      char **why);
/* The points of an order; of, unless NULL: by event, its point from 1, 0: it has none. */
struct mach_point *explain_points(const struct ext_result *x, const struct sched_order *o, size_t *n,
				  size_t *of);
/* Executes a failing schedule. */
err_t explain_validate_failing(struct explanation *e, const struct sched_order *failing);
/* Executes the alternates until one passes the failure; that one becomes the first. */
err_t explain_validate_alternates(struct explanation *e);

/*
 * serial.c: no alternate stands its execution. Looks for the last moment of the failing order, before
 * this event of it (SIZE_MAX: any), from which, each thread going as far as it can, it does not fail;
 * that becomes the first alternate.
 */
err_t explain_serial(struct explanation *e, size_t before);
bool explain_has_cause(const struct explanation *e); /* one that was shown to be minimal */

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

/*
 * later.c: nothing that was recorded avoids the failure, but a thread had not ended. Looks for an
 * answer with what such threads do next, computed by the machine; the answer stays as it was
 * unless there is one whose orders were executed.
 */
err_t explain_solve_later(struct explanation *e, const struct explain_options *o);
/* The last read of the failing thread that its failure depends on. */
bool explain_decisive_read(const struct sym_trace *t, struct sched_ref *out);
/* A thread other than the failing one that had not ended, or NULL. */
const struct sym_thread *explain_unended(const struct sym_trace *t);
void explain_assume_computed(struct explanation *e); /* says so in the trace's assumptions */
/*
 * When that gave nothing: true when it does not fail once the others go on before this event of
 * the failing thread: executed.
 */
bool explain_waiting_helps(struct explanation *e, struct sched_ref *at);

/* An answer with all that belongs to it, put aside while another is looked for. (scope.c) */
struct explain_candidate {
	struct explain_scope scope;
	struct ext_result *extracted;
	struct sched_answer *answer;
	struct report_validation failing_proof, alternate_proof;
	char *failing_why, *alternate_why;
	size_t attempt;
	int grade; /* enum judge_grade, as it was put aside */
};

struct explain_candidate explain_put_aside(struct explanation *e);
void explain_put_back(struct explanation *e, struct explain_candidate *c); /* what was found since is freed */
void explain_forget(struct explain_candidate *c);

/*
 * Looks for an answer in another scope; the better of the two stays, by the judge. That the look fails, or comes to no
 * end, is no reason to lose the answer at hand. True: the new one is the better.
 */
bool explain_try(struct explanation *e, const struct explain_scope *s, const struct explain_options *o,
		 err_t (*look)(struct explanation *e, const struct explain_options *o, void *arg), void *arg);

/*
 * middle.c: no cause was found, and the window is not the whole run. Looks for updates that were lost
 * before it; the answer stays as it was unless there is one both orders of which were executed.
 */
err_t explain_lost_updates(struct explanation *e, const struct explain_options *o);

/*
 * focus.c: no cause was found. Looks at the whole run, at what the failing thread touched and at nothing else; the
 * answer stays as it was unless there is one both orders of which were executed.
 */
err_t explain_focus(struct explanation *e, const struct explain_options *o);

/* history.c: the same answer in a larger window, where this one cuts off what led to it. */
err_t explain_look_further_back(struct explanation *e, const struct explain_options *o);
/* history.c: nothing in this window helps, the damage having been done before it: an alternate from there. */
err_t explain_look_before(struct explanation *e, const struct explain_options *o);

/*
 * schedule_file.c: the orderings that matter, of the failing order or of an alternate, for
 * enforcement on the real program. Both can be enforced in several ways, counted
 * from 0, the likeliest first; ERR_NOANSWER: there is no such way. A failing order also with the
 * synchronisation that led to where its window begins.
 */
err_t explain_write_failing(struct explanation *e, unsigned way, FILE *f);
err_t explain_write_alternate(struct explanation *e, unsigned way, FILE *f);
/* The file beside the trace that holds it; malloc'd. */
char *explain_schedule_name(const char *trace, bool alternate, unsigned way);
/* All of them, beside the streams of a trace that is a directory; those that cannot be written are not there then. */
void explain_keep_schedules(struct explanation *e, const char *trace);
#define EXPLAIN_FAILING_WAYS 2
#define EXPLAIN_MAX_WAYS 9 /* of alternates */

#endif
