/* SPDX-License-Identifier: GPL-2.0-or-later */
/* csched test: a hunt in each test of a suite, within a budget, and one answer for all. */
#include "analyzer/cmd/test.h"

#include "analyzer/cmd/aside.h"
#include "analyzer/cmd/cmd.h"
#include "analyzer/hunt/interrupt.h"
#include "analyzer/launch.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_SECONDS 10.0 /* for each test */
#define EXPLAIN_SECONDS 60.0 /* for each failure */
#define OUT "csched-test"

struct options {
	uint64_t runs, jobs, seed;
	double time, limit;
	const char *out, *fail_exit, *suppress, *baseline, *write_baseline;
	struct found_options found;
	struct cmd_common common;
};

/* ---- one test ---- */

/* The same bug may strike in several tests: it is counted where it came first. */
static size_t first_with(const struct test_suite *s, const char *fingerprint, size_t here)
{
	for (size_t i = 0; i < here; i++)
		for (size_t k = 0; k < s->tests.v[i].failures.n; k++)
			if (!strcmp(s->tests.v[i].failures.v[k].fingerprint, fingerprint))
				return i;
	return here;
}

static bool has(const struct test_case *t, const char *fingerprint)
{
	for (size_t i = 0; i < t->failures.n; i++)
		if (!strcmp(t->failures.v[i].fingerprint, fingerprint))
			return true;
	return false;
}

static void take_failure(struct test_suite *s, size_t i, const struct hunt_failure *k, struct test_known *known)
{
	struct test_case *t = &s->tests.v[i];
	struct test_failure f = { .text = xstrdup(k->text), .trace = k->trace ? xstrdup(k->trace) : NULL };
	char print[ASIDE_FINGERPRINT] = "";

	if (k->trace && k->kind && aside_explain(k->trace, EXPLAIN_SECONDS))
		aside_fingerprint(k->trace, print);
	if (*print)
		snprintf(f.fingerprint, sizeof f.fingerprint, "%s", print);
	else
		snprintf(f.fingerprint, sizeof f.fingerprint, "point-%016" PRIx64, k->print);
	if (has(t, f.fingerprint)) {
		free(f.text);
		free(f.trace);
		return;
	}
	f.known = test_known_reason(known, f.fingerprint);
	f.first = first_with(s, f.fingerprint, i);
	vec_push(&t->failures, f);
}

static void run_test(const struct options *o, struct test_suite *s, size_t i, const char *shim, struct test_known *known)
{
	struct test_case *t = &s->tests.v[i];
	struct hunt_options h = {
		.argv = t->argv.v, .env = t->env.v, .directory = t->directory, .shim = shim, .out = o->out,
		.strategy = "auto", .fail_exit = o->fail_exit, .seed = o->seed, .max_runs = o->runs, .max_seconds = o->time,
		.run_limit = o->limit, .jobs = (uint32_t)o->jobs, .quiet = true, .worth = aside_can_follow,
	};
	struct hunt_result r = { 0 };
	bool alone;
	char *obstacle = launch_obstacle(t->argv.v[0], &alone);

	if (obstacle) {
		t->error = obstacle;
		return;
	}
	launch_suit(t->argv.v[0]);
	err_t e = hunt_run(&h, &r);
	if (e)
		t->error = xstrdup(e->msg);
	err_free(e);
	t->runs = r.runs;
	t->timeouts = r.timeouts;
	t->seconds = r.seconds;
	t->always = r.always;
	for (uint32_t k = 0; k < r.nkinds; k++)
		take_failure(s, i, &r.kinds[k], known);
	/* All runs end with a status other than 0: the test fails, whatever the order. */
	if (!e && !r.nkinds && r.exits && r.exits == r.runs) {
		struct test_failure f = { .first = i };

		snprintf(f.fingerprint, sizeof f.fingerprint, "point-%016x", (unsigned)r.exit_status);
		f.text = xasprintf("every run ends with exit status %d, without any perturbation, too", r.exit_status);
		f.known = test_known_reason(known, f.fingerprint);
		t->always = true;
		vec_push(&t->failures, f);
	}
	hunt_result_free(&r);
}

static void show(const struct options *o, const struct test_suite *s, size_t i)
{
	if (o->common.json || !isatty(2))
		return;
	char *safe = term_text_of(s->tests.v[i].name, strlen(s->tests.v[i].name));

	fprintf(stderr, "\r\033[K%zu of %zu: %s", i + 1, s->tests.n, safe);
	free(safe);
}

