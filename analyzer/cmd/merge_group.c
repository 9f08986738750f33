/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Failures with one fingerprint are one failure; the best of its traces is explained already, and short. */
#include "analyzer/cmd/merge.h"

#include "analyzer/hunt/files.h"
#include "common/pack.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* One failure of one shard, with what its trace says. */
struct seen {
	struct shard_failure *f;
	size_t shard;
	char fingerprint[ASIDE_FINGERPRINT];
	bool explained; /* the fingerprint is its trace's own */
	uint64_t bytes; /* of the trace; UINT64_MAX: it is not there */
};
typedef VEC(struct seen) seen_t;

/* By its files: it may come from anywhere, and nothing of it is read. */
static uint64_t length_of_directory(const char *path)
{
	DIR *d = opendir(path);
	uint64_t bytes = 0;
	bool is_trace = false;

	for (struct dirent *e; d && (e = readdir(d));) {
		struct stat st;

		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		bytes += (uint64_t)st.st_size;
		is_trace |= !strcmp(e->d_name, "process");
	}
	if (d)
		closedir(d);
	return is_trace ? bytes : UINT64_MAX;
}

/* UINT64_MAX: it is not there. */
static uint64_t length_of(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return UINT64_MAX;
	return S_ISDIR(st.st_mode) ? length_of_directory(path) :
	       S_ISREG(st.st_mode) && pack_is(path) ? (uint64_t)st.st_size : UINT64_MAX;
}

static void collect(struct merge *m, seen_t *all)
{
	for (size_t i = 0; i < m->all.shards.n; i++) {
		struct shard *s = &m->all.shards.v[i];

		m->runs += s->runs;
		m->cpu += s->cpu;
		for (unsigned v = 0; v < 256; v++)
			m->statuses[v] += s->statuses[v];
		for (size_t k = 0; k < s->failures.n; k++) {
			struct seen x = { .f = &s->failures.v[k], .shard = i, .bytes = UINT64_MAX };

			if (x.f->trace && (x.bytes = length_of(x.f->trace)) != UINT64_MAX)
				aside_fingerprint(x.f->trace, x.fingerprint);
			x.explained = *x.fingerprint;
			vec_push(all, x);
		}
	}
}

static int by_print(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->f->print != y->f->print)
		return x->f->print < y->f->print ? -1 : 1;
	/* What is explained comes first, and the smallest of several. */
	if (!*x->fingerprint != !*y->fingerprint)
		return *x->fingerprint ? -1 : 1;
	int order = strcmp(x->fingerprint, y->fingerprint);
	return order ? order : x->shard < y->shard ? -1 : x->shard > y->shard;
}

/* What was not explained is taken for what the others are that fail at the same point. */
static void infer(seen_t *all)
{
	qsort(all->v, all->n, sizeof *all->v, by_print);
	for (size_t i = 1; i < all->n; i++)
		if (all->v[i].f->print == all->v[i - 1].f->print && !*all->v[i].fingerprint)
			memcpy(all->v[i].fingerprint, all->v[i - 1].fingerprint, ASIDE_FINGERPRINT);
}

/* The best of a group's traces comes first. */
static int by_group(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;
	int order = strcmp(x->fingerprint, y->fingerprint);

	if (order)
		return order;
	if (!*x->fingerprint && x->f->print != y->f->print)
		return x->f->print < y->f->print ? -1 : 1;
	if (x->explained != y->explained)
		return x->explained ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	order = strcmp(x->f->trace ? x->f->trace : "", y->f->trace ? y->f->trace : "");
	return order ? order : x->shard < y->shard ? -1 : x->shard > y->shard;
}

static bool same_group(const struct seen *a, const struct seen *b)
{
	return !strcmp(a->fingerprint, b->fingerprint) && (*a->fingerprint || a->f->print == b->f->print);
}

static struct merge_group begin(const struct seen *s)
{
	struct merge_group g = { .print = s->f->print, .text = xstrdup(s->f->text), .strategy = xstrdup(s->f->strategy),
				 .seed = s->f->seed, .seconds = s->f->seconds,
				 .trace = s->bytes == UINT64_MAX ? NULL : xstrdup(s->f->trace) };

