/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writing, reading and uniting shard files. */
#include "analyzer/hunt/shard.h"

#include "analyzer/launch.h"
#include "common/escape.h"
#include "common/newfile.h"
#include "common/trace_sum.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_LINE "csched-shard 1\n"
#define LARGEST (64l << 20) /* bytes: far more than all sites and 100,000 shards need */

/* ---- writing ---- */

struct writing {
	const struct shard_file *s;
	const char *dir; /* of the file, with a slash; "" */
};

static void write_failure(FILE *f, const struct writing *w, const struct shard_failure *x)
{
	const char *trace = x->trace ? x->trace : "-";
	size_t n = strlen(w->dir);
	bool below = !strncmp(trace, w->dir, n);
	/* What lies elsewhere is named so that it is found from everywhere. */
	char *absolute = x->trace && !below ? launch_absolute(trace) : NULL;

	trace = absolute ? absolute : x->trace ? trace + n : trace;
	fprintf(f, "failure %" PRIx64 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %.3f ", x->print, x->kind, x->count,
		x->seed, x->run, x->seconds);
	escape_word(f, x->strategy);
	fputc(' ', f);
	escape_word(f, trace);
	fputc(' ', f);
	escape_word(f, x->text);
	fputc('\n', f);
	free(absolute);
}

static void write_body(FILE *f, const struct writing *w)
{
	const struct shard_file *s = w->s;

	fputs(FIRST_LINE "program ", f);
	escape_word(f, s->program);
	fprintf(f, " %" PRIx64 " %" PRIu64 " %" PRIu64 "\ncommand ", s->build, s->steps, s->threads);
	escape_word(f, s->command);
	fputc('\n', f);
	for (size_t i = 0; i < s->sites.n; i++)
		fprintf(f, "site %x %x %x %u\n", s->sites.v[i].module, s->sites.v[i].offset, s->sites.v[i].flags,
			s->sites.v[i].hits);
	for (size_t i = 0; i < s->shards.n; i++) {
		const struct shard *x = &s->shards.v[i];

		fprintf(f, "shard %" PRIu64 " %u %u %" PRIu64 " %.3f %.3f\n", x->seed, x->index, x->of, x->runs, x->seconds,
			x->cpu);
		for (unsigned v = 0; v < 256; v++)
			if (x->statuses[v])
				fprintf(f, "status %u %" PRIu64 "\n", v, x->statuses[v]);
		for (size_t k = 0; k < x->failures.n; k++)
			write_failure(f, w, &x->failures.v[k]);
	}
}

static err_t write_all(FILE *f, void *arg)
{
	char *text = NULL;
	size_t n = 0;
	FILE *memory = open_memstream(&text, &n);

	if (!memory)
		return err_errno("memory");
	write_body(memory, arg);
	if (fclose(memory)) {
		free(text);
		return err_errno("memory");
	}
	fwrite(text, 1, n, f);
	fprintf(f, "end %" PRIx64 "\n", trc_checksum(text, n));
	free(text);
	return NULL;
}

err_t shard_write(const struct shard_file *s, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? xasprintf("%.*s", (int)(slash + 1 - path), path) : xstrdup("");
	struct writing w = { s, dir };
	err_t e = newfile_write(path, NEWFILE_GIVEN, 0666, write_all, &w);

	free(dir);
	return e;
}

/* ---- reading ---- */

/* The next word of a line, unescaped; "" at its end. */
static char *word(char **line)
{
	char *w = *line, *end = w + strcspn(w, " ");

	*line = *end ? end + 1 : end;
	*end = 0;
	return escape_undo(w);
}

static bool number(char **line, int base, uint64_t *out)
{
	char *w = word(line), *end;

	*out = strtoull(w, &end, base);
	return *w >= '0' && end != w && !*end;
}

static bool small(char **line, int base, uint32_t *out)
{
	uint64_t v;

	if (!number(line, base, &v) || v > UINT32_MAX)
		return false;
	*out = (uint32_t)v;
	return true;
}

static bool decimal(char **line, double *out)
{
	char *w = word(line), *end;

	*out = strtod(w, &end);
	return end != w && !*end && *out >= 0 && *out < 1e12;
}

static bool read_program(struct shard_file *s, char *line)
{
	if (s->program)
		return false;
	s->program = xstrdup(word(&line));
	return number(&line, 16, &s->build) && number(&line, 10, &s->steps) && number(&line, 10, &s->threads);
}

static bool read_site(struct shard_file *s, char *line)
{
	struct ctl_site x;

	if (s->sites.n >= SHARD_MOST_SITES || !small(&line, 16, &x.module) || !small(&line, 16, &x.offset) ||
	    !small(&line, 16, &x.flags) || !small(&line, 10, &x.hits))
		return false;
	vec_push(&s->sites, x);
	return true;
}

