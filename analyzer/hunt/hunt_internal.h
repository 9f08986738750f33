/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What hunt.c (the loop), hunt_run.c (one run) and hunt_keep.c (what is kept of it) share. */
#ifndef CSCHED_HUNT_INTERNAL_H
#define CSCHED_HUNT_INTERNAL_H

#include "analyzer/hunt/child.h"
#include "analyzer/hunt/hunt.h"
#include "analyzer/hunt/pick.h"
#include "analyzer/hunt/plan.h"
#include "analyzer/hunt/statuses.h"

#include <limits.h>

#define MAX_JOBS 32 /* runs at a time */

struct job {
	struct child child;
	uint64_t run;
	uint64_t seed;
	char hunt[128];
	bool shared; /* another run was under way at some time of it */
	char dir[PATH_MAX];
	char output[PATH_MAX + 8];
};

struct hunt {
	const struct hunt_options *o;
	struct hunt_result *res;
	struct plan plan;
	struct statuses statuses;
	char work[PATH_MAX - 64]; /* temporary directory of the hunt */
	char input[PATH_MAX];
	struct job jobs[MAX_JOBS];
	uint32_t njobs;
	struct job next;          /* what the next run will be: run, seed, hunt */
	bool has_next;
	uint64_t started;
	double begin, shown;
	uint64_t undisturbed, undisturbed_failed;
	uint64_t directory;       /* around_directory() before the first run */
	struct job again;         /* a run whose trace is gone, or that has to fail alone: run, seed, hunt ... */
	uint32_t repeats;         /* ... and how often it is still to be done again */
	bool alone;               /* one run at a time from now on: they seem to disturb each other */
	char *suspect;            /* trace of a run that failed while it was not alone */
	uint32_t main_kind;       /* index of the failure whose trace is res->trace */
	uint32_t nkept;           /* traces kept */
	double cpu_before;        /* seconds, of a shard that goes on */
};

/* hunt_run.c */
double hunt_limit(const struct hunt *h);
/* Of the budget; a large number where there is none. */
double hunt_seconds_left(const struct hunt *h);
/* What the next run will be. It stays the same until it is started. */
const struct job *hunt_next_run(struct hunt *h);
/* Does the run need two threads on two cores at the same time? */
bool hunt_wants_cores(const struct job *j);
err_t hunt_start_job(struct hunt *h, struct job *j);

/* hunt_keep.c */
/* The run has ended: what is learned from it, and is it a failure to keep? */
err_t hunt_finish_job(struct hunt *h, struct job *j);
/* What was to be found was found. */
bool hunt_is_settled(const struct hunt *h);
/* Only runs that were not alone failed: where their trace is. */
void hunt_keep_suspect(struct hunt *h);

/* hunt_shard.c, for --shard */
/* After each run: what was learned, in its file. */
err_t hunt_save(struct hunt *h);
/* From where the file of this shard ends, if there is one. */
err_t hunt_resume(struct hunt *h);
/* Another shard has found it (--stop-file). */
bool hunt_is_stopped(const struct hunt *h);
err_t hunt_stop_others(const struct hunt *h);

#endif
