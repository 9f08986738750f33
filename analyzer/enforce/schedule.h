/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Schedule files (common/control_format.h) on the analyzer's side: written by
 * explain, read to say where a run went another way, and mapped to a program
 * that was rebuilt.
 */
#ifndef CSCHED_ENFORCE_SCHEDULE_H
#define CSCHED_ENFORCE_SCHEDULE_H

#include "analyzer/hunt/place.h"
#include "common/vec.h"

#include <stdio.h>

struct schedule_end {
	char *thread;   /* "T0.1" */
	char *module;   /* file name without its directory */
	uint64_t offset, n;
	bool after, again, inside, middle, woken; /* none: before */
	struct place place; /* .function NULL: not known */
	bool lost;      /* schedule_remap(): not in the new build */
};

struct schedule_edge {
	uint32_t id;
	bool meet; /* both wait for each other, and go on at the same instant */
	bool then; /* of what comes behind a meeting, each time */
	struct schedule_end source, target;
};

struct schedule_build {
	char *module, *build_id;
};

struct schedule {
	VEC(struct schedule_edge) edges;
	VEC(struct schedule_end) turns; /* where the rest begins, in this order */
	VEC(struct schedule_build) builds;
	char *process; /* the forked child it is for, as in the trace's identity; NULL: none */
	bool yields;   /* in the rest who wakes others lets them go first */
	bool retreats; /* leaves the failing order before its cause, instead of turning a pair of it */
};

err_t schedule_read(const char *path, struct schedule *out);
void schedule_write(const struct schedule *s, FILE *f);
void schedule_free(struct schedule *s);

const struct schedule_edge *schedule_edge(const struct schedule *s, uint32_t id);

/* The module's build-id goes along: another build needs another schedule. */
void schedule_note_build(struct schedule *s, const struct img_module *m);

/* "T0.1 at crasher.c:31 (2nd time)", malloc'd. */
char *schedule_end_text(const struct schedule_end *e);

/*
 * The recorded program (its path then) has another file name now: its module is called so here. False:
 * it has not, or the program is none that was recorded: a script.
 */
bool schedule_rename(struct schedule *s, const char *recorded, const char *program);

/* Has the program at this path another build-id than the one the schedule was made for? */
bool schedule_is_foreign(const struct schedule *s, const char *program);

/*
 * Moves the ends to where their places are in this build of the program; edges
 * with an end that is gone are marked lost and no longer written.
 */
err_t schedule_remap(struct schedule *s, const char *program);
bool schedule_edge_lost(const struct schedule_edge *e);

#endif