	memcpy(g.fingerprint, s->fingerprint, sizeof g.fingerprint);
	return g;
}

static int by_count(const void *a, const void *b)
{
	const struct merge_group *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	int order = strcmp(x->fingerprint, y->fingerprint);
	return order ? order : x->print < y->print ? -1 : x->print > y->print;
}

void merge_group(struct merge *m)
{
	seen_t all = { 0 };
	size_t *last = xcalloc(m->all.shards.n + 1, sizeof *last); /* group, from 1, that a shard was last counted for */

	m->program = m->all.program;
	collect(m, &all);
	infer(&all);
	if (all.n)
		qsort(all.v, all.n, sizeof *all.v, by_group);
	for (size_t i = 0; i < all.n; i++) {
		const struct seen *s = &all.v[i];

		if (!i || !same_group(s, &all.v[i - 1])) {
			struct merge_group g = begin(s);
			vec_push(&m->groups, g);
		}
		struct merge_group *g = &m->groups.v[m->groups.n - 1];
		g->count += s->f->count;
		g->seconds = s->f->seconds < g->seconds ? s->f->seconds : g->seconds;
		g->nshards += last[s->shard] != m->groups.n;
		last[s->shard] = m->groups.n;
	}
	if (m->groups.n)
		qsort(m->groups.v, m->groups.n, sizeof *m->groups.v, by_count);
	vec_free(&all);
	free(last);
}

/* ---- taking along ---- */

static void rename_all(struct merge *m, const char *from, const char *to)
{
	for (size_t i = 0; i < m->all.shards.n; i++)
		for (size_t k = 0; k < m->all.shards.v[i].failures.n; k++) {
			struct shard_failure *f = &m->all.shards.v[i].failures.v[k];

			if (f->trace && !strcmp(f->trace, from)) {
				free(f->trace);
				f->trace = xstrdup(to);
			}
		}
}

/* What is written first into a trace: who ran where and when. */
static bool same_start(const char *a, const char *b)
{
	char *names[2] = { xasprintf("%s/process", a), xasprintf("%s/process", b) };
	FILE *f[2] = { fopen(names[0], "re"), fopen(names[1], "re") };
	char x[4096], y[4096];
	bool same = f[0] && f[1];

	for (size_t n = 1; same && n;) {
		n = fread(x, 1, sizeof x, f[0]);
		same = fread(y, 1, sizeof y, f[1]) == n && !memcmp(x, y, n);
	}
	for (int i = 0; i < 2; i++) {
		if (f[i])
			fclose(f[i]);
		free(names[i]);
	}
	return same;
}

/* Where it was brought by an earlier merge, where the shard itself wrote it, or where there is nothing yet (*there false). */
static err_t place_for(const char *trace, const char *out, char **to, bool *there)
{
	const char *slash = strrchr(trace, '/'), *name = slash ? slash + 1 : trace;
	struct stat st;

	for (unsigned n = 1;; n++) {
		*to = files_numbered(out, name, n);
		*there = !lstat(*to, &st);
		if (!*there || same_start(trace, *to))
			break;
		free(*to);
	}
	if (*there)
		return NULL;
	free(*to);
	return files_reserve(out, name, to);
}

err_t merge_bring(struct merge *m, struct merge_group *g, const char *out)
{
	char *to = NULL;
	bool there = false;

	if (!g->trace)
		return NULL;
	err_t e = place_for(g->trace, out, &to, &there);
	if (!e && !there)
		e = files_copy_tree(g->trace, to);
	if (!e) {
		char *from = xstrdup(g->trace);

		rename_all(m, from, to);
		free(from);
		free(g->trace);
		g->trace = xstrdup(to);
	}
	free(to);
	return e;
}

void merge_free(struct merge *m)
{
	for (size_t i = 0; i < m->groups.n; i++) {
		free(m->groups.v[i].text);
		free(m->groups.v[i].strategy);
		free(m->groups.v[i].trace);
	}
	for (size_t i = 0; i < m->left_out.n; i++)
		free(m->left_out.v[i]);
	vec_free(&m->groups);
	vec_free(&m->left_out);
	shard_free(&m->all);
	xpl_coverage_file_free(&m->coverage);
}
