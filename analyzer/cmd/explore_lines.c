/* SPDX-License-Identifier: GPL-2.0-or-later */
/* csched explore: coverage by source line and by variable, and the races. */
#include "analyzer/cmd/explore.h"

#include "analyzer/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RACES 20 /* printed; JSON has all */

#define MOST_FRAMES 16u /* inlined into each other at one place */

/* Headers of the system and of the compiler's library: their lines say less than the line that uses them. */
static bool is_system_header(const char *file)
{
	return !strncmp(file, "/usr/include/", 13) || !strncmp(file, "/usr/lib/gcc/", 13) || strstr(file, "/include/c++/");
}

bool explore_frame(const struct explore_result *r, uint64_t pc, struct img_frame *out)
{
	struct img_frame f[MOST_FRAMES];
	size_t n = r->images ? img_frames(r->images, pc, f, MOST_FRAMES) : 0, at = 0;

	n = n < MOST_FRAMES ? n : MOST_FRAMES;
	while (at < n && (!f[at].file || is_system_header(f[at].file)))
		at++;
	if (!n || !f[at < n ? at : 0].file)
		return false;
	*out = f[at < n ? at : 0];
	return true;
}

char *explore_place(const struct explore_result *r, uint64_t pc)
{
	struct img_frame f;

	if (explore_frame(r, pc, &f)) {
		const char *slash = strrchr(f.file, '/');

		return xasprintf("%s:%u", slash ? slash + 1 : f.file, f.line);
	}
	return r->images ? img_symbol_text(r->images, pc) : xasprintf("0x%llx", (unsigned long long)pc);
}

static struct explore_row *row_of(explore_rows *rows, const char *file, unsigned line, const char *name)
{
	for (size_t i = 0; i < rows->n; i++) {
		struct explore_row *x = &rows->v[i];

		if (file ? x->file && x->line == line && !strcmp(x->file, file) : !x->file && !strcmp(x->name, name))
			return x;
	}
	vec_push(rows, (struct explore_row){ .file = file ? xstrdup(file) : NULL, .line = line, .name = xstrdup(name) });
	return &rows->v[rows->n - 1];
}

static int by_place(const void *a, const void *b)
{
	const struct explore_row *x = a, *y = b;
	int c = strcmp(x->file ? x->file : "~", y->file ? y->file : "~");

	return c ? c : x->line != y->line ? (x->line > y->line) - (x->line < y->line) : strcmp(x->name, y->name);
}

void explore_lines(const struct explore_result *r, explore_rows *out)
{
	for (size_t i = 0; i < r->drive.known.n; i++) {
		const struct xpl_known *k = &r->drive.known.v[i];

		for (unsigned s = 0; s < k->n; s++) {
			struct img_frame f;
			bool again = false;

			for (unsigned t = 0; t < s; t++)
				again |= k->places[t] == k->places[s];
			if (again)
				continue;
			char *name = explore_place(r, k->places[s]);
			bool known = explore_frame(r, k->places[s], &f);
			row_of(out, known ? f.file : NULL, known ? f.line : 0, name)->n[k->status]++;
			free(name);
		}
	}
	if (out->n)
		qsort(out->v, out->n, sizeof *out->v, by_place);
}

void explore_variables(const struct explore_result *r, explore_rows *out)
{
	for (size_t i = 0; i < r->drive.known.n; i++) {
		const struct xpl_known *k = &r->drive.known.v[i];

		for (unsigned v = 0; v < 2 && k->vars[v]; v++) {
			char *name = img_symbol_text(r->images, k->vars[v]);

			row_of(out, NULL, 0, name)->n[k->status]++;
			free(name);
		}
	}
	if (out->n)
		qsort(out->v, out->n, sizeof *out->v, by_place);
}

void explore_rows_free(explore_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		free(rows->v[i].file);
		free(rows->v[i].name);
	}
	vec_free(rows);
}

static void print_rows(const char *what, const explore_rows *rows)
{
	printf("%-40s %8s %10s %6s\n", what, "covered", "impossible", "open");
	for (size_t i = 0; i < rows->n; i++) {
		const struct explore_row *x = &rows->v[i];
		char *safe = term_text_of(x->name, strlen(x->name));

		printf("  %-38s %8llu %10llu %6llu\n", safe, (unsigned long long)x->n[XPL_COVERED],
		       (unsigned long long)x->n[XPL_INFEASIBLE], (unsigned long long)x->n[XPL_OPEN]);
		free(safe);
	}
}

void explore_print_lines(const struct explore_result *r)
{
	explore_rows lines = { 0 }, variables = { 0 };

	if (!r->images)
		return;
	explore_variables(r, &variables);
	explore_lines(r, &lines);
	print_rows("patterns by variable", &variables);
	print_rows("patterns by line", &lines);
	explore_rows_free(&variables);
	explore_rows_free(&lines);
}

/* ---- races ---- */

static const char *access_word(const struct xpl_race_end *e)
{
	return e->reads && e->writes ? "updates" : e->writes ? "writes" : "reads";
}

void explore_print_races(const struct explore_result *r)
{
	for (size_t i = 0; i < r->races.v.n && i < MOST_RACES; i++) {
		const struct xpl_race *k = &r->races.v.v[i];
		char *a = explore_place(r, k->first.pc), *b = explore_place(r, k->second.pc);
		char *name = img_symbol_text(r->images, k->address);
		char *text = xasprintf("race: %s %s `%s', %s %s it, in no order; turned round it %s", a,
				       access_word(&k->first), name, b, access_word(&k->second),
				       xpl_race_words[k->outcome]);
		char *safe = term_text_of(text, strlen(text));

		if (k->outcome <= XPL_RACE_DIFFERS && k->why) {
			char *why = term_text_of(k->why, strlen(k->why));

			printf("%s (%s)\n", safe, why);
			free(why);
		} else {
			puts(safe);
		}
		free(a);
		free(b);
		free(name);
		free(text);
		free(safe);
	}
	if (r->races.v.n > MOST_RACES)
		printf("and %zu more races; --json lists them\n", r->races.v.n - MOST_RACES);
}

static void json_race_end(struct json *j, const char *name, const struct explore_result *r, const struct xpl_race_end *e)
{
	struct img_frame f[8];
	size_t n = img_frames(r->images, e->pc, f, 8);
	char *place = explore_place(r, e->pc);

	json_object(j, name);
	json_str(j, "place", place);
	json_str(j, "access", access_word(e));
	json_str(j, "thread", trc_thread_id(r->t, e->thread));
	json_array(j, "stack");
	for (size_t i = 0; i < n && i < 8; i++) {
		json_object(j, NULL);
		json_str(j, "function", f[i].function);
		json_str(j, "file", f[i].file);
		json_uint(j, "line", f[i].line);
		json_end(j);
	}
	json_end(j);
	json_end(j);
	free(place);
}

void explore_json_races(struct json *j, const struct explore_result *r)
{
	json_array(j, "races");
	for (size_t i = 0; i < r->races.v.n; i++) {
		const struct xpl_race *k = &r->races.v.v[i];
		char *name = img_symbol_text(r->images, k->address);

		json_object(j, NULL);
		json_str(j, "outcome", xpl_race_words[k->outcome]);
		json_str(j, "variable", name);
		json_race_end(j, "first", r, &k->first);
		json_race_end(j, "second", r, &k->second);
		json_uint(j, "pairs", k->pairs);
		json_bool(j, "decides", k->decides);
		json_str(j, "why", k->why);
		json_end(j);
		free(name);
	}
	json_end(j);
	json_uint(j, "race_orders", r->races.orders);
}
