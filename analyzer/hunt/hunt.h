/* The hunt: runs until the program fails or the budget ends. */
#ifndef CSCHED_HUNT_H
#define CSCHED_HUNT_H

#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

struct hunt_options {
	char **argv;
	const char *shim;      /* path of libcsched.so */
	const char *out;       /* where the failing trace goes; NULL: current directory */
	const char *strategy;
	const char *sites;     /* file of learned sites to keep; NULL: a temporary one */
	const char *fail_exit; /* exit statuses that are failures ("1,3"), or NULL */
	uint32_t shard, shards; /* the shard-th of so many, from 1: disjoint seeds and sites; 0: all of it */
	const char *stop_file; /* when it exists the hunt ends; made when a failure was found; or NULL */
	const char *directory; /* where the runs are; NULL: here */
	char **env;            /* "NAME=VALUE" for the runs, NULL-terminated; or NULL */
	const char *trace_of;  /* file name of the program whose trace is wanted; NULL: of the one that fails */
	const char *check;     /* shell command that is run after each run: other than 0 means it failed; or NULL */
	const char *options;   /* further shim options ("a=b:c=d"), or NULL */
	uint64_t seed;
	uint64_t max_runs;     /* 0: no limit */
	const char *input;     /* a file with the standard input of runs; NULL: ours, read to its end */
	bool keeps_input;      /* our standard input stays in a file: it can be read once */
	uint64_t max_failures; /* with keep_going: as many are enough; 0: no limit */
	double max_seconds;    /* 0: no limit */
	double run_limit;      /* seconds for one run; 0: from the first run */
	uint32_t jobs;         /* runs at a time; 0: one per core */
	bool keep_going;       /* count failures until the budget ends */
	bool quiet;            /* no progress line */
	/* Is a failing trace worth keeping? One that is not is kept only until a better one
	 * turns up, within reason. It gets so many seconds to find out. NULL: the first is as good as any. */
	bool (*worth)(const char *trace, double seconds);
};

/* One kind of failure seen. */
struct hunt_failure {
	char *text;        /* the reason in words */
	uint64_t print;    /* fingerprint of the failure point */
	uint64_t count;
	uint32_t kind;     /* enum trc_failure_kind; 0: the check failed */
	char *trace;       /* of one such run, or NULL; the rest is about that one */
	uint64_t seed, run;
	double seconds;    /* when it failed, since the hunt began */
	char strategy[128];
};

struct hunt_result {
	uint64_t runs, failures, timeouts;
	uint64_t exits;        /* runs that ended with a status other than 0 ... */
	int exit_status;       /* ... that of the last one ... */
	int odd_exit;          /* one that some runs end with and some do not, taken for a failure; 0: none ... */
	char odd_exits[1024];  /* ... and all of them: "1,124" */
	char *exit_output;     /* ... and what the first one printed (the last 4 KiB); or NULL */
	double seconds;
	double first_seconds;  /* to the first failure */
	uint64_t first_run;    /* its number, from 1; 0: none */
	uint64_t first_seed;   /* its seed= */
	char strategy[128];    /* its hunt= */
	char *trace;           /* path of its trace, or NULL */
	bool explainable;      /* the trace has a failure of its own */
	bool named;            /* it is of the program that trace_of names */
	uint64_t unconfirmed;  /* runs that failed only while others were under way, and may have been disturbed by them ... */
	char *unconfirmed_trace; /* ... and the trace of one, when nothing else was found; or NULL */
	uint32_t refused;      /* failing traces that were not worth it ... */
	bool better;           /* ... and the one kept is: then seed and strategy are its */
	char *output;          /* what it printed (the last 4 KiB), or NULL */
	char *input;           /* that file, in a temporary directory; the caller's to unlink; or NULL */
	double run_seconds;    /* an undisturbed run */
	bool always;           /* the undisturbed runs failed as well */
	bool interrupted;
	bool stopped;          /* by the stop file */
	struct hunt_failure *kinds;
	uint32_t nkinds;
	uint32_t sites, shared; /* learned */
	uint64_t threads;      /* most that a process had; 0: not known */
};

err_t hunt_run(const struct hunt_options *o, struct hunt_result *res);
void hunt_result_free(struct hunt_result *res);

#endif
