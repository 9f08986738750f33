/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What one shard of a hunt has learned, as a file; and what several have, as one.
 *
 * The file is text: a first line, the program, the sites it shares, then one or more shards with their runs, statuses and
 * failures, and a last line with a checksum of all others. It is rewritten after each run, beside its name, and renamed: who is
 * killed loses the run that was under way. A merged file has more shards in it and nothing else, so merging is the union of two
 * sets: associative, and the same again when done twice.
 */
#ifndef CSCHED_HUNT_SHARD_H
#define CSCHED_HUNT_SHARD_H

#include "common/control_format.h"
#include "common/err.h"
#include "common/vec.h"

#include <stdbool.h>
#include <stdint.h>

#define SHARD_SUFFIX ".csched-shard"
#define SHARD_MOST 100000 /* shards of one hunt */
#define SHARD_MOST_SITES (1u << 21) /* of all shards together; one has CTL_MAX_SITES at most */

struct shard_failure {
	uint64_t print, count, seed, run;
	uint32_t kind;    /* enum trc_failure_kind */
	double seconds;   /* since its shard began */
	char *strategy, *text;
	char *trace;      /* where its trace is; or NULL */
};

struct shard {
	uint64_t seed;
	uint32_t index, of; /* 1 to N, N */
	uint64_t runs;
	double seconds, cpu;
	uint64_t statuses[256];
	VEC(struct shard_failure) failures;
};

struct shard_file {
	char *program;  /* file name */
	uint64_t build; /* checksum of its build-id; 0: it has none */
	char *command;  /* quoted for a shell */
	uint64_t steps, threads;
	VEC(struct ctl_site) sites;
	VEC(struct shard) shards;
	size_t settled, settled_sites; /* how many when equal ones were last brought together */
};

/* Traces are named relative to the file's directory where they lie in it. */
err_t shard_write(const struct shard_file *s, const char *path);
/* ERR_INPUT for what is damaged, cut off or something else; the message names the path. */
err_t shard_read(const char *path, struct shard_file *out);
void shard_free(struct shard_file *s);

/*
 * Unites: sites by module and offset; of the same shard the one with more runs stays. `more` is empty afterwards. After the last
 * one, shard_united(). Takes time in proportion to what is added.
 */
void shard_unite(struct shard_file *all, struct shard_file *more);
void shard_united(struct shard_file *all);
/* Can they be united? The message names both. */
err_t shard_same(const struct shard_file *a, const char *a_path, const struct shard_file *b, const char *b_path);

#endif