static void run_all(const struct options *o, struct test_suite *s, const char *shim, struct test_known *known)
{
	interrupt_catch();
	for (size_t i = 0; i < s->tests.n; i++) {
		if (interrupt_pending() && !s->tests.v[i].skipped)
			s->tests.v[i].skipped = "interrupted before";
		if (s->tests.v[i].skipped)
			continue;
		show(o, s, i);
		run_test(o, s, i, shim, known);
	}
	if (!o->common.json && isatty(2))
		fputs("\r\033[K", stderr);
	interrupt_release();
}

/* ---- all of them ---- */

static void today(char out[11])
{
	time_t now = time(NULL);
	struct tm tm;

	if (!localtime_r(&now, &tm) || !strftime(out, 11, "%F", &tm))
		strcpy(out, "9999-12-31");
}

static err_t read_known(const struct options *o, struct test_known *known)
{
	char date[11];

	today(date);
	if (o->suppress)
		TRY(test_known_suppressions(known, o->suppress, date));
	return o->baseline ? test_known_baseline(known, o->baseline) : NULL;
}

static err_t test(const struct options *o, char **argv, int *status)
{
	struct test_suite s = { 0 };
	struct test_known known = { 0 };
	char *shim = NULL;
	err_t e = found_check(&o->found);

	if (!e)
		e = read_known(o, &known);
	if (!e)
		e = launch_find_shim(&shim);
	if (!e)
		e = test_find(argv, &s);
	if (!e) {
		run_all(o, &s, shim, &known);
		if (o->common.json)
			test_print_json(&s, &known);
		else
			test_print(&s, &known);
		e = test_junit(&o->found, &s);
	}
	if (!e && o->write_baseline)
		e = test_known_write(&s, o->write_baseline);
	/* A test command that ends with 0 when a test fails would be misread by everybody. */
	*status = test_new_failures(&s) ? ERR_NOANSWER : 0;
	test_suite_free(&s);
	test_known_free(&known);
	free(shim);
	return e;
}

int cmd_test(int argc, char **argv)
{
	struct options o = { .time = DEFAULT_SECONDS, .out = OUT, .seed = 1 };
	const struct cmd_option options[] = {
		{ "time", 't', "SECONDS", CMD_NUM, &o.time, "time limit for each test (default 10)" },
		{ "runs", 'n', "N", CMD_UINT, &o.runs, "at most N runs of each test" },
		{ "seed", 's', "S", CMD_UINT, &o.seed, "seed of all random choices (default 1)" },
		{ "out", 'o', "DIR", CMD_TEXT, &o.out, "directory for the failing traces (default: csched-test)" },
		{ "jobs", 'j', "N", CMD_UINT, &o.jobs, "runs of a test at a time (default: one per core)" },
		{ "limit", 0, "SECONDS", CMD_NUM, &o.limit, "time limit of one run (default: from the first run)" },
		{ "fail-exit", 0, "STATUS,...", CMD_TEXT, &o.fail_exit,
		  "exit statuses that count as failures (default: those that only some runs end with)" },
		{ "suppress", 0, "FILE", CMD_TEXT, &o.suppress,
		  "known failures, in lines of FINGERPRINT YYYY-MM-DD REASON" },
		{ "baseline", 0, "FILE", CMD_TEXT, &o.baseline, "count only failures that are not in FILE" },
		{ "write-baseline", 0, "FILE", CMD_TEXT, &o.write_baseline, "write the failures found to FILE, for --baseline" },
		FOUND_OPTIONS(&o.found),
		{ 0 },
	};
	const struct cmd_spec spec = {
		.name = "test", .usage = "[options] -- ctest|meson test|PROGRAM [ARGUMENT ...]",
		.summary = "Hunts in every test of a suite: the tests that ctest or meson lists, those of a googletest\n"
			   "program, or any command as one test.",
		.options = options, .common = &o.common, .min_args = 1, .max_args = CMD_ANY, .command_line = true,
	};
	struct cmd_args args;
	int status;

	if (!cmd_parse(&spec, argc, argv, &args, &status))
		return status;
	err_t e = o.jobs > 32 ? err_new(ERR_USAGE, "--jobs: at most 32") : test(&o, args.v, &status);
	return e ? cmd_fail("test", e) : status;
}
