/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fixes written by hand, csched-fix(5): source lines to places in the program's code. */
#include "analyzer/fix/fix.h"

#include "analyzer/hunt/place.h"
#include "common/vec.h"

#include <stdio.h>
#include <string.h>

#define MAX_WORDS 16
#define MAX_BYTES (1u << 16) /* of the file */

struct reader {
	const char *path;
	unsigned line;
	struct img_set *images;
	const char *module;
	struct fix *f;
	char *word[MAX_WORDS];
	unsigned nwords;
};

static err_t wrong(const struct reader *r, const char *what, const char *word)
{
	return err_new(ERR_INPUT, "%s:%u: %s%s%s", r->path, r->line, what, word ? ": " : "", word ? word : "");
}

static err_t find(const struct reader *r, const char *place, struct fix_copies *c)
{
	const char *colon = strrchr(place, ':');
	unsigned line = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;

	c->n = 0;
	if (!line || colon == place)
		return wrong(r, "expected FILE:LINE", place);
	char *file = xasprintf("%.*s", (int)(colon - place), place);
	fix_copies(r->images, file, line, 0, c);
	free(file);
	return c->n ? NULL : wrong(r, "the program has no code for this line", place);
}

static void points(const struct reader *r, const char *keyword, unsigned item, const uint64_t *pcs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fix_point(r->f, keyword, item, r->module, pcs[i]);
}

static bool in_one_function(const struct reader *r, const struct fix_copies *a, const struct fix_copies *b)
{
	for (size_t i = 0; i < a->n; i++) {
		const char *f = img_symbol(r->images, a->first[i], NULL);
		bool found = false;

		for (size_t k = 0; k < b->n && f; k++) {
			const char *g = img_symbol(r->images, b->first[k], NULL);

			found |= g && !strcmp(f, g);
		}
		if (!found)
			return false;
	}
	return true;
}

static err_t read_atomic(struct reader *r)
{
	struct fix_copies first, last;
	unsigned lock = 0;

	if (r->nwords > 1 && !strncmp(r->word[1], "lock=", 5)) {
		lock = (unsigned)strtoul(r->word[1] + 5, NULL, 10);
		if (lock > 7)
			return wrong(r, "locks are numbered from 0 to 7", r->word[1]);
		memmove(&r->word[1], &r->word[2], (r->nwords - 2) * sizeof *r->word);
		r->nwords--;
	}
	if (r->nwords < 2 || r->nwords > 3)
		return wrong(r, "expected: atomic [lock=N] FILE:LINE [FILE:LINE]", NULL);
	TRY(find(r, r->word[1], &first));
	TRY(find(r, r->word[r->nwords - 1], &last));
	if (!in_one_function(r, &first, &last))
		return wrong(r, "the two lines are not in one function", r->word[2]);
	unsigned item = fix_region(r->f, lock, 0, 1);
	points(r, "begin", item, first.first, first.n);
	points(r, "end", item, last.last, last.n);
	return NULL;
}

static err_t read_guard(struct reader *r)
{
	struct fix_copies c;
	uint64_t address;

	if (r->nwords != 2)
		return wrong(r, "expected: guard VARIABLE, or guard FILE:LINE", NULL);
	if (img_address_of(r->images, r->word[1], &address)) {
		fix_point(r->f, "guard", 0, r->module, address);
		return NULL;
	}
	if (!strchr(r->word[1], ':'))
		return wrong(r, "the program has no such variable", r->word[1]);
	TRY(find(r, r->word[1], &c));
	points(r, "taken", 0, c.last, c.n);
	return NULL;
}

static err_t check_thread(const struct reader *r, const char *id)
{
	return id[0] == 'T' && strlen(id) < 40 ? NULL : wrong(r, "no thread is called so (T0.1, ...)", id);
}

