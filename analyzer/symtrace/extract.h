/*
 * From a followed run to a symbolic trace: which events matter, and what their
 * values are in terms of what was read.
 *
 * Nobody marks shared variables. A location is shared when two threads touch
 * it, one of them writing, from the program's own code (extract_level.h says
 * what that is). Three executions of the committed order:
 *
 *   1. concrete: who touches which 8 bytes
 *   2. concrete: the events on shared locations, their number and extents;
 *      choice of the window (the last `window` events, or all)
 *   3. symbolic, from the window's start: events with expressions, path
 *      conditions, stacks and names
 *
 * With `onward` all of them go on where the record ends: the threads that had
 * neither failed nor ended do what they would have done next, as far as that
 * can be computed and is not too much.
 */
#ifndef CSCHED_SYMTRACE_EXTRACT_H
#define CSCHED_SYMTRACE_EXTRACT_H

#include "analyzer/machine/machine.h"
#include "analyzer/symtrace/symtrace.h"

struct ext_options {
	uint64_t window; /* events to keep; 0: all, up to a built-in limit */
	uint64_t tail;   /* events to keep behind the failing thread's last; 0: all. With it the
			  * window is counted from there: others run on while it fails */
	bool onward;     /* with what the other threads do next, behind the record (computed) */
	/* part is 0..1; true stops the work. May be NULL. */
	bool (*progress)(void *arg, const char *phase, double part);
	void *progress_arg;
};

struct ext_result {
	struct sym_trace *trace;
	uint64_t from;      /* run time at which the window begins; 0: the whole run */
	uint64_t total;     /* shared events in the whole run */
	uint64_t locations; /* shared locations */
	uint64_t accesses;  /* all accesses executed */
	uint64_t onward_insns; /* for struct mach_order */
	/* By thread: events from this one on were computed, not recorded; SYM_NONE: none. */
	uint32_t *computed;
	/* points[thread][event]: where the machine executes that event. */
	struct mach_point **points;
	/* The branch whose outcome is the failure's condition; thread SYM_NONE: there is none. */
	struct mach_point fate;
};

err_t ext_extract(struct trc *t, struct img_set *images, struct mach_run *run,
		  const struct ext_options *o, struct ext_result **out);
void ext_result_free(struct ext_result *r);

#endif
