/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The virtual fix: advice applied to the running, unmodified program, and tried there.
 *
 * A fix is a list of points, places in the program's code where the shim does what the changed program would
 * do (common/control_format.h). It is made of what a hint asks for, or read from a file whose
 * places are source lines (csched-fix(5)). Trying it means running the program with the strategy and seed that
 * made it fail, without the fix and under it.
 */
#ifndef CSCHED_FIX_H
#define CSCHED_FIX_H

#include "analyzer/dsp/dsp.h"
#include "analyzer/image/image.h"
#include "common/strbuf.h"
#include "common/trace_read.h"

struct fix {
	struct strbuf points; /* what the shim reads, without the first line */
	unsigned nitems;      /* regions and orders in it */
};

void fix_free(struct fix *f);

/*
 * What the hint asks for. ERR_NOANSWER: it cannot be applied from outside, and the message says why
 * (part of it is advice that only a programmer can follow, or a place is not in the program's code).
 */
err_t fix_of_hint(const struct sym_trace *t, struct img_set *images, const struct dsp_hint *h, struct fix *out);

/* The file of csched-fix(5); its lines are looked for in this program. Errors name FILE:LINE. */
err_t fix_read(const char *path, const char *program, struct fix *out);

/* ---- trying ---- */

struct fix_trial {
	char **argv;
	const char *shim;     /* path of libcsched.so */
	const char *strategy; /* those that found the failure */
	uint64_t seed;
	const char *fail_exit;/* exit statuses that are failures, or NULL */
	const char *options;  /* further shim options, or NULL */
	uint64_t runs;        /* with the fix, and as many without */
	double seconds;       /* for each of the two, at most; 0: no limit */
	double run_limit;     /* for one run; 0: from the first */
	uint32_t jobs;
	const char *input;    /* a file with the standard input of runs; NULL: ours */
	int outside;          /* in a confined process: the socket of its helper, fix_serve(), which makes the runs; 0: not confined */
};

struct fix_count {
	uint64_t runs, failures;
	uint64_t deadlocks; /* of the failures: the fix brought the run to a halt */
	uint64_t timeouts;  /* runs that were ended by their time limit */
	uint64_t applied;   /* processes that came to a point of the fix */
	char *first;        /* the failure seen most, in words, or NULL */
};

/* The runs without: once, for all fixes that are tried after it. */
err_t fix_run_without(const struct fix_trial *t, struct fix_count *out);
/* The runs with, and what that says; *with as fix_run_without(). */
err_t fix_run_with(const struct fix_trial *t, const struct fix *f, const struct fix_count *without,
		   struct fix_count *with, struct dsp_trial *out);
void fix_count_free(struct fix_count *c);

/* outside.c: makes runs for a confined process (analyzer/sandbox/); trial: a struct fix_trial with all but what the trace says. */
int fix_serve(int sock, void *trial);

/*
 * Tries the hints of a projection, in their order, until one holds, and ranks them by what that showed. Hints that
 * cannot be applied stay untried. ERR_NOANSWER: the program does not fail like that any more; nothing was tried.
 */
err_t fix_try_hints(const struct fix_trial *t, const struct sym_trace *trace, struct img_set *images, struct dsp *d);

/* Kept beside the streams of a trace that is a directory, and found there again by the hints' texts. */
void fix_keep_trials(const char *trace, struct dsp *d);
void fix_find_trials(const char *trace, struct dsp *d);

/* What the failing run of a trace was perturbed with; *strategy points into the trace, "" when with nothing. */
bool fix_strategy_of(const struct trc *t, char *strategy, size_t size, uint64_t *seed);

/* Shared inside the room. */

/* The runs with the fix, or (f NULL) without. */
err_t fix_run(const struct fix_trial *t, const struct fix *f, struct fix_count *out);
/* The same by the helper outside. */
err_t fix_ask(const struct fix_trial *t, const struct fix *f, struct fix_count *out);

#define FIX_MAX_COPIES 32

/* The statements of one line, the one at a certain pc first: where they begin, the pc, their last access or call. */
struct fix_copies {
	uint64_t first[FIX_MAX_COPIES], at[FIX_MAX_COPIES], last[FIX_MAX_COPIES];
	size_t n;
};

/* pc 0: none in particular. */
void fix_copies(struct img_set *images, const char *file, unsigned line, uint64_t pc, struct fix_copies *c);

/* Line for line what the shim reads: "KEYWORD ITEM MODULE OFFSET". */
void fix_point(struct fix *f, const char *keyword, unsigned item, const char *module, uint64_t offset);
/* A region that is run holding the fix's lock; its number. */
unsigned fix_region(struct fix *f, unsigned lock, unsigned up, unsigned count);

#endif
