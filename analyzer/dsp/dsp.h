/*
 * The differential schedule projection: what the failing schedule and the
 * nearest schedule that does not fail do differently, and nothing else.
 *
 * Source is the root-cause subschedule (the events of answer->cause inside
 * answer->failing), target the first alternate. An event is projected when
 * it is part of
 *   - a dataflow variation that has a say in the failure: a read that both
 *     schedules execute and that sees another write (or the initial value) in
 *     one than in the other, and that the root cause names, or the failure's
 *     condition is computed from, or a projected write whose value differs; or
 *   - a pair of root-cause events that the two schedules order differently; or
 *   - the failure itself (SYM_FAIL, or the acquisitions that block for ever and
 *     those that hold what they wait for).
 * What precedes both events of every such pair is the common prefix and is
 * left out unless a variation starts there.
 *
 * Without an alternate the projection holds the root-cause events and the
 * dataflows among them; without a root cause (the failure does not depend on
 * the order, or no schedule was found) it is empty. `note` says which.
 *
 * A struct dsp holds indices into the trace, never pointers: it may be used
 * with the trace and answer it was built from, and frees independently.
 */
#ifndef CSCHED_DSP_H
#define CSCHED_DSP_H

#include "analyzer/schedule/schedule.h"

enum dsp_which { DSP_FAILING, DSP_ALTERNATE, DSP_SIDES };

struct dsp_event {
	struct sched_ref ref;
	bool in_flow;   /* part of a dataflow variation */
	bool reordered; /* part of a pair that the schedules order differently */
	bool in_cause;  /* end of a root-cause edge */
	bool failure;   /* the failure, or an acquisition in a ring of waits */
	bool context;   /* none of these: only the edge of an atomic region, kept to
			 * show the region and not counted */
	bool executed;  /* false: blocked, or not reached in this schedule */
	bool buffered;  /* a write that others see only after later events of its own
			 * thread (total store order): it stands where it is seen */
	size_t at;      /* place in the schedule's order; SIZE_MAX if not executed */
	bool has_value;
	uint64_t value; /* READ: seen; WRITE, RMW: written; in this schedule */
};

struct dsp_side {
	struct dsp_event *events; /* in the order of this schedule; what it does not
				   * execute comes last */
	size_t nevents;
	size_t nprojected;        /* nevents without those that are only context */
	struct order_flow *flows;   /* among projected events */
	size_t nflows;
	size_t ndiffers;          /* flows[].differs */
	size_t exact;             /* so many events of the schedule were executed with their
				   * values; behind them a branch went another way */
	size_t all_events;        /* of the whole schedule, to compare with */
	size_t all_flows;
};

/* In a ring of waits: `wants` cannot succeed, because `holds` has the lock. */
struct dsp_wait {
	struct sched_ref wants, holds;
};

/* A pair of root-cause events and its order in the failing schedule. */
struct dsp_pair {
	struct sched_ref before, after;
	bool inverted; /* the alternate has them the other way round */
};

/*
 * thread's events first..last were separated by `intruder` in the failing
 * schedule and were not in the alternate. Where the run failed before the thread
 * came to the last one, `last` is SYM_NONE and `end` an event like it from an
 * earlier round, perhaps of another thread. Where not even that is known,
 * `compared` says that first..last read two variables that the failure compares,
 * and that the intruder had changed only one of them. The locks (object indices or
 * SYM_NONE) say what is held today, which decides the words of the hint:
 * `common` is held at first, last and the intruder, only not throughout.
 */
struct dsp_region {
	uint32_t thread;
	uint32_t first, last;
	struct sched_ref end; /* { thread, last }, or what would have been it */
	bool compared;
	struct sched_ref intruder;
	uint32_t var;         /* what they fight over; SYM_NONE: several */
	uint32_t common_lock; /* held at all three, released in between */
	uint32_t other_lock;  /* held by the intruder only */
	uint32_t own_lock;    /* held from first to last, not by the intruder */
	uint32_t first_lock;  /* two variables, each under a lock of its own: held at first, not at last; */
	uint32_t last_lock;   /* held at last, not at first; the intruder holds one of the two */
	uint32_t both_lock;   /* held at first and at last, let go in between; not by the intruder */
	uint32_t shared_lock; /* held at all three, but for reading only */
	uint32_t release;     /* event index in thread where common_lock is let go */
};

enum dsp_hint_kind {
	DSP_HINT_NONE,
	DSP_HINT_ATOMIC,     /* make a region atomic */
	DSP_HINT_ORDER,      /* order A before B: join, wait */
	DSP_HINT_LOCK_ORDER, /* take locks in one order */
	DSP_HINT_FENCE,      /* keep a load behind the store before it */
	DSP_HINT_RELEASE,    /* let a lock go before the thread ends, or waits */
	DSP_HINT_RECHECK,    /* test a condition again after waiting for it */
	DSP_HINT_WAKE,       /* wake all who wait, or have a condition variable for each thing */
	DSP_HINT_KINDS
};

/* What a hint asks for, so that it can be tried (analyzer/fix/). */
enum dsp_step_kind {
	DSP_STEP_HOLD,     /* from first to last in one atomic step; all of these by one lock */
	DSP_STEP_LOCK,     /* ... which goes with this lock of the program */
	DSP_STEP_ORDER,    /* first is done before last is */
	DSP_STEP_JOIN,     /* the thread has ended before last */
	DSP_STEP_FENCE,    /* first is visible before anything that follows */
	DSP_STEP_WAKE_ALL, /* first, a signal, wakes all */
	DSP_STEP_RECHECK,  /* what first read is looked at again after a wait, which goes on while it is the same */
	DSP_STEP_KEEP,     /* what is freed at `stack` is not */
};

