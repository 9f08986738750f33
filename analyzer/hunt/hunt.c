/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The loop of a hunt: keeps the cores busy with runs until one fails or the budget ends. */
#include "analyzer/hunt/hunt.h"

#include "analyzer/hunt/around.h"
#include "analyzer/hunt/files.h"
#include "analyzer/hunt/hunt_internal.h"
#include "analyzer/hunt/interrupt.h"
#include "analyzer/image/image.h"
#include "common/strbuf.h"
#include "common/trace_sum.h"
#include "common/vec.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* When the time is over, who has run for so many times an undisturbed run, and so many seconds, would not have ended soon. */
#define OVERDUE_TIMES 5.0
#define OVERDUE_SECONDS 1.0

static err_t make_work(struct hunt *h)
{
	bool terminal = false;

	TRY(files_make_work("csched-hunt", h->work, sizeof h->work));
	snprintf(h->input, sizeof h->input, "%s/input", h->work);
	if (h->o->input) {
		snprintf(h->input, sizeof h->input, "%s", h->o->input);
		return NULL;
	}
	TRY(files_keep_input(h->input, &terminal));
	if (terminal && !h->o->quiet)
		fprintf(stderr, "csched hunt: standard input is a terminal; the runs get an empty one\n");
	return NULL;
}

/* ---- the loop ---- */

/* How much of the budget is gone, what it brought, and why it may never bring anything. */
static void show_progress(struct hunt *h, bool last)
{
	const struct hunt_result *r = h->res;
	const struct hunt_options *o = h->o;
	double now = child_now(), spent = now - h->begin;
	char of_runs[32] = "", of_time[32] = "", found[64] = "no failure yet";

	if (o->quiet || !isatty(2) || (!last && now - h->shown < 0.2))
		return;
	h->shown = now;
	if (o->max_runs)
		snprintf(of_runs, sizeof of_runs, " of %llu", (unsigned long long)o->max_runs);
	if (o->max_seconds > 0)
		snprintf(of_time, sizeof of_time, " of %.0f", o->max_seconds);
	if (r->failures)
		snprintf(found, sizeof found, "%llu failed (%u distinct)", (unsigned long long)r->failures, r->nkinds);
	fprintf(stderr, "\r\033[K%llu%s runs in %.0f%s s, %.1f runs/s, %s, %u shared sites%s%s", (unsigned long long)r->runs,
		of_runs, spent, of_time, (double)r->runs / (spent + 1e-9), found, h->plan.sites->nshared,
		h->plan.sites->threads == 1 ? ", no second thread" : r->runs && r->exits == r->runs ? ", all exit with an error" : "",
		last ? "\n" : "");
}

static bool budget_left(const struct hunt *h)
{
	const struct hunt_options *o = h->o;

	if (interrupt_pending() || hunt_is_settled(h) || hunt_is_stopped(h))
		return false;
	if (o->max_runs && h->started >= o->max_runs)
		return false;
	if (o->max_failures && h->res->failures >= o->max_failures)
		return false;
	return !o->max_seconds || child_now() - h->begin < o->max_seconds;
}

/* The first run alone tells how long runs take; others may want the cores to themselves. */
static bool may_start(struct hunt *h, uint32_t busy)
{
	if (!busy)
		return true;
	if (h->alone || h->plan.run_seconds <= 0 || hunt_wants_cores(hunt_next_run(h)))
		return false;
	for (uint32_t i = 0; i < h->njobs; i++)
		if (h->jobs[i].child.pid && hunt_wants_cores(&h->jobs[i]))
			return false;
	return true;
}

/* The job whose run ended or is late, or -1 after a while. */
static int wait_job(struct hunt *h)
{
	struct child list[MAX_JOBS];

	for (uint32_t k = 0; k < h->njobs; k++)
		list[k] = h->jobs[k].child;
	double left = hunt_seconds_left(h);
	int i = child_wait_any(list, h->njobs, left < 0.5 ? left : 0.5);
	for (uint32_t k = 0; k < h->njobs && i < 0; k++)
		files_thin_output(h->jobs[k].output);
	if (i >= 0)
		h->jobs[i].child.timed_out = list[i].timed_out;
	return i;
}

static bool is_overdue(const struct hunt *h, const struct job *j)
{
	double ran = child_now() - j->child.started;

	return !h->res->runs || (ran > OVERDUE_SECONDS && ran > OVERDUE_TIMES * h->plan.run_seconds);
}

static void end_all(struct hunt *h)
{
	bool late = h->o->max_seconds > 0 && hunt_seconds_left(h) <= 0;

	for (uint32_t k = 0; k < h->njobs; k++)
		if (h->jobs[k].child.pid) {
			if (late && is_overdue(h, &h->jobs[k])) {
				h->res->runs++;
				h->res->timeouts++;
			}
			h->jobs[k].child.timed_out = true;
			child_finish(&h->jobs[k].child);
			files_remove_tree(h->jobs[k].dir);
		}
}

static err_t fill_jobs(struct hunt *h, uint32_t *busy)
{
	*busy = 0;
	for (uint32_t i = 0; i < h->njobs; i++)
		*busy += h->jobs[i].child.pid != 0;
	for (uint32_t i = 0; i < h->njobs && budget_left(h) && may_start(h, *busy); i++)
		if (!h->jobs[i].child.pid) {
			TRY(hunt_start_job(h, &h->jobs[i]));
			++*busy;
		}
	return NULL;
}

