/*
 * Enforcing a schedule on the real program, N times, and seeing what happens.
 */
#ifndef CSCHED_HUNT_NATIVE_H
#define CSCHED_HUNT_NATIVE_H

#include "common/err.h"
#include "common/strbuf.h"
#include "common/trace_read.h"

#include <stdbool.h>

struct native_options {
	char **argv;
	const char *shim;
	const char *schedule;  /* file to enforce; absolute, the program may change directory */
	const struct trc *t;   /* the recorded run, to compare failures with */
	bool rebuilt;          /* the program is another build: its addresses differ */
	uint32_t runs;
	bool until_failure;    /* the first one ends it */
	uint32_t most_diverged; /* so many that went another way end it, too; 0: none do */
	uint32_t most_timeouts; /* so many that did not end in time end it, too; 0: none do */
	double limit;          /* seconds for one run */
	double seconds;        /* no further run after so long; 0: as many as there are */
	/* Called after each run; true stops. May be NULL. */
	bool (*progress)(void *arg, uint32_t done, uint32_t runs);
	void *progress_arg;
};

/* In how many runs an edge was not kept, by what went wrong. */
struct native_edge {
	uint32_t id;
	uint32_t vain;      /* its target waited in vain for its source */
	uint32_t first;     /* ... as the first one of the run: there it went another way */
	uint32_t no_source; /* runs that ended without its source */
	uint32_t no_target; /* ... or without its target */
};

struct native_result {
	uint32_t runs;
	uint32_t failures;     /* of any kind */
	uint32_t behind;       /* ... that came when all of the order had happened: at another moment */
	uint32_t same;         /* the recorded failure: kind, signal, place */
	uint32_t diverged;     /* a thread waited in vain: the run went another way */
	uint32_t timeouts;
	uint32_t unrecorded;   /* runs that left no trace: nothing can be said about them */
	double seconds;
	char *other;           /* the first failure that was another one, in words; or NULL */
	struct native_edge *edges; /* those that were not kept in some run */
	uint32_t nedges;
};

/* What makes the recorded failure one: fail_exit=, hang=. */
void native_failure_options(const struct trc *t, struct strbuf *options);

/* Seconds for one run, from how long the recorded one took; no less than NATIVE_LEAST_LIMIT. */
#define NATIVE_LEAST_LIMIT 20.0
double native_limit(const struct trc *t);

err_t native_run(const struct native_options *o, struct native_result *res);
void native_result_free(struct native_result *res);

#endif