struct dsp_step {
	enum dsp_step_kind kind;
	struct sched_ref first, last;
	uint32_t which; /* LOCK: the object; JOIN: the thread; KEEP: the stack */
};

#define DSP_MAX_STEPS 12

/* What trying a hint on the real program showed (analyzer/fix/). */
enum dsp_tried {
	DSP_UNTRIED,
	DSP_HOLDS,      /* it did not fail, and would have */
	DSP_WEAK,       /* it did not fail, but without the fix it fails too seldom to tell */
	DSP_STILL_FAILS,
	DSP_DEADLOCKS,  /* it comes to a halt */
	DSP_UNREACHED,  /* no run came to a place of the fix */
	DSP_TRIED_KINDS
};

struct dsp_trial {
	enum dsp_tried verdict;
	uint64_t runs, failures;
	uint64_t deadlocks; /* of the failures: the fix brought the run to a halt */
	uint64_t timeouts;  /* runs that were ended by their time limit */
	uint64_t without_runs, without_failures; /* the same without the fix */
};

struct dsp_hint {
	enum dsp_hint_kind kind;
	char *text; /* one or two sentences that name the lines */
	struct dsp_step step[DSP_MAX_STEPS];
	unsigned nsteps; /* 0: it cannot be tried */
	struct dsp_trial trial;
	const char *pattern; /* of the catalogue (catalogue.c); NULL: none */
};

#define DSP_MAX_HINTS 8

struct dsp {
	struct dsp_side side[DSP_SIDES];
	bool has_cause;
	bool has_alternate;
	bool deterministic; /* proved: fails in every order */
	struct dsp_pair *pairs; /* the root cause */
	size_t npairs;
	struct dsp_wait *waits; /* of a deadlock, in the failing schedule */
	size_t nwaits;
	struct dsp_region *regions;
	size_t nregions;
	struct dsp_hint hint;
	struct dsp_hint also;  /* a second way to fix it, or kind NONE */
	struct dsp_hint more[DSP_MAX_HINTS]; /* what else may be meant, the likeliest first: to be tried */
	size_t nmore;
	size_t common_prefix;  /* events at the start that both schedules have alike */
	char fingerprint[13];  /* 12 hex digits; the same bug gives the same */
	char *note;            /* what this projection lacks and why, or NULL */
};

/* The answer may have found nothing: the projection then says so. */
err_t dsp_build(const struct sym_trace *t, const struct sched_answer *a, struct dsp **out);
void dsp_free(struct dsp *d);

/*
 * A block that `thread` used before its event `event`, having been freed by another one before its
 * event `freed_event`; stacks of the trace, SYM_NONE: not known.
 */
struct dsp_freed {
	uint64_t base, size;
	uint32_t thread, event, stack;
	uint32_t freed_by, freed_event, freed_stack;
	const char *name; /* of what was used */
};

/* The hint becomes one about this, unless there is one, and the root cause is about the block anyway. */
void dsp_freed_hint(const struct sym_trace *t, const struct dsp_freed *f, struct dsp *d);

const char *dsp_hint_name(enum dsp_hint_kind k); /* "none", "atomic", ... */

const char *dsp_tried_name(enum dsp_tried v); /* "holds", "still-fails", ... */
/*
 * "With this fix applied by csched: 0 failures in 500 runs (without: 37 in 500).", malloc'd; NULL: it was not
 * tried. Where advice did not help it says so.
 */
char *dsp_trial_text(const struct dsp_trial *t);
/* Advice that was tried and did not help is no advice any more. */
bool dsp_is_refuted(const struct dsp_hint *h);
const char *dsp_pattern_name(size_t i); /* of the catalogue; NULL: there are no more */
/* What was shown to help comes first, what was shown not to help last. */
void dsp_rank_hints(struct dsp *d);

/* Shared with the reports. */

/*
 * Where an event happens, for people: the innermost frame of the stack that
 * lies in code with lines and outside the run-time and library headers; the
 * innermost frame when there is no such; NULL without a stack.
 */
const struct sym_frame *dsp_place(const struct sym_trace *t, const struct sym_event *e);
/*
 * The library function through which the program made this memory access: "free",
 * "memcpy"; malloc'd, NULL when its own code did.
 */
char *dsp_via(const struct sym_trace *t, const struct sym_event *e);
/* Name of the variable, lock or thread an event is about; "" if none. */
const char *dsp_subject(const struct sym_trace *t, const struct sym_event *e);
/* The C and C++ run-time, library headers and the shim: code nobody wants to be sent to. */
/* The file's name without its directory. */
const char *dsp_basename(const char *path);

bool dsp_is_runtime(const struct sym_frame *f);
/* Of a library of the run-time's own: what its sources are called says nothing to the program's author. */
bool dsp_is_in_runtime_module(const struct sym_frame *f);
/* Its place as text: "crash.c:31", or the best there is; malloc'd. */
char *dsp_where(const struct sym_trace *t, struct sched_ref r);
/* "reads", "locks": what an operation does, third person. */
const char *dsp_verb(enum sym_op op);
/* The expression is made of what was read there, among others. */
bool dsp_mentions_read(const struct sym_trace *t, expr_id e, const struct sym_event *read);
/* Conditions between the two events of a thread mention what the first one read. */
bool dsp_decides_on_way(const struct sym_trace *t, const struct sym_event *first, const struct sym_event *last);
#endif
