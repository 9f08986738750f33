/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Coverage files united as text, for csched merge: no program is needed for that. coverage.c has the format. */
#include "analyzer/explore/coverage.h"

#include "common/newfile.h"
#include "common/strbuf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static err_t damaged(const char *path, const char *line)
{
	return err_new(ERR_INPUT, "%s is damaged: no line of a coverage file: %.60s", path, line);
}

/* ---- patterns ---- */

static uint32_t *slot_of(const struct xpl_coverage_file *f, const char *pattern)
{
	size_t k = (size_t)xpl_coverage_sum(pattern, strlen(pattern)) & (f->cap - 1);

	while (f->table[k] && strcmp(f->lines.v[f->table[k] - 1].pattern, pattern))
		k = (k + 1) & (f->cap - 1);
	return &f->table[k];
}

/* Of two statuses the one that claims least of "never". */
static void add_pattern(struct xpl_coverage_file *f, const char *pattern, enum xpl_status status)
{
	if (2 * (f->lines.n + 1) > f->cap) {
		f->cap = f->cap ? 2 * f->cap : 1024;
		free(f->table);
		f->table = xcalloc(f->cap, sizeof *f->table);
		for (size_t i = 0; i < f->lines.n; i++)
			*slot_of(f, f->lines.v[i].pattern) = (uint32_t)i + 1;
	}
	uint32_t *slot = slot_of(f, pattern);
	if (!*slot) {
		vec_push(&f->lines, (struct xpl_coverage_line){ xstrdup(pattern), status });
		*slot = (uint32_t)f->lines.n;
		return;
	}
	struct xpl_coverage_line *l = &f->lines.v[*slot - 1];
	if (status == XPL_COVERED || (status == XPL_OPEN && l->status == XPL_INFEASIBLE))
		l->status = status;
}

/* "KIND STATUS PLACE ...": the status goes, and what is left says which pattern it is. */
static err_t take_pattern(struct xpl_coverage_file *f, const char *path, char *rest)
{
	char *status = strchr(rest, ' '), *places = status ? strchr(status + 1, ' ') : NULL;
	unsigned s = 0;

	if (!places)
		return damaged(path, rest);
	*places = 0;
	while (s < 3 && strcmp(status + 1, xpl_status_word[s]))
		s++;
	if (s == 3)
		return damaged(path, rest);
	*status = 0;
	char *pattern = xasprintf("%s %s", rest, places + 1);
	add_pattern(f, pattern, (enum xpl_status)s);
	free(pattern);
	return NULL;
}

/* ---- builds and parts ---- */

static err_t take_build(struct xpl_coverage_file *f, const char *path, const char *build)
{
	const char *id = strchr(build, ' ');

	if (!id)
		return damaged(path, build);
	for (size_t i = 0; i < f->builds.n; i++) {
		const char *has = f->builds.v[i];

		if (!strcmp(has, build))
			return NULL;
		if (!strncmp(has, build, (size_t)(id - build) + 1))
			return err_new(ERR_INPUT, "%s is of another build of %.*s than the files before it: their places are "
				       "not the same", path, (int)(id - build), build);
	}
	vec_push(&f->builds, xstrdup(build));
	return NULL;
}

static err_t take_part(struct xpl_coverage_file *f, const char *path, const char *rest)
{
	struct xpl_part part;

	if (!xpl_coverage_part(rest, &part))
		return damaged(path, rest);
	for (size_t i = 0; i < f->parts.n; i++)
		if (f->parts.v[i].index == part.index && f->parts.v[i].of == part.of) {
			f->parts.v[i].done |= part.done;
			return NULL;
		}
	vec_push(&f->parts, part);
	return NULL;
}

static err_t take_line(struct xpl_coverage_file *f, const char *path, char *line)
{
	if (!strncmp(line, "build ", 6))
		return take_build(f, path, line + 6);
	if (!strncmp(line, "part ", 5))
		return take_part(f, path, line + 5);
	if (!strncmp(line, "pattern ", 8))
		return take_pattern(f, path, line + 8);
	return strncmp(line, "end ", 4) ? damaged(path, line) : NULL;
}

