/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One run of a hunt: what it is to be, and how it is started. */
#include "analyzer/hunt/hunt_internal.h"

#include "analyzer/launch.h"
#include "common/strbuf.h"
#include "common/vec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FIRST_LIMIT 60.0 /* seconds for the first run, whose length is unknown ... */
#define LEAST_FIRST 6.0  /* ... of a short hunt half of its time, but no less than this */

double hunt_limit(const struct hunt *h)
{
	if (h->o->run_limit > 0)
		return h->o->run_limit;
	if (h->plan.run_seconds <= 0 && h->o->max_seconds > 0 && h->o->max_seconds / 2 < FIRST_LIMIT)
		return h->o->max_seconds / 2 > LEAST_FIRST ? h->o->max_seconds / 2 : LEAST_FIRST;
	if (h->plan.run_seconds <= 0)
		return FIRST_LIMIT;
	return 10 + 20 * h->plan.run_seconds;
}

double hunt_seconds_left(const struct hunt *h)
{
	double left = h->begin + h->o->max_seconds - child_now();

	return h->o->max_seconds <= 0 ? 1e9 : left > 0 ? left : 0;
}

static void option_number(struct strbuf *b, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	launch_option(b, key, text);
}

static void option_seconds(struct strbuf *b, const char *key, double value)
{
	char text[24];

	snprintf(text, sizeof text, "%.1f", value);
	launch_option(b, key, text);
}

static void option_statuses(const struct hunt *h, struct strbuf *b)
{
	struct strbuf list = { 0 };

	statuses_list(&h->statuses, &list);
	if (h->o->fail_exit)
		launch_option(b, "fail_exit", h->o->fail_exit);
	else if (list.n)
		launch_option(b, "fail_exit", list.s);
	strbuf_free(&list);
}

static char *options_of(const struct hunt *h, const struct job *j)
{
	struct strbuf b = { 0 };
	char sites[PATH_MAX];

	snprintf(sites, sizeof sites, "%s/sites", h->work);
	/* A run that stands still is reported by the shim, with all stacks, before
	 * the time limit ends it. Learning can be slow enough to look like that. */
	if (strncmp(j->hunt, "learn", 5))
		option_seconds(&b, "hang", hunt_limit(h) * 0.6);
	launch_options_given(&b);
	launch_option(&b, "quiet", "1");
	launch_option(&b, "deadlock", "abort");
	launch_option(&b, "dir", j->dir);
	launch_option(&b, "sites", sites);
	/* Whose trace is wanted may not be who fails. */
	if (h->o->trace_of || h->o->check)
		launch_option(&b, "keep", "always");
	option_number(&b, "seed", j->seed);
	if (*j->hunt)
		launch_option(&b, "hunt", j->hunt);
	option_statuses(h, &b);
	if (h->o->options && *h->o->options)
		strbuf_fmt(&b, ":%s", h->o->options);
	return strbuf_take(&b);
}

bool hunt_wants_cores(const struct job *j)
{
	return !*j->hunt || !strncmp(j->hunt, "meet", 4);
}

const struct job *hunt_next_run(struct hunt *h)
{
	struct job *n = &h->next;

	if (h->has_next)
		return n;
	if (h->repeats) {
		h->repeats--;
		n->seed = h->again.seed;
		memcpy(n->hunt, h->again.hunt, sizeof n->hunt);
	} else {
		plan_next(&h->plan, h->started, &n->seed, n->hunt, sizeof n->hunt);
	}
	n->run = h->started;
	h->has_next = true;
	return n;
}

/* Who runs beside whom may have disturbed the other. */
static void note_company(struct hunt *h, struct job *j)
{
	j->shared = false;
	for (uint32_t i = 0; i < h->njobs; i++)
		if (&h->jobs[i] != j && h->jobs[i].child.pid)
			j->shared = h->jobs[i].shared = true;
}

err_t hunt_start_job(struct hunt *h, struct job *j)
{
	const struct hunt_options *o = h->o;
	const struct job *n = hunt_next_run(h);

	j->run = n->run;
	j->seed = n->seed;
	memcpy(j->hunt, n->hunt, sizeof j->hunt);
	note_company(h, j);
	h->started++;
	h->has_next = false;
	if (mkdir(j->dir, 0700) && errno != EEXIST)
		return err_errno("%s", j->dir);
	char *options = options_of(h, j);
	char *preload = launch_preload(o->shim);
	char *env[] = { xasprintf("CSCHED_OPTIONS=%s", options),
			xasprintf("LD_PRELOAD=%s", preload), NULL };
	struct child_spec spec = { o->argv, h->input, j->output, env, o->env, o->directory };
	err_t e = child_start(&j->child, &spec, hunt_limit(h));
	free(options);
	free(preload);
	free(env[0]);
	free(env[1]);
	return e;
}
