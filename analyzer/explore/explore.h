/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exploring: from one run that passes, orders are executed that are certain to be new, until one
 * fails, none is left, or the budget is over. The room's one entry for others (cmd/, testgen/).
 */
#ifndef CSCHED_EXPLORE_EXPLORE_H
#define CSCHED_EXPLORE_EXPLORE_H

#include "analyzer/explore/assumed.h"
#include "analyzer/explore/drive.h"
#include "analyzer/explore/races.h"
#include "analyzer/explore/runner.h"
#include "analyzer/explore/serial.h"
#include "common/err.h"

struct explore_result;

struct explore_options {
	char **argv;            /* the program; NULL: `trace' only, offline */
	const char *trace;      /* a recorded run to begin with; NULL: one is recorded */
	const char *shim;       /* path of libcsched.so; needed with argv */
	const char *out;        /* where failing traces go; NULL: the current directory */
	const char *fail_exit;  /* exit statuses that are failures ("1,3"), or NULL */
	enum xpl_strategy strategy;
	enum explore_on on;
	uint64_t seed;
	uint64_t max_schedules; /* 0: no limit */
	double max_seconds;     /* 0: no limit */
	double run_limit;       /* seconds for one native run; 0: a built-in one */
	bool keep_going;        /* look for further failures behind the first */
	bool differ;            /* an end that no serial order has is a failure */
	bool compare;           /* mcr and random on the same run as well, for their curves */
	unsigned jobs;          /* orders executed at a time; 0: one */
	uint32_t shard, shards; /* the shard-th of so many, from 1; 0: all of it */
	uint64_t done;          /* orders that this shard tried before it was ended: chance goes on after them */
	/* Of a shard, now and then and in the end: what is known is to be kept. May be NULL. */
	err_t (*save)(void *arg, const struct explore_result *r);
	void *save_arg;
	const char *coverage;   /* file to go on from, and to write; NULL: none */
	/* Now and then, with how far it is; true: stop, with what is known. May be NULL. */
	bool (*progress)(void *arg, const struct xpl_drive *d);
	void *progress_arg;
};

/* A failure that was seen on the real program, under an enforced order. */
struct explore_failure {
	char *text;         /* as recorded */
	char *trace;        /* of the failing run; NULL: seen on the machine only (without a program) */
	uint64_t schedule;  /* the how-manieth execution came to it */
	uint64_t orders;    /* failing orders that came to the same */
	enum xpl_bad bad;
	uint64_t pc;
	int sig;
	unsigned attempts;  /* native runs */
	uint64_t print;     /* of the failure's point, see pick_print() */
	uint32_t kind;      /* enum trc_failure_kind */
	double seconds;     /* until then */
	bool confirmed;
	bool shaken;        /* by a run with delays: it is no order that was chosen */
};

/* Coverage over time, by one strategy. */
struct explore_curve {
	const char *name;
	VEC(struct xpl_point) points;
};

struct explore_result {
	VEC(struct explore_failure) failures; /* confirmed, or to be so: see `confirmed' */
	struct xpl_drive drive;               /* counts, patterns, traces */
	struct xpl_races races;
	struct xpl_serial serial;             /* with `differ' */
	xpl_assumed assumed;                  /* under which it is true that nothing is left */
	struct explore_curve curves[3];       /* the strategy's own first; those without a name were not asked for */
	struct img_set *images;               /* names of places; NULL: nothing was recorded */
	bool first_failed;                    /* the recorded run itself did; of a trace without a program: */
	uint64_t first_print;                 /* which order that was, see xpl_trace_print(); 0: not known */
	bool part;                            /* it is a shard: what is exhausted is its part */
	uint64_t native_runs;
	uint64_t shaken_runs;                 /* with delays, see shake.h */
	uint64_t native_orders;               /* executed by the real program, as parts of the search */
	double record_seconds, seconds;
	bool interrupted;
	double cut_after;                     /* seconds after which the first run was ended; 0: it ended by itself */
	uint64_t looked_at;                   /* instructions of a run that is not followed to its end; 0: all */
	char *output;                         /* of the recorded run, its end */
	/* private */
	struct trc *t;
	struct mach_run *run;
	struct xpl_prelude *prelude;
};

/* An error only when nothing could be explored at all. The result holds what is known in any case. */
err_t explore_run(const struct explore_options *o, struct explore_result *res);
void explore_result_free(struct explore_result *res);

#endif
