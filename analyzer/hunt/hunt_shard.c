/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hunt that is one shard of several: what it has learned is in a file after each run, and it goes on from there. */
#include "analyzer/hunt/hunt_internal.h"

#include "analyzer/hunt/shard.h"
#include "common/strbuf.h"
#include "common/vec.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static char *path_of(const struct hunt *h)
{
	return xasprintf("%s%sshard-%u-of-%u" SHARD_SUFFIX, h->o->out ? h->o->out : "", h->o->out ? "/" : "", h->o->shard,
			 h->o->shards);
}

static char *command_of(const struct hunt *h)
{
	struct strbuf b = { 0 };

	for (char **a = h->o->argv; *a; a++) {
		strbuf_str(&b, a == h->o->argv ? "" : " ");
		strbuf_word(&b, *a, strlen(*a));
	}
	return strbuf_take(&b);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- writing ---- */

static void collect_sites(const struct ctl_sites *sites, struct shard_file *f)
{
	for (uint32_t i = 0; i < CTL_MAX_SITES; i++)
		if (sites->site[i].flags & CTL_SITE_USED)
			vec_push(&f->sites, sites->site[i]);
}

err_t hunt_save(struct hunt *h)
{
	const struct hunt_result *r = h->res;
	struct shard_file f = { .program = xstrdup(base_name(h->o->argv[0])), .build = h->plan.sites->build,
				.command = command_of(h), .steps = h->plan.sites->steps, .threads = h->plan.sites->threads };
	struct shard s = { .seed = h->o->seed, .index = h->o->shard, .of = h->o->shards, .runs = r->runs,
			   .seconds = child_now() - h->begin, .cpu = h->cpu_before + cpu_seconds() };

	memcpy(s.statuses, h->statuses.count, sizeof s.statuses);
	for (uint32_t i = 0; i < r->nkinds; i++) {
		const struct hunt_failure *k = &r->kinds[i];
		struct shard_failure x = { k->print, k->count, k->seed, k->run, k->kind, k->seconds, xstrdup(k->strategy),
					   xstrdup(k->text), k->trace ? xstrdup(k->trace) : NULL };
		vec_push(&s.failures, x);
	}
	vec_push(&f.shards, s);
	collect_sites(h->plan.sites, &f);
	char *path = path_of(h);
	err_t e = shard_write(&f, path);
	free(path);
	shard_free(&f);
	return e;
}

/* ---- going on ---- */

/* As the shim finds them again: preload/control/site.c. */
static void add_site(struct ctl_sites *to, const struct ctl_site *s)
{
	uint64_t key = s->module | (uint64_t)s->offset << 32;
	uint32_t i = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 40);

	for (uint32_t tried = 0; tried < CTL_MAX_SITES / 2; tried++, i++) {
		struct ctl_site *slot = &to->site[i & (CTL_MAX_SITES - 1)];

		if (slot->flags & CTL_SITE_USED)
			continue;
		*slot = *s;
		slot->flags |= CTL_SITE_USED;
		to->nsites++;
		to->nshared += (s->flags & CTL_SITE_SHARED) != 0;
		return;
	}
}

static void restore_failures(struct hunt *h, const struct shard *s)
{
	struct hunt_result *r = h->res;

	r->kinds = xcalloc(s->failures.n + 1, sizeof *r->kinds);
	for (size_t i = 0; i < s->failures.n; i++) {
		const struct shard_failure *x = &s->failures.v[i];
		struct hunt_failure *k = &r->kinds[r->nkinds++];

		*k = (struct hunt_failure){ .text = xstrdup(x->text), .print = x->print, .count = x->count, .kind = x->kind,
					    .seed = x->seed, .run = x->run, .seconds = x->seconds };
		snprintf(k->strategy, sizeof k->strategy, "%s", x->strategy);
		r->failures += x->count;
		if (!x->trace || access(x->trace, F_OK))
			continue;
		k->trace = xstrdup(x->trace);
		h->nkept++;
		if (r->trace)
			continue;
		h->main_kind = (uint32_t)i;
		r->trace = xstrdup(x->trace);
		r->explainable = x->kind != 0;
		r->first_run = x->run;
		r->first_seconds = x->seconds;
		r->first_seed = x->seed;
		memcpy(r->strategy, k->strategy, sizeof r->strategy);
	}
}

static void restore(struct hunt *h, const struct shard_file *f, const struct shard *s)
{
	bool empty = !h->plan.sites->nsites; /* else --sites knows them */

	for (size_t i = 0; empty && i < f->sites.n; i++)
		add_site(h->plan.sites, &f->sites.v[i]);
	h->plan.sites->steps = f->steps;
	h->plan.sites->threads = f->threads;
	memcpy(h->statuses.count, s->statuses, sizeof s->statuses);
	h->res->runs = h->started = s->runs;
	h->begin = child_now() - s->seconds;
	h->cpu_before = s->cpu;
	/* How long a run takes is measured anew: this may be another machine. */
	restore_failures(h, s);
}

err_t hunt_resume(struct hunt *h)
{
	char *path = path_of(h), *command = command_of(h);
	struct shard_file f = { 0 }, now = { .program = (char *)base_name(h->o->argv[0]), .build = h->plan.sites->build,
					     .command = command };
	err_t e = NULL;

	if (!access(path, F_OK)) {
		e = shard_read(path, &f);
		if (!e)
			e = shard_same(&f, path, &now, "this hunt");
		if (!e && f.shards.v[0].seed != h->o->seed)
			e = err_new(ERR_INPUT, "%s began with --seed=%llu: continue with that seed, or choose another --out", path,
				    (unsigned long long)f.shards.v[0].seed);
		if (!e)
			restore(h, &f, &f.shards.v[0]);
		shard_free(&f);
	}
	free(path);
	free(command);
	return e;
}

/* ---- one for all ---- */

bool hunt_is_stopped(const struct hunt *h)
{
	return h->o->stop_file && !access(h->o->stop_file, F_OK);
}

err_t hunt_stop_others(const struct hunt *h)
{
	if (!h->o->stop_file || h->o->keep_going || !h->res->trace)
		return NULL;
	int fd = open(h->o->stop_file, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);

	if (fd < 0)
		return err_errno("--stop-file: %s", h->o->stop_file);
	close(fd);
	return NULL;
}