static err_t read_order(struct reader *r)
{
	struct fix_copies first, last;
	bool each = r->nwords > 4 && !strcmp(r->word[3], "each");

	if (r->nwords != 3 && !each)
		return wrong(r, "expected: order FILE:LINE FILE:LINE [each THREAD ...]", NULL);
	TRY(find(r, r->word[1], &first));
	TRY(find(r, r->word[2], &last));
	strbuf_fmt(&r->f->points, "order %u %u\n", r->f->nitems, each);
	for (unsigned i = 4; i < r->nwords; i++) {
		TRY(check_thread(r, r->word[i]));
		strbuf_fmt(&r->f->points, "by %u %s\n", r->f->nitems, r->word[i]);
	}
	points(r, "source", r->f->nitems, first.last, first.n);
	points(r, "target", r->f->nitems++, last.first, last.n);
	return NULL;
}

static err_t read_join(struct reader *r)
{
	struct fix_copies c;

	if (r->nwords < 3)
		return wrong(r, "expected: join FILE:LINE THREAD ...", NULL);
	TRY(find(r, r->word[1], &c));
	points(r, "join", 0, c.first, c.n);
	for (unsigned i = 2; i < r->nwords; i++) {
		TRY(check_thread(r, r->word[i]));
		strbuf_fmt(&r->f->points, "thread %s\n", r->word[i]);
	}
	return NULL;
}

/* A call in this statement, or a store. */
static err_t read_at(struct reader *r)
{
	struct fix_copies c;

	if (r->nwords != 2)
		return wrong(r, "expected a FILE:LINE behind", r->word[0]);
	TRY(find(r, r->word[1], &c));
	points(r, r->word[0], 0, c.last, c.n);
	return NULL;
}

static err_t read_line(struct reader *r, char *line)
{
	static const struct {
		const char *word;
		err_t (*read)(struct reader *r);
	} kinds[] = {
		{ "atomic", read_atomic }, { "guard", read_guard }, { "order", read_order }, { "join", read_join },
		{ "keep", read_at }, { "fence", read_at }, { "wake-all", read_at },
	};

	r->nwords = 0;
	for (char *save, *w = strtok_r(line, " \t\r", &save); w && *w != '#'; w = strtok_r(NULL, " \t\r", &save)) {
		if (r->nwords == MAX_WORDS)
			return wrong(r, "too many words", NULL);
		r->word[r->nwords++] = w;
	}
	for (unsigned i = 0; r->nwords && i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(r->word[0], kinds[i].word))
			return kinds[i].read(r);
	return r->nwords ? wrong(r, "no such line in a fix", r->word[0]) : NULL;
}

static err_t read_text(struct reader *r, char *text)
{
	char *save, *line = text;

	for (r->line = 1; line; line = save, r->line++) {
		save = strchr(line, '\n');
		if (save)
			*save++ = 0;
		if (r->line == 1) {
			if (strcmp(line, "csched-fix 1"))
				return wrong(r, "not a fix: the first line is not \"csched-fix 1\"", NULL);
			continue;
		}
		TRY(read_line(r, line));
	}
	return r->f->points.n ? NULL : err_new(ERR_INPUT, "%s: there is nothing in it", r->path);
}

static err_t slurp(const char *path, char **text)
{
	FILE *f = fopen(path, "re");

	if (!f)
		return err_errno("%s", path);
	*text = xcalloc(MAX_BYTES + 1, 1);
	size_t n = fread(*text, 1, MAX_BYTES + 1, f);
	bool bad = ferror(f);
	fclose(f);
	if (bad || n > MAX_BYTES || memchr(*text, 0, n)) {
		free(*text);
		return err_new(ERR_INPUT, "%s: not a fix: %s", path, n > MAX_BYTES ? "too long" : "no text");
	}
	return NULL;
}

err_t fix_read(const char *path, const char *program, struct fix *out)
{
	struct reader r = { .path = path, .f = out, .module = dsp_basename(program) };
	char *text = NULL;

	*out = (struct fix){ 0 };
	TRY(slurp(path, &text));
	err_t e = strpbrk(r.module, " \n") ? err_new(ERR_USAGE, "%s: there is a blank in the name", program) :
					    place_open(program, &r.images);
	if (!e)
		e = read_text(&r, text);
	if (r.images)
		img_set_free(r.images);
	free(text);
	if (e)
		fix_free(out);
	return e;
}
