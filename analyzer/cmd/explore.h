/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How csched explore tells what it found: explore.c, explore_lines.c, explore_page.c. */
#ifndef CSCHED_CMD_EXPLORE_H
#define CSCHED_CMD_EXPLORE_H

#include "analyzer/explore/explore.h"
#include "common/json.h"

/* Patterns that have an end at one place of the source, or on one variable. */
struct explore_row {
	char *file;      /* NULL: not known */
	unsigned line;
	char *name;      /* of the variable, or the place without a line */
	uint64_t n[3];   /* by enum xpl_status */
};

typedef VEC(struct explore_row) explore_rows;

/* "file.c:12", a symbol, or an address; malloc'd, not safe for a terminal. */
char *explore_place(const struct explore_result *r, uint64_t pc);
void explore_lines(const struct explore_result *r, explore_rows *out);
void explore_variables(const struct explore_result *r, explore_rows *out);
void explore_rows_free(explore_rows *rows);

void explore_print_lines(const struct explore_result *r);
void explore_print_races(const struct explore_result *r);
void explore_json_races(struct json *j, const struct explore_result *r);
err_t explore_write_page(const struct explore_result *r, const char *program, const char *path);

#endif