static bool read_shard(struct shard_file *s, char *line)
{
	struct shard x = { 0 };

	if (s->shards.n >= SHARD_MOST || !number(&line, 10, &x.seed) || !small(&line, 10, &x.index) ||
	    !small(&line, 10, &x.of) || !number(&line, 10, &x.runs) || !decimal(&line, &x.seconds) ||
	    !decimal(&line, &x.cpu) || !x.index || x.index > x.of || x.of > SHARD_MOST)
		return false;
	vec_push(&s->shards, x);
	return true;
}

static bool read_status(struct shard_file *s, char *line)
{
	uint64_t value, count;

	if (!s->shards.n || !number(&line, 10, &value) || value > 255 || !number(&line, 10, &count))
		return false;
	s->shards.v[s->shards.n - 1].statuses[value] = count;
	return true;
}

static bool read_failure(struct shard_file *s, const char *dir, char *line)
{
	struct shard_failure x = { 0 };

	if (!s->shards.n || !number(&line, 16, &x.print) || !small(&line, 10, &x.kind) || !number(&line, 10, &x.count) ||
	    !number(&line, 10, &x.seed) || !number(&line, 10, &x.run) || !decimal(&line, &x.seconds))
		return false;
	x.strategy = xstrdup(word(&line));
	char *trace = word(&line);
	if (strcmp(trace, "-"))
		x.trace = *trace == '/' ? xstrdup(trace) : xasprintf("%s%s", dir, trace);
	x.text = xstrdup(word(&line));
	vec_push(&s->shards.v[s->shards.n - 1].failures, x);
	return true;
}

static bool read_line(struct shard_file *s, const char *dir, char *line)
{
	char *rest = line;
	const char *key = word(&rest);

	if (!strcmp(key, "program"))
		return read_program(s, rest);
	if (!s->program)
		return false;
	if (!strcmp(key, "command") && !s->command) {
		s->command = xstrdup(word(&rest));
		return true;
	}
	return !strcmp(key, "site") ? read_site(s, rest) : !strcmp(key, "shard") ? read_shard(s, rest) :
	       !strcmp(key, "status") ? read_status(s, rest) :
	       !strcmp(key, "failure") ? read_failure(s, dir, rest) : false;
}

static err_t slurp(const char *path, char **text, size_t *n)
{
	int fd = newfile_open_regular(AT_FDCWD, path, true);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		err_t e = err_errno("%s", path);
		if (fd >= 0)
			close(fd);
		return e;
	}
	*n = 0;
	*text = st.st_size <= LARGEST ? xcalloc(1, (size_t)st.st_size + 1) : NULL;
	for (ssize_t got = 1; *text && got > 0 && *n < (size_t)st.st_size; *n += got > 0 ? (size_t)got : 0)
		got = read(fd, *text + *n, (size_t)st.st_size - *n);
	close(fd);
	return *text ? NULL : err_new(ERR_INPUT, "%s: too large for a shard file", path);
}

/* The checksum is over everything in front of the last line. */
static bool is_whole(char *text, size_t n)
{
	char *last = NULL;

	if (n < sizeof FIRST_LINE || memcmp(text, FIRST_LINE, sizeof FIRST_LINE - 1) || memchr(text, 0, n) || text[n - 1] != '\n')
		return false;
	text[n - 1] = 0;
	last = strrchr(text, '\n');
	if (!last || strncmp(last + 1, "end ", 4))
		return false;
	char *end;
	uint64_t sum = strtoull(last + 5, &end, 16);
	bool good = !*end && sum == trc_checksum(text, (size_t)(last + 1 - text));
	last[1] = 0;
	return good;
}

err_t shard_read(const char *path, struct shard_file *out)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? xasprintf("%.*s", (int)(slash + 1 - path), path) : xstrdup(""), *text = NULL;
	size_t n, lines = 1;

	*out = (struct shard_file){ 0 };
	err_t e = slurp(path, &text, &n);
	if (!e && !is_whole(text, n))
		e = err_new(ERR_INPUT, "%s: no shard file, or damaged: its last line does not fit the rest", path);
	for (char *p = e ? NULL : text + sizeof FIRST_LINE - 1; !e && p && *p; lines++) {
		char *end = strchr(p, '\n');

		if (end)
			*end = 0;
		if (!read_line(out, dir, p))
			e = err_new(ERR_INPUT, "%s: line %zu is not understood", path, lines + 1);
		p = end ? end + 1 : NULL;
	}
	if (!e && (!out->program || !out->command || !out->shards.n))
		e = err_new(ERR_INPUT, "%s: a shard file without a shard", path);
	if (e)
		shard_free(out);
	free(text);
	free(dir);
	return e;
}

static void free_failures(struct shard *x)
{
	for (size_t i = 0; i < x->failures.n; i++) {
		free(x->failures.v[i].strategy);
		free(x->failures.v[i].text);
		free(x->failures.v[i].trace);
	}
	vec_free(&x->failures);
}

void shard_free(struct shard_file *s)
{
	for (size_t i = 0; i < s->shards.n; i++)
		free_failures(&s->shards.v[i]);
	vec_free(&s->shards);
	vec_free(&s->sites);
	free(s->program);
	free(s->command);
	*s = (struct shard_file){ 0 };
}

