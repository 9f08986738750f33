/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The hints of a projection tried one after the other, and kept beside the trace with what that showed. */
#include "analyzer/fix/fix.h"

#include "common/door.h"
#include "common/newfile.h"
#include "common/trace_sum.h"
#include "common/vec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME "tried"
#define LEAST_FAILURES 4 /* of the runs without a fix; with fewer nothing is shown */
#define FIRST_LINE "csched-tried 1"

static err_t try_hint(const struct fix_trial *t, const struct sym_trace *trace, struct img_set *images,
		      const struct fix_count *without, struct dsp_hint *h)
{
	struct fix_count with = { 0 };
	struct fix f;
	err_t e = h->text ? fix_of_hint(trace, images, h, &f) : err_new(ERR_NOANSWER, "no advice");

	if (e) {
		err_free(e);
		return NULL;
	}
	e = fix_run_with(t, &f, without, &with, &h->trial);
	fix_count_free(&with);
	fix_free(&f);
	return e;
}

err_t fix_try_hints(const struct fix_trial *t, const struct sym_trace *trace, struct img_set *images, struct dsp *d)
{
	struct fix_count without = { 0 };
	err_t e = NULL;

	bool some = d->hint.nsteps || d->also.nsteps;
	for (size_t i = 0; i < d->nmore; i++)
		some |= d->more[i].nsteps;
	if (!some)
		return err_new(ERR_NOANSWER, "this advice cannot be applied from outside");
	struct fix_trial again = *t;

	TRY(fix_run_without(t, &without));
	/* The delays that found it do not bring it back: all kinds of them, then. */
	if (without.failures < LEAST_FAILURES) {
		struct fix_count more = { 0 };

		again.strategy = "auto";
		e = fix_run_without(&again, &more);
		if (!e && more.failures * (without.runs + 1) > without.failures * more.runs) {
			fix_count_free(&without);
			without = more;
			t = &again;
		} else {
			fix_count_free(&more);
		}
	}
	if (!e && !without.failures)
		e = err_new(ERR_NOANSWER, "the program did not fail like that in %" PRIu64 " more runs", without.runs);
	if (!e)
		e = try_hint(t, trace, images, &without, &d->hint);
	bool holds = d->hint.trial.verdict == DSP_HOLDS;
	if (!e && !holds) {
		e = try_hint(t, trace, images, &without, &d->also);
		holds = d->also.trial.verdict == DSP_HOLDS;
	}
	for (size_t i = 0; i < d->nmore && !e && !holds; i++) {
		e = try_hint(t, trace, images, &without, &d->more[i]);
		holds = d->more[i].trial.verdict == DSP_HOLDS;
	}
	fix_count_free(&without);
	dsp_rank_hints(d);
	return e;
}

/* ---- beside the trace ---- */

static uint64_t print_of(const struct dsp_hint *h)
{
	return h->text ? trc_checksum(h->text, strlen(h->text)) : 0;
}

static void keep(FILE *f, const struct dsp_hint *h)
{
	const struct dsp_trial *t = &h->trial;

	if (t->verdict != DSP_UNTRIED)
		fprintf(f, "%" PRIx64 " %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			print_of(h), t->verdict, t->runs, t->failures, t->deadlocks, t->timeouts, t->without_runs,
			t->without_failures);
}

static err_t write_trials(FILE *f, void *arg)
{
	const struct dsp *d = arg;

	fprintf(f, "%s\n", FIRST_LINE);
	keep(f, &d->hint);
	keep(f, &d->also);
	for (size_t i = 0; i < d->nmore; i++)
		keep(f, &d->more[i]);
	return NULL;
}

/* A trace that cannot be written to is explained all the same. */
void fix_keep_trials(const char *trace, struct dsp *d)
{
	char *name = xasprintf("%s/%s", trace, FILE_NAME);

	err_free(newfile_write(name, NEWFILE_DERIVED, 0666, write_trials, d));
	free(name);
}

static void find(const char *line, struct dsp_hint *h)
{
	struct dsp_trial t = { 0 };
	uint64_t print;
	int verdict;

	if (sscanf(line, "%" SCNx64 " %d %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
		   &print, &verdict, &t.runs, &t.failures, &t.deadlocks, &t.timeouts, &t.without_runs,
		   &t.without_failures) != 8 ||
	    !h->text || print != print_of(h) || verdict <= DSP_UNTRIED || verdict >= DSP_TRIED_KINDS)
		return;
	t.verdict = (enum dsp_tried)verdict;
	h->trial = t;
}

void fix_find_trials(const char *trace, struct dsp *d)
{
	char *name = xasprintf("%s/%s", trace, FILE_NAME), line[256];
	int fd = door_open(DOOR_TRACE, name);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	bool ours = f && fgets(line, sizeof line, f) && !strcmp(line, FIRST_LINE "\n");

	while (ours && fgets(line, sizeof line, f)) {
		find(line, &d->hint);
		find(line, &d->also);
		for (size_t i = 0; i < d->nmore; i++)
			find(line, &d->more[i]);
	}
	if (f)
		fclose(f);
	free(name);
	dsp_rank_hints(d);
}
