/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Other orders of the threads of a recorded run, seen from outside.
 *
 *   mach_execute()   executes an order from some point on, and says whether the recorded failure came
 *   mach_try()       executes an order of the caller's own, watched, without asking for a failure
 *   mach_go_onward() lets the threads go on from where the record ends
 */
#ifndef CSCHED_EXECUTE_ORDERS_H
#define CSCHED_EXECUTE_ORDERS_H

#include "analyzer/follow/machine.h"

/* Event i+1 is executed after event i: thread runs until it has executed its
 * instruction number insn (as in struct mach_access.insn). */
struct mach_point {
	uint32_t thread;
	uint64_t insn;
};

enum mach_outcome_kind {
	MACH_OUT_FAILED,   /* ran into the recorded failure: thread, pc, kind */
	MACH_OUT_PASSED,   /* the failing thread went past the failure point */
	MACH_OUT_OTHER,    /* ran into another failure */
	MACH_OUT_BLOCKED,  /* no thread could go on before that was decided */
	MACH_OUT_LEFT,     /* left the recorded world before that was decided */
};

struct mach_outcome {
	enum mach_outcome_kind kind;
	char *why;        /* in words, malloc'd */
	uint32_t thread;
	uint64_t pc;
	size_t points;    /* of the order that were executed */
	uint64_t insns;
	bool left;        /* PASSED, and afterwards left the recorded world */
	bool fails_later; /* PASSED, and afterwards came to another failure: see why ... */
	bool recurs;      /* ... which is the same: in the same place, or nobody can go on once more */
	bool met;         /* PASSED, having come to what decided the failure (the fate), which went the other way there */
	bool printed;     /* what was not recorded; it was taken to be written */
	bool timed;       /* asked for the time where that was not recorded: it was told one that goes on from what it knew */
	bool held;        /* in the end another thread stood in a call whose own end was not recorded: it might have gone on */
	size_t *noted;    /* of the loose points, those that came by, as they came; malloc'd */
	size_t nnoted;
	uint64_t past;    /* the run's time when the failing thread had gone past the failure; 0: it did not */
	uint64_t *times;  /* kept: the run's time behind each point that was executed; malloc'd */
};

struct mach_order {
	uint64_t from; /* the run's time at which it begins */
	const struct mach_point *points;
	size_t npoints;
	/* So many at the end are loose: not waited for, only noted as they come by, while
	 * each thread goes as far as it can. */
	size_t loose;
	/* The branch (or the access that faulted) of the failing thread that decided the
	 * failure; NULL: not known, then instructions are counted from the last point. */
	const struct mach_point *fate;
	/* The last branch before the failure, where that is another and known: where the fate is
	 * not met as often as when recorded, going elsewhere here avoids the failure as well. */
	const struct mach_point *brink;
	/* Behind the last point each of the other threads goes as far as it can before the
	 * failing one goes on; else the failing one is the first. */
	bool others_first;
	/* Behind the last point this thread, counted from 1, goes as far as it can before all others
	 * (others_first, too); 0: none does. */
	uint32_t goes_first;
	/* Behind the last point who is made goes as far as it can before its creator goes on (others_first,
	 * too): as if functions had been called instead of threads made. */
	bool young_first;
	/* Points may lie behind the end of the record, as far as onward_insns of struct
	 * mach_hooks (the same number) showed them; 0: none do. */
	uint64_t onward_insns;
	/* The run becomes this order: mach_seek() and what goes with it move about in it, and nothing else may be
	 * asked of the run any more. */
	bool keep;
};

/*
 * Executes the points in order without following recorded branches, then lets
 * all threads go on. System calls get their recorded results as long as number
 * and arguments agree with the record.
 */
err_t mach_execute(struct mach_run *r, const struct mach_order *o, struct mach_outcome *out);
void mach_outcome_free(struct mach_outcome *o);

/* ---- trying orders of one's own, watched (execute_try.c) ---- */

/*
 * A place that a thread passes: an instruction (its pc), or an operation at a call site
 * (mach_sync_place()). nth counts from 1 since the moment of mach_try_from(), inside of the operation
 * `inside' (0: of none) that the thread has begun and not ended.
 */
struct mach_step {
	uint32_t thread;
	uint64_t place, inside, nth;
};

uint64_t mach_sync_place(unsigned op_at, uint64_t site);
/* The place of the operation's end, where this is its beginning; else 0. */
uint64_t mach_sync_inside(unsigned op_at, uint64_t site);

struct mach_try_hooks {
	void *arg;
	void (*access)(void *arg, const struct mach_access *a);
	/* The record lives no longer than the call. */
	void (*sync)(void *arg, uint32_t thread, const struct trc_sync *rec);
	void (*born)(void *arg, uint32_t thread, uint32_t parent);
	void (*ended)(void *arg, uint32_t thread);
	void (*output)(void *arg, int fd, const void *bytes, size_t n);
};

struct mach_try {
	const struct mach_step *steps; /* executed in this order; then each thread goes as far as it can */
	size_t nsteps;
	/* All threads, without steps: each goes until it waits or ends, then the first of these that can go on;
	 * who is made earlier here than its creator goes first. NULL: whoever comes. */
	const uint32_t *serial;
	uint64_t most;                 /* instructions before it counts as endless; 0: a built-in number */
	struct mach_try_hooks hooks;
};

enum mach_tried_end {
	MACH_TRIED_EXIT,    /* the process ended: status */
	MACH_TRIED_FAILED,  /* a signal (sig), or an assertion (sig 0), of `thread' at pc */
	MACH_TRIED_STUCK,   /* no thread can go on */
	MACH_TRIED_ENDLESS, /* after so many instructions it had not ended */
	MACH_TRIED_LEFT,    /* needs what was not recorded: why */
};

struct mach_tried {
	enum mach_tried_end end;
	char *why;      /* in words, malloc'd */
	uint32_t thread;
	uint64_t pc;
	int sig, status;
	size_t steps;   /* of the order that were executed */
	uint64_t blocked_at; /* before the last one its thread waited in the kernel, for this futex; 0: it did not */
	bool gave_up;   /* at the next one, which its thread did not come to for too long */
	uint64_t insns;
};

/* From here on orders begin at this moment of the run. */
err_t mach_try_from(struct mach_run *r, uint64_t from);
err_t mach_try(struct mach_run *r, const struct mach_try *o, struct mach_tried *out);
/* Memory as it is where orders begin: mach_read() shows that then. */
void mach_try_rewind(struct mach_run *r);
void mach_tried_free(struct mach_tried *t);

/*
 * Processes like this one, each with the runs and their compiled code: made between mach_fork(true) and mach_fork(false).
 * Each calls mach_forked() before that, while this one stands still; false: it cannot execute anything.
 */
void mach_fork(bool begin);
bool mach_forked(void);

/* For mach_hooks.go_onward: each thread but the failing one executes up to so many instructions more. */
void mach_go_onward(struct mach_run *r, uint64_t insns);

#endif