/* After the first run, which is alone: a program that writes where it runs is not run twice at a time there. */
static void look_around(struct hunt *h)
{
	if (!h->directory || !h->res->runs)
		return;
	h->alone |= h->directory != (around_directory(h->o->directory) | 1);
	if (h->alone && !h->o->quiet)
		fprintf(stderr, "%scsched hunt: the program writes into the current directory: one run at a time (--jobs=N "
			"when they do not disturb each other)\n", isatty(2) ? "\r\033[K" : "");
	h->directory = 0;
}

static err_t loop(struct hunt *h)
{
	uint32_t busy;
	err_t e;

	while (!(e = fill_jobs(h, &busy)) && busy) {
		/* A run that hangs does not keep the hunt beyond its time. */
		if (interrupt_pending() || hunt_is_settled(h) || hunt_seconds_left(h) <= 0 || hunt_is_stopped(h))
			break;
		int i = wait_job(h);
		if (i >= 0 && (e = hunt_finish_job(h, &h->jobs[i])))
			break;
		look_around(h);
		if (i >= 0 && h->o->shards && (e = hunt_save(h)))
			break;
		show_progress(h, false);
	}
	end_all(h);
	return e;
}

static void prepare_jobs(struct hunt *h)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	/* An oracle looks at what is left behind: that of one run. */
	h->njobs = h->o->jobs ? h->o->jobs : cores > 0 && !h->o->check ? (uint32_t)cores : 1;
	h->directory = h->o->jobs || h->njobs == 1 ? 0 : around_directory(h->o->directory) | 1;
	if (h->njobs > MAX_JOBS)
		h->njobs = MAX_JOBS;
	for (uint32_t i = 0; i < h->njobs; i++) {
		struct job *j = &h->jobs[i];

		j->child.fd = -1;
		snprintf(j->dir, sizeof j->dir, "%s/job%u", h->work, i);
		snprintf(j->output, sizeof j->output, "%s/out%u", h->work, i);
	}
}

static void summarise(struct hunt *h)
{
	h->res->seconds = child_now() - h->begin;
	h->res->always = h->undisturbed && h->undisturbed_failed == h->undisturbed;
	h->res->interrupted = interrupt_pending() != 0;
	h->res->stopped = hunt_is_stopped(h);
	h->res->sites = h->plan.sites->nsites;
	h->res->shared = h->plan.sites->nshared;
	h->res->threads = h->plan.sites->threads;
	hunt_keep_suspect(h);
	show_progress(h, true);
}

/* Zero for what is not an ELF file beside us: then names and offsets are trusted. */
static uint64_t build_of(const char *program)
{
	char *id = img_build_id_of_file(program);
	uint64_t sum = id && *id ? trc_checksum(id, strlen(id)) : 0;

	free(id);
	return sum;
}

/* Beside the directory that is about to go. */
static char *kept_input(const struct hunt *h)
{
	char *path = xasprintf("%s.input", h->work);

	if (rename(h->input, path)) {
		free(path);
		return NULL;
	}
	return path;
}

err_t hunt_run(const struct hunt_options *o, struct hunt_result *res)
{
	struct hunt *h = xcalloc(1, sizeof *h);

	*res = (struct hunt_result){ 0 };
	h->o = o;
	h->res = res;
	h->plan.strategy = o->strategy;
	h->plan.seed = o->seed;
	h->plan.shard = o->shards ? o->shard - 1 : 0;
	h->plan.shards = o->shards;
	interrupt_catch();
	/* Now: the failure may come only once. */
	bool made_out = o->out && *o->out && access(o->out, F_OK);
	err_t e = made_out ? files_make_dirs(o->out) : NULL;
	if (!e && access(o->out ? o->out : ".", W_OK | X_OK))
		e = err_errno("no trace could be kept in %s", o->out ? o->out : "the current directory");
	if (!e)
		e = make_work(h);
	if (!e) {
		char *path = o->sites ? xstrdup(o->sites) : xasprintf("%s/sites", h->work);
		char *link_to = xasprintf("%s/sites", h->work);
		e = plan_sites_open(path, build_of(o->argv[0]), &h->plan.sites);
		if (!e && o->sites) {
			char *full = realpath(path, NULL);
			if (!full || symlink(full, link_to))
				e = err_errno("%s", link_to);
			free(full);
		}
		free(path);
		free(link_to);
	}
	if (!e) {
		prepare_jobs(h);
		h->begin = child_now();
		if (o->shards)
			e = hunt_resume(h);
		if (!e)
			e = loop(h);
		summarise(h);
		/* Also after the last run: seconds and sites of those that were ended. */
		if (!e && o->shards)
			e = hunt_save(h);
		if (!e)
			e = hunt_stop_others(h);
		if (made_out && !res->trace && !o->shards)
			rmdir(o->out);
	}
	plan_free(&h->plan);
	if (!e && o->keeps_input && res->trace && !interrupt_pending())
		res->input = kept_input(h);
	files_remove_tree(h->work);
	free(h);
	interrupt_release();
	return e;
}

void hunt_result_free(struct hunt_result *res)
{
	for (uint32_t i = 0; i < res->nkinds; i++) {
		free(res->kinds[i].text);
		free(res->kinds[i].trace);
	}
	free(res->kinds);
	free(res->trace);
	free(res->unconfirmed_trace);
	free(res->input);
	free(res->output);
	free(res->exit_output);
}
