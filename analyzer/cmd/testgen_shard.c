/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * csched testgen --shard: disjoint parts of the tests, and what one found as a shard file like a hunt's, for csched merge.
 * Written after each test: who is ended loses the test that was under way, and goes on behind the last one.
 */
#include "analyzer/cmd/testgen.h"

#include "analyzer/cmd/explore.h"
#include "analyzer/hunt/child.h"
#include "analyzer/hunt/files.h"
#include "analyzer/hunt/shard.h"
#include "analyzer/image/image.h"
#include "common/trace_read.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* A shard of a hunt or an exploration that has the same seed and number is another one. */
#define GENERATED (1ull << 61)

static double cpu_of(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* The server's and its children's; it is one of ours that has not ended. */
static double cpu_of_server(pid_t pid)
{
	char path[48], text[1024];
	unsigned long t[4] = { 0 };

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "re");
	const char *end = f && fgets(text, sizeof text, f) ? strrchr(text, ')') : NULL;
	if (end)
		sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu", &t[0], &t[1], &t[2], &t[3]);
	if (f)
		fclose(f);
	return (double)(t[0] + t[1] + t[2] + t[3]) / (double)sysconf(_SC_CLK_TCK);
}

/* The command says what was tested; shards that test something else are not united with these. */
static struct shard_file file_of(const struct testgen_shard *s)
{
	const struct api *a = s->api;
	struct shard_file f = { .program = xstrdup(a->soname) };
	char *id = img_build_id_of_file(a->path);

	f.build = id && *id ? trc_checksum(id, strlen(id)) : 0;
	f.command = xasprintf("testgen --type='%s' --strategy=%s %s", a->objects.v[s->to->object].name, s->to->strategy, a->soname);
	free(id);
	return f;
}

static uint32_t kind_of(const struct failure *f)
{
	return f->end == JOB_DEADLOCK ? TRC_FAIL_DEADLOCK : f->end == JOB_HANG ? TRC_FAIL_HANG :
	       f->end == JOB_SIGNAL && f->status == SIGABRT ? TRC_FAIL_ABORT : TRC_FAIL_SIGNAL;
}

err_t testgen_shard_begin(struct testgen_shard *s, const char *text)
{
	struct shard_file before = { 0 }, now;
	uint32_t index, of;

	TRY(explore_shard_number(text, &index, &of));
	TRY(files_make_dirs(s->to->out));
	s->to->part = index;
	s->to->parts = of;
	s->began = child_now();
	s->path = explore_shard_path(s->to->out, index, of, SHARD_SUFFIX);
	if (access(s->path, F_OK))
		return NULL;
	now = file_of(s);
	err_t e = shard_read(s->path, &before);
	if (!e)
		e = shard_same(&before, s->path, &now, "this search");
	if (!e && (!before.shards.n || strcmp(before.command, now.command) ||
		   before.shards.v[0].seed != (s->to->seed | GENERATED)))
		e = err_new(ERR_INPUT, "%s is of another search (%s) or another --seed: name another directory with --out", s->path,
			    before.command ? before.command : "unknown");
	if (!e) {
		s->before = before.shards.v[0];
		before.shards.v[0] = (struct shard){ 0 };
		s->resumed = true;
		s->to->skip = s->before.runs;
	}
	shard_free(&before);
	shard_free(&now);
	return e;
}

static void add_failure(const struct testgen_shard *s, const struct violation *v, struct shard *to)
{
	char *base = v->file ? xstrdup(v->file) : NULL, *trace = NULL;

	if (base) {
		base[strlen(base) - 2] = 0;
		trace = xasprintf("%s.csched", base);
	}
	if (trace && access(trace, F_OK)) {
		free(trace);
		trace = NULL;
	}
	vec_push(&to->failures, (struct shard_failure){
		.print = failure_print(&v->failure), .count = 1, .seed = s->to->seed, .run = v->number,
		.kind = kind_of(&v->failure), .seconds = v->seconds, .strategy = xasprintf("testgen/%s", s->to->strategy),
		.text = testgen_failure_text(s->api, &v->failure), .trace = trace });
	free(base);
}

static void add_earlier(const struct testgen_shard *s, struct shard *to)
{
	for (size_t i = 0; i < s->before.failures.n; i++) {
		struct shard_failure x = s->before.failures.v[i];

		x.strategy = xstrdup(x.strategy);
		x.text = xstrdup(x.text);
		x.trace = x.trace ? xstrdup(x.trace) : NULL;
		vec_push(&to->failures, x);
	}
}

err_t testgen_shard_save(void *arg, struct lab *lab, struct testgen_result *r)
{
	struct testgen_shard *s = arg;
	struct shard one = { .seed = s->to->seed | GENERATED, .index = s->to->part, .of = s->to->parts,
			     .runs = s->to->skip + r->tests, .cpu = s->before.cpu + cpu_of(RUSAGE_SELF) + cpu_of(RUSAGE_CHILDREN) +
				    cpu_of_server(lab->server.pid),
			     .seconds = s->before.seconds + child_now() - s->began };
	err_t e = NULL;

	add_earlier(s, &one);
	for (size_t i = 0; i < r->violations.n && !e; i++) {
		struct violation *v = &r->violations.v[i];
		bool known = false;

		/* Numbered behind those of earlier runs and of other shards. */
		if (!v->file)
			e = testgen_write(lab, s->to, v, (unsigned)(s->to->part * 1000 + s->before.failures.n + i + 1));
		for (size_t k = 0; k < s->before.failures.n; k++)
			known |= s->before.failures.v[k].print == failure_print(&v->failure);
		if (!e && !known)
			add_failure(s, v, &one);
	}
	struct shard_file f = file_of(s);
	vec_push(&f.shards, one);
	if (!e)
		e = shard_write(&f, s->path);
	shard_free(&f);
	return e;
}

void testgen_shard_free(struct testgen_shard *s)
{
	struct shard_file f = { 0 };

	if (s->resumed)
		vec_push(&f.shards, s->before);
	shard_free(&f);
	free(s->path);
}
