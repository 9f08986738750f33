/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How csched explore reports what it found: explore.c, explore_lines.c, explore_page.c. */
#ifndef CSCHED_CMD_EXPLORE_H
#define CSCHED_CMD_EXPLORE_H

#include "analyzer/explore/explore.h"
#include "analyzer/hunt/shard.h"
#include "common/json.h"

/* Patterns that have an end at one place of the source, or on one variable. */
struct explore_row {
	char *file;      /* NULL: not known */
	unsigned line;
	char *name;      /* of the variable, or the place without a line */
	uint64_t n[3];   /* by enum xpl_status */
};

typedef VEC(struct explore_row) explore_rows;

/* The innermost line of the program's own source there, else of a header; false: none is known. */
bool explore_frame(const struct explore_result *r, uint64_t pc, struct img_frame *out);
/* "file.c:12", a symbol, or an address; malloc'd, not safe for a terminal. */
char *explore_place(const struct explore_result *r, uint64_t pc);
void explore_lines(const struct explore_result *r, explore_rows *out);
void explore_variables(const struct explore_result *r, explore_rows *out);
void explore_rows_free(explore_rows *rows);

void explore_print_lines(const struct explore_result *r);
void explore_print_races(const struct explore_result *r);
void explore_json_races(struct json *j, const struct explore_result *r);
err_t explore_write_page(const struct explore_result *r, const char *program, const char *path);

/* ---- explore_shard.c: --shard I/N ---- */

struct explore_shard {
	char **argv;
	const char *out, *strategy;
	uint32_t index, of; /* from 1; 0: no shard */
	uint64_t seed;
	bool resumed;
	struct shard before; /* with `resumed': what its file had */
};

err_t explore_shard_number(const char *text, uint32_t *index, uint32_t *of);
/* The shard's file with this suffix; malloc'd. */
char *explore_shard_path(const char *out, uint32_t index, uint32_t of, const char *suffix);
err_t explore_shard_resume(struct explore_shard *s);
err_t explore_shard_save(void *shard, const struct explore_result *r);
void explore_shard_explain(const struct explore_shard *s, const struct explore_result *r);
void explore_shard_free(struct explore_shard *s);

#endif