/* All of the file or nothing of it: its builds are looked at first, and its lines in a file of its own. */
err_t xpl_coverage_unite(struct xpl_coverage_file *all, const char *path)
{
	struct xpl_coverage_file one = { 0 };
	char *text, *save = NULL;

	TRY(xpl_coverage_text(path, &text));
	if (!text)
		return err_new(ERR_INPUT, "%s: there is no such file", path);
	err_t e = NULL;
	strtok_r(text, "\n", &save);
	for (char *line; !e && (line = strtok_r(NULL, "\n", &save));)
		e = take_line(&one, path, line);
	for (size_t i = 0; i < one.builds.n && !e; i++)
		e = take_build(all, path, one.builds.v[i]);
	for (size_t i = 0; i < one.parts.n && !e; i++) {
		char *part = xasprintf("%" PRIu32 " %" PRIu32 " %s", one.parts.v[i].index, one.parts.v[i].of,
				       one.parts.v[i].done ? "done" : "open");
		e = take_part(all, path, part);
		free(part);
	}
	for (size_t i = 0; i < one.lines.n && !e; i++)
		add_pattern(all, one.lines.v[i].pattern, one.lines.v[i].status);
	xpl_coverage_file_free(&one);
	free(text);
	return e;
}

/* ---- what it says ---- */

bool xpl_coverage_unfinished(const struct xpl_coverage_file *f)
{
	uint64_t done = 0;

	for (size_t i = 0; i < f->parts.n; i++) {
		if (!f->parts.v[i].done || f->parts.v[i].of != f->parts.v[0].of)
			return true;
		done++;
	}
	return f->parts.n && done != f->parts.v[0].of;
}

void xpl_coverage_count(const struct xpl_coverage_file *f, uint64_t by_status[3])
{
	bool unfinished = xpl_coverage_unfinished(f);

	memset(by_status, 0, 3 * sizeof *by_status);
	for (size_t i = 0; i < f->lines.n; i++) {
		enum xpl_status s = f->lines.v[i].status;

		by_status[s == XPL_INFEASIBLE && unfinished ? XPL_OPEN : s]++;
	}
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int by_part(const void *a, const void *b)
{
	const struct xpl_part *x = a, *y = b;

	return x->of != y->of ? (x->of > y->of) - (x->of < y->of) : (x->index > y->index) - (x->index < y->index);
}

static err_t write_text(FILE *f, void *text)
{
	fputs(text, f);
	return NULL;
}

/* Sorted: the same set is the same file. */
err_t xpl_coverage_save(const struct xpl_coverage_file *f, const char *path)
{
	VEC(char *) lines = { 0 };
	struct strbuf b = { 0 };

	for (size_t i = 0; i < f->builds.n; i++)
		vec_push(&lines, xasprintf("build %s\n", f->builds.v[i]));
	for (size_t i = 0; i < f->lines.n; i++) {
		const char *pattern = f->lines.v[i].pattern, *places = strchr(pattern, ' ');

		vec_push(&lines, xasprintf("pattern %.*s %s%s\n", (int)(places - pattern), pattern,
					   xpl_status_word[f->lines.v[i].status], places));
	}
	if (f->parts.n)
		qsort(f->parts.v, f->parts.n, sizeof *f->parts.v, by_part);
	for (size_t i = 0; i < f->parts.n; i++)
		vec_push(&lines, xasprintf("part %" PRIu32 " %" PRIu32 " %s\n", f->parts.v[i].index, f->parts.v[i].of,
					   f->parts.v[i].done ? "done" : "open"));
	/* "build" comes before "part" and "pattern" by itself. */
	if (lines.n)
		qsort(lines.v, lines.n, sizeof *lines.v, by_text);
	strbuf_fmt(&b, "csched-coverage 1\n");
	for (size_t i = 0; i < lines.n; i++) {
		strbuf_str(&b, lines.v[i]);
		free(lines.v[i]);
	}
	vec_free(&lines);
	strbuf_fmt(&b, "end %016" PRIx64 "\n", xpl_coverage_sum(b.s, strlen(b.s)));
	err_t e = newfile_write(path, NEWFILE_GIVEN, 0666, write_text, b.s);
	strbuf_free(&b);
	return e;
}

void xpl_coverage_file_free(struct xpl_coverage_file *f)
{
	for (size_t i = 0; i < f->builds.n; i++)
		free(f->builds.v[i]);
	for (size_t i = 0; i < f->lines.n; i++)
		free(f->lines.v[i].pattern);
	vec_free(&f->builds);
	vec_free(&f->parts);
	vec_free(&f->lines);
	free(f->table);
	*f = (struct xpl_coverage_file){ 0 };
}
