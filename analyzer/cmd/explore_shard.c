/* SPDX-License-Identifier: GPL-2.0-or-later */
/* csched explore --shard: what a shard found, as a shard file like a hunt's, for csched merge. */
#include "analyzer/cmd/aside.h"
#include "analyzer/cmd/explore.h"
#include "analyzer/hunt/files.h"
#include "analyzer/hunt/shard.h"
#include "analyzer/image/image.h"

#include "common/strbuf.h"
#include "common/trace_read.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* A shard of a hunt that has the same seed and number is another one. */
#define EXPLORED (1ull << 62)
#define SECONDS_TO_EXPLAIN 60 /* one of its failures */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

err_t explore_shard_number(const char *text, uint32_t *index, uint32_t *of)
{
	char rest;

	if (sscanf(text, "%u/%u%c", index, of, &rest) != 2 || !*index || *index > *of || *of > SHARD_MOST ||
	    !isdigit((unsigned char)*text))
		return err_new(ERR_USAGE, "--shard: '%s' is not I/N, the I-th of N shards", text);
	return NULL;
}

char *explore_shard_path(const char *out, uint32_t index, uint32_t of, const char *suffix)
{
	return xasprintf("%s%sshard-%u-of-%u%s", out ? out : "", out ? "/" : "", index, of, suffix);
}

static double cpu_of(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* As a hunt names builds. */
static uint64_t build_of(const char *program)
{
	char *id = img_build_id_of_file(program);
	uint64_t sum = id && *id ? trc_checksum(id, strlen(id)) : 0;

	free(id);
	return sum;
}

static struct shard_file file_of(const struct explore_shard *s)
{
	struct shard_file f = { .program = xstrdup(base_name(s->argv[0])), .build = build_of(s->argv[0]) };
	struct strbuf b = { 0 };

	for (char **a = s->argv; *a; a++) {
		strbuf_str(&b, a == s->argv ? "" : " ");
		strbuf_word(&b, *a, strlen(*a));
	}
	f.command = strbuf_take(&b);
	return f;
}

/* What it knew before it was ended: refused when it is of another build or command. */
err_t explore_shard_resume(struct explore_shard *s)
{
	char *path = explore_shard_path(s->out, s->index, s->of, SHARD_SUFFIX);
	struct shard_file before = { 0 }, now = file_of(s);
	err_t e = s->out ? files_make_dirs(s->out) : NULL;

	if (!e && !access(path, F_OK)) {
		e = shard_read(path, &before);
		if (!e)
			e = shard_same(&before, path, &now, "this exploration");
		if (!e && before.shards.v[0].seed != (s->seed | EXPLORED))
			e = err_new(ERR_INPUT, "%s is of a hunt, or of another --seed: name another directory with --out", path);
	}
	if (!e && before.shards.n) {
		s->before = before.shards.v[0];
		before.shards.n = 0;
		s->resumed = true;
	}
	shard_free(&before);
	shard_free(&now);
	free(path);
	return e;
}

static void add_failures(const struct explore_shard *s, const struct explore_result *r, struct shard *to)
{
	for (size_t i = 0; s->resumed && i < s->before.failures.n; i++) {
		struct shard_failure x = s->before.failures.v[i];

		x.strategy = xstrdup(x.strategy);
		x.text = xstrdup(x.text);
		x.trace = x.trace ? xstrdup(x.trace) : NULL;
		vec_push(&to->failures, x);
	}
	for (size_t i = 0; i < r->failures.n; i++) {
		const struct explore_failure *f = &r->failures.v[i];
		struct shard_failure *same = NULL;

		if (!f->confirmed)
			continue;
		for (size_t k = 0; k < to->failures.n && !same; k++)
			same = to->failures.v[k].print == f->print ? &to->failures.v[k] : NULL;
		if (same) {
			same->count += f->orders;
			continue;
		}
		vec_push(&to->failures, (struct shard_failure){
			.print = f->print, .count = f->orders, .seed = s->seed, .run = f->schedule, .kind = f->kind,
			.seconds = f->seconds, .strategy = xasprintf("explore/%s", s->strategy),
			.text = xstrdup(f->text ? f->text : ""), .trace = f->trace ? xstrdup(f->trace) : NULL });
	}
}

err_t explore_shard_save(void *arg, const struct explore_result *r)
{
	const struct explore_shard *s = arg;
	struct shard_file f = file_of(s);
	struct shard one = { .seed = s->seed | EXPLORED, .index = s->index, .of = s->of, .runs = r->drive.schedules,
			     .cpu = cpu_of(RUSAGE_SELF) + cpu_of(RUSAGE_CHILDREN),
			     .seconds = r->drive.began > 0 ? xpl_now() - r->drive.began : 0 };

	if (s->resumed) {
		one.runs += s->before.runs;
		one.cpu += s->before.cpu;
		one.seconds += s->before.seconds;
	}
	add_failures(s, r, &one);
	vec_push(&f.shards, one);
	char *path = explore_shard_path(s->out, s->index, s->of, SHARD_SUFFIX);
	err_t e = shard_write(&f, path);

	free(path);
	shard_free(&f);
	return e;
}

static void explain_once(const char *trace, uint32_t kind)
{
	char print[ASIDE_FINGERPRINT] = "";

	if (!trace || !kind)
		return;
	aside_fingerprint(trace, print);
	if (!*print)
		aside_explain(trace, SECONDS_TO_EXPLAIN);
}

/*
 * A merge groups failures by the fingerprints of their causes, which are beside the traces then. Those found
 * before this shard was ended may not have been explained.
 */
void explore_shard_explain(const struct explore_shard *s, const struct explore_result *r)
{
	for (size_t i = 0; s->resumed && i < s->before.failures.n; i++)
		explain_once(s->before.failures.v[i].trace, s->before.failures.v[i].kind);
	for (size_t i = 0; i < r->failures.n; i++)
		explain_once(r->failures.v[i].trace, r->failures.v[i].kind);
}

void explore_shard_free(struct explore_shard *s)
{
	struct shard_file f = { 0 };

	if (s->resumed)
		vec_push(&f.shards, s->before);
	shard_free(&f);
	s->resumed = false;
}