/* ---- uniting ---- */

err_t shard_same(const struct shard_file *a, const char *a_path, const struct shard_file *b, const char *b_path)
{
	if (strcmp(a->program, b->program) || a->build != b->build)
		return err_new(ERR_INPUT, "%s is of %s (build %" PRIx64 ") and %s of %s (build %" PRIx64 "): what was learned "
			       "of one build means nothing for another", a_path, a->program, a->build, b_path, b->program,
			       b->build);
	if (strcmp(a->command, b->command))
		return err_new(ERR_INPUT, "%s ran `%s' and %s ran `%s': merge them separately", a_path, a->command, b_path,
			       b->command);
	return NULL;
}

static int by_place(const void *a, const void *b)
{
	const struct ctl_site *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void settle_sites(struct shard_file *all)
{
	size_t n = 0;

	if (all->sites.n)
		qsort(all->sites.v, all->sites.n, sizeof *all->sites.v, by_place);
	for (size_t i = 1; i < all->sites.n; i++) {
		struct ctl_site *last = &all->sites.v[n], *now = &all->sites.v[i];

		if (by_place(last, now)) {
			all->sites.v[++n] = *now;
			continue;
		}
		last->flags |= now->flags;
		last->hits = now->hits > last->hits ? now->hits : last->hits;
	}
	all->settled_sites = all->sites.n = all->sites.n ? n + 1 : 0;
}

static int by_number(double a, double b)
{
	return a < b ? -1 : a > b;
}

static int by_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int by_failure(const struct shard_failure *x, const struct shard_failure *y)
{
	const uint64_t a[] = { x->print, x->count, x->seed, x->run, x->kind }, b[] = { y->print, y->count, y->seed, y->run, y->kind };
	int order = 0;

	for (size_t i = 0; !order && i < sizeof a / sizeof *a; i++)
		order = a[i] < b[i] ? -1 : a[i] > b[i];
	order = order ? order : by_number(x->seconds, y->seconds);
	order = order ? order : by_text(x->trace, y->trace);
	order = order ? order : by_text(x->strategy, y->strategy);
	return order ? order : by_text(x->text, y->text);
}

/* The same shard, the same number of runs: one of the two counts, and always the same one, whoever came first. */
static int by_contents(const struct shard *x, const struct shard *y)
{
	int order = by_number(x->seconds, y->seconds);

	order = order ? order : by_number(x->cpu, y->cpu);
	order = order ? order : memcmp(x->statuses, y->statuses, sizeof x->statuses);
	order = order ? order : by_number((double)x->failures.n, (double)y->failures.n);
	for (size_t i = 0; !order && i < x->failures.n; i++)
		order = by_failure(&x->failures.v[i], &y->failures.v[i]);
	return order;
}

static int by_shard(const void *a, const void *b)
{
	const struct shard *x = a, *y = b;

	if (x->seed != y->seed)
		return x->seed < y->seed ? -1 : 1;
	if (x->of != y->of)
		return x->of < y->of ? -1 : 1;
	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	if (x->runs != y->runs)
		return x->runs > y->runs ? -1 : 1;
	return by_contents(x, y);
}

static bool same_shard(const struct shard *a, const struct shard *b)
{
	return a->seed == b->seed && a->of == b->of && a->index == b->index;
}

static void settle_shards(struct shard_file *all)
{
	size_t n = 0;

	if (all->shards.n)
		qsort(all->shards.v, all->shards.n, sizeof *all->shards.v, by_shard);
	for (size_t i = 1; i < all->shards.n; i++)
		if (same_shard(&all->shards.v[n], &all->shards.v[i]))
			free_failures(&all->shards.v[i]);
		else
			all->shards.v[++n] = all->shards.v[i];
	all->settled = all->shards.n = all->shards.n ? n + 1 : 0;
}

#define FEW 1024 /* shards, or sites, that are brought together for the first time */

void shard_unite(struct shard_file *all, struct shard_file *more)
{
	if (!all->program) {
		all->program = more->program;
		all->command = more->command;
		all->build = more->build;
		more->program = more->command = NULL;
	}
	for (size_t i = 0; i < more->sites.n; i++)
		vec_push(&all->sites, more->sites.v[i]);
	for (size_t i = 0; i < more->shards.n; i++)
		vec_push(&all->shards, more->shards.v[i]);
	more->shards.n = 0;
	all->steps = more->steps > all->steps ? more->steps : all->steps;
	all->threads = more->threads > all->threads ? more->threads : all->threads;
	shard_free(more);
	/* The same again and again takes no room, and sorting little time. */
	if (all->shards.n > 2 * all->settled + FEW)
		settle_shards(all);
	if (all->sites.n > 2 * all->settled_sites + FEW)
		settle_sites(all);
}

void shard_united(struct shard_file *all)
{
	settle_shards(all);
	settle_sites(all);
}
