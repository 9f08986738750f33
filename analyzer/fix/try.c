/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs of the program without a fix and under it, and what they say. */
#include "analyzer/fix/fix.h"

#include "analyzer/hunt/files.h"
#include "analyzer/hunt/hunt.h"
#include "analyzer/launch.h"
#include "common/control_format.h"
#include "common/vec.h"

#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* Runs that learn which sites are shared, which strategies go by. */
#define LEARNING_RUNS 3
/* So many failures under the fix are enough to know that it fails. */
#define ENOUGH_FAILURES 10
/* With fewer to be expected none may be luck. */
#define LEAST_EXPECTED 3.0

struct lab {
	char work[PATH_MAX - 64];
	char traces[PATH_MAX], sites[PATH_MAX], points[PATH_MAX];
};

static err_t lab_open(struct lab *l)
{
	TRY(files_make_work("csched-fix", l->work, sizeof l->work));
	snprintf(l->traces, sizeof l->traces, "%s/traces", l->work);
	snprintf(l->sites, sizeof l->sites, "%s/sites", l->work);
	snprintf(l->points, sizeof l->points, "%s/points", l->work);
	return NULL;
}

static err_t write_points(const struct lab *l, const struct fix *f)
{
	FILE *out = fopen(l->points, "we");

	if (!out)
		return err_errno("%s", l->points);
	fprintf(out, "%s\n%s", CTL_FIX_MAGIC, f->points.s ? f->points.s : "");
	return fclose(out) ? err_errno("%s", l->points) : NULL;
}

static uint64_t count_applied(const struct lab *l)
{
	uint64_t n = 0;
	int fd = open(l->sites, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	if (pread(fd, &n, sizeof n, offsetof(struct ctl_sites, fixed)) != sizeof n)
		n = 0;
	close(fd);
	return n;
}

static void count(const struct hunt_result *r, struct fix_count *c)
{
	uint64_t most = 0;

	c->runs = r->runs;
	c->failures = r->failures;
	c->timeouts = r->timeouts;
	for (uint32_t i = 0; i < r->nkinds; i++) {
		if (!strncmp(r->kinds[i].text, CTL_FIX_DEADLOCK, strlen(CTL_FIX_DEADLOCK)))
			c->deadlocks += r->kinds[i].count;
		if (r->kinds[i].count > most) {
			most = r->kinds[i].count;
			free(c->first);
			c->first = xstrdup(r->kinds[i].text);
		}
	}
}

static err_t run(const struct fix_trial *t, const struct lab *l, bool fixed, struct fix_count *c)
{
	struct hunt_result r = { 0 };
	struct strbuf options = { 0 };
	struct hunt_options h = {
		.argv = t->argv, .shim = t->shim, .out = l->traces, .sites = l->sites, .fail_exit = t->fail_exit,
		.jobs = t->jobs, .input = t->input, .run_limit = t->run_limit, .quiet = true, .keep_going = true,
		.strategy = "learn/0/0", .max_runs = LEARNING_RUNS, .seed = t->seed,
	};

	if (t->options && *t->options)
		strbuf_str(&options, t->options);
	h.options = options.s;
	err_t e = hunt_run(&h, &r);
	hunt_result_free(&r);
	if (!e) {
		if (fixed)
			launch_option(&options, "fix", l->points);
		h.options = options.s;
		h.strategy = *t->strategy ? t->strategy : "native";
		h.max_runs = t->runs;
		h.max_seconds = t->seconds;
		h.max_failures = fixed ? ENOUGH_FAILURES : 0;
		e = hunt_run(&h, &r);
		if (!e) {
			count(&r, c);
			c->applied = count_applied(l);
		}
		hunt_result_free(&r);
	}
	strbuf_free(&options);
	return e;
}

static err_t in_lab(const struct fix_trial *t, const struct fix *f, struct fix_count *c)
{
	struct lab l;

	*c = (struct fix_count){ 0 };
	TRY(lab_open(&l));
	err_t e = f ? write_points(&l, f) : NULL;
	if (!e)
		e = run(t, &l, f != NULL, c);
	files_remove_tree(l.work);
	return e;
}

err_t fix_run(const struct fix_trial *t, const struct fix *f, struct fix_count *out)
{
	return t->outside ? fix_ask(t, f, out) : in_lab(t, f, out);
}

err_t fix_run_without(const struct fix_trial *t, struct fix_count *out)
{
	return fix_run(t, NULL, out);
}

static enum dsp_tried judge(const struct dsp_trial *t, bool applied)
{
	double expected = t->without_runs ? (double)t->without_failures / (double)t->without_runs * (double)t->runs : 0;

	if (!t->runs)
		return DSP_UNTRIED;
	if (!applied)
		return DSP_UNREACHED;
	if (t->failures + t->timeouts > 0)
		return t->deadlocks + t->timeouts > t->failures - t->deadlocks ? DSP_DEADLOCKS : DSP_STILL_FAILS;
	return expected < LEAST_EXPECTED ? DSP_WEAK : DSP_HOLDS;
}

err_t fix_run_with(const struct fix_trial *t, const struct fix *f, const struct fix_count *without,
		   struct fix_count *with, struct dsp_trial *out)
{
	TRY(fix_run(t, f, with));
	*out = (struct dsp_trial){
		.runs = with->runs, .failures = with->failures, .deadlocks = with->deadlocks,
		.timeouts = with->timeouts, .without_runs = without->runs, .without_failures = without->failures,
	};
	out->verdict = judge(out, with->applied);
	return NULL;
}

void fix_count_free(struct fix_count *c)
{
	free(c->first);
	*c = (struct fix_count){ 0 };
}

/* The value of key in "a=b:c=d", as options are written (common/options_table.h). */
static bool option_value(const char *options, const char *key, char *out, size_t size)
{
	size_t n = strlen(key);
	bool found = false;

	for (const char *p = options; *p;) {
		bool mine = !strncmp(p, key, n) && p[n] == '=';
		size_t k = 0;

		for (p += mine ? n + 1 : 0; *p && *p != ':'; p++) {
			if (*p == '\\' && p[1])
				p++;
			if (mine && k + 1 < size)
				out[k++] = *p;
		}
		if (mine) {
			out[k] = 0;
			found = true;
		}
		p += *p == ':';
	}
	return found;
}

bool fix_strategy_of(const struct trc *t, char *strategy, size_t size, uint64_t *seed)
{
	const char *options = trc_identity(t, "options");
	char number[32] = "0";

	*strategy = 0;
	*seed = 0;
	if (!options)
		return false;
	bool found = option_value(options, "hunt", strategy, size);
	if (option_value(options, "seed", number, sizeof number)) {
		*seed = strtoull(number, NULL, 10);
		found = true;
	}
	return found;
}
