/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Coverage files: what was covered, proved impossible or left open, by code place, for one build of a
 * program. They accumulate over runs and over test programs of the same binary; csched-explore(1) describes
 * the format.
 */
#ifndef CSCHED_EXPLORE_COVERAGE_H
#define CSCHED_EXPLORE_COVERAGE_H

#include "analyzer/explore/drive.h"
#include "analyzer/image/image.h"

/*
 * Reads path into the patterns that are known, those covered there being covered. A missing file is none.
 * ERR_INPUT: it is damaged, or of another build.
 */
err_t xpl_coverage_read(struct xpl_drive *d, struct img_set *images, const char *path);
/* Which part of the work a file has, when several explorations share it. */
struct xpl_part {
	uint32_t index, of; /* from 1 */
	bool done;          /* nothing is left in it */
};

/* All that is known; part NULL: of the whole. The file is replaced as a whole. */
err_t xpl_coverage_write(const struct xpl_drive *d, struct img_set *images, const struct xpl_part *part, const char *path);

/* ---- files alone, without the program: coverage_files.c ---- */

struct xpl_coverage_line {
	char *pattern; /* "KIND PLACE PLACE ..." */
	enum xpl_status status;
};

struct xpl_coverage_file {
	VEC(char *) builds;            /* "MODULE BUILD-ID" */
	VEC(struct xpl_part) parts;
	VEC(struct xpl_coverage_line) lines;
	uint32_t *table;               /* 1 + number in lines */
	size_t cap;
};

/* Adds what path holds: a union, so that neither order nor repetition matters. ERR_INPUT: damaged, or of another build. */
err_t xpl_coverage_unite(struct xpl_coverage_file *all, const char *path);
/* Not all parts are there and done: what was proved impossible in some may be shown by another. */
bool xpl_coverage_unfinished(const struct xpl_coverage_file *f);
void xpl_coverage_count(const struct xpl_coverage_file *f, uint64_t by_status[3]);
err_t xpl_coverage_save(const struct xpl_coverage_file *f, const char *path);
void xpl_coverage_file_free(struct xpl_coverage_file *f);

#define XPL_COVERAGE_SUFFIX ".csched-coverage"

/* ---- between the two ---- */

err_t xpl_coverage_text(const char *path, char **text); /* whole, with its checksum checked; NULL: there is none */
uint64_t xpl_coverage_sum(const char *s, size_t n);
extern const char *const xpl_status_word[3];
/* "PART OF done|open" */
bool xpl_coverage_part(const char *rest, struct xpl_part *out);

#endif
