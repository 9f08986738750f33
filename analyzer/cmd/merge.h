/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The failures of all shards, grouped by what caused them. */
#ifndef CSCHED_CMD_MERGE_H
#define CSCHED_CMD_MERGE_H

#include "analyzer/cmd/aside.h"
#include "analyzer/explore/coverage.h"
#include "analyzer/hunt/shard.h"

struct merge_group {
	char fingerprint[ASIDE_FINGERPRINT]; /* of the root cause; "": none of its traces was explained */
	uint64_t print;  /* of the failure point */
	char *text, *strategy, *trace; /* trace: the best one, or NULL */
	uint64_t count, seed;
	double seconds;
	size_t nshards;
};

struct merge {
	struct shard_file all;
	const char *program;
	size_t files;
	VEC(char *) left_out; /* why, with the file's name */
	VEC(struct merge_group) groups; /* the most frequent first */
	uint64_t runs, statuses[256];
	double cpu;
	struct xpl_coverage_file coverage; /* of explorations */
	size_t coverage_files;
};

/* Fills what follows from `all`: a function of the set of shards alone, and of the traces that are there. */
void merge_group(struct merge *m);
/* Copies the group's trace to directory `out`; every mention of it in `all` follows. */
err_t merge_bring(struct merge *m, struct merge_group *g, const char *out);
void merge_free(struct merge *m);

#endif
