/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The hints of a projection tried one after the other, and kept beside the trace with what that showed. */
#include "analyzer/fix/fix.h"

#include "common/newfile.h"
#include "common/trace_sum.h"
#include "common/vec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME "tried"
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

	if (!d->hint.nsteps && !d->also.nsteps)
		return err_new(ERR_NOANSWER, "this advice cannot be applied from outside");
	TRY(fix_run_without(t, &without));
	if (!without.failures)
		e = err_new(ERR_NOANSWER, "the program did not fail like that in %" PRIu64 " more runs", without.runs);
	if (!e)
		e = try_hint(t, trace, images, &without, &d->hint);
	if (!e && d->hint.trial.verdict != DSP_HOLDS)
		e = try_hint(t, trace, images, &without, &d->also);
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
	FILE *f = fopen(name, "re");
	bool ours = f && fgets(line, sizeof line, f) && !strcmp(line, FIRST_LINE "\n");

	while (ours && fgets(line, sizeof line, f)) {
		find(line, &d->hint);
		find(line, &d->also);
	}
	if (f)
		fclose(f);
	free(name);
	dsp_rank_hints(d);
}
