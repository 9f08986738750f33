/* SPDX-License-Identifier: GPL-2.0-or-later */
/* csched explore: drive a passing program through orders that are certain to be new. */
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/confined.h"
#include "analyzer/cmd/explore.h"
#include "analyzer/cmd/found.h"
#include "analyzer/cmd/shim_flags.h"
#include "analyzer/explore/coverage.h"
#include "analyzer/explore/explore.h"
#include "analyzer/hunt/interrupt.h"
#include "analyzer/launch.h"

#include "common/door.h"
#include "common/json.h"
#include "common/newfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_SECONDS 60.0
#define MOST_JOBS 32

struct options {
	double time, limit;
	uint64_t schedules, seed, jobs;
	const char *strategy, *on, *fail_exit, *out, *resume, *html, *shard;
	bool keep_going, list, lines, compare, differ;
	struct found_options found;
	struct cmd_common common;
};

static const char *const strategies[] = { [XPL_PCR] = "pcr", [XPL_MCR] = "mcr", [XPL_PCT] = "pct",
					  [XPL_RANDOM] = "random" };

static const char *const executors[] = { [EXPLORE_AUTO] = "auto", [EXPLORE_MACHINE] = "machine",
					 [EXPLORE_NATIVE] = "native" };

static struct progress line = { .what = "exploring" };

static bool show(void *arg, const struct xpl_drive *d)
{
	const struct options *o = arg;

	progress_at(&line, d->schedules, o->schedules);
	return false;
}

static const char *bad_word(enum xpl_bad bad)
{
	static const char *const words[] = { [XPL_FINE] = "failure", [XPL_BAD_FAILED] = "crash",
					     [XPL_BAD_DEADLOCK] = "deadlock", [XPL_BAD_ENDLESS] = "hang",
					     [XPL_BAD_EXIT] = "exit", [XPL_BAD_DIFFERS] = "differs" };

	return words[bad];
}

/* ---- words ---- */

static void print_failures(const struct explore_result *r)
{
	for (size_t i = 0; i < r->failures.n; i++) {
		const struct explore_failure *f = &r->failures.v[i];
		const char *text = f->text ? f->text : bad_word(f->bad);
		char *safe = term_text_of(text, strlen(text));

		if (!f->confirmed) {
			printf("seen by the machine only, %s: %s (%llu orders; %u native runs did not fail)\n",
			       bad_word(f->bad), safe, (unsigned long long)f->orders, f->attempts);
		} else {
			printf("failure: %s\n", safe);
			if (f->shaken)
				puts("  in a run of the real program with delays, in the order that came");
			else if (f->schedule)
				printf("  first in order %llu; %llu order%s came to it\n",
				       (unsigned long long)f->schedule, (unsigned long long)f->orders,
				       f->orders == 1 ? "" : "s");
			if (f->trace)
				printf("  trace: %s\n", f->trace);
		}
		free(safe);
	}
}

static uint64_t with_status(const struct xpl_drive *d, enum xpl_status s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < d->known.n; i++)
		n += d->known.v[i].status == s;
	return n;
}

static void print_end(const struct explore_result *r)
{
	const struct xpl_drive *d = &r->drive;
	uint64_t open = with_status(d, XPL_OPEN);

	if (r->cut_after > 0)
		printf("the first run did not end within %.1f s: it was ended then; let it do less, or give it more "
		       "time (--limit, --time)\n", r->cut_after);
	if (r->looked_at)
		printf("  its first %llu instructions are looked at, and orders are executed for no longer\n",
		       (unsigned long long)r->looked_at);
	if (d->exhausted)
		puts(r->part ? "nothing left in this shard's part; csched merge says what is left of all" :
			       "nothing left: every order gives what an executed one gave, and every other pattern is proved "
			       "impossible");
	for (size_t i = 0; d->exhausted && i < r->assumed.n; i++)
		printf("  assumed: %s\n", r->assumed.v[i]);
	if (d->exhausted)
		;
	else if (r->interrupted)
		puts("interrupted: what is known so far");
	else if (d->stopped && r->failures.n)
		puts("ended at the failure (--keep-going looks for more)");
	else if (d->over)
		printf("the budget is over; %llu patterns are open\n", (unsigned long long)open);
	else if (!r->first_failed)
		printf("not everything could be looked at; %llu patterns are open\n", (unsigned long long)open);
	if (r->shaken_runs)
		printf("  besides, the real program was run %llu times with delays, for what the machine does not show\n",
		       (unsigned long long)r->shaken_runs);
	if (r->native_orders)
		printf("  %llu orders were executed by the real program\n", (unsigned long long)r->native_orders);
	if (d->not_enforced)
		printf("  %llu orders could not be enforced to their end, and do not count as covered\n",
		       (unsigned long long)d->not_enforced);
	if (d->left)
		printf("  %llu orders have no known end: %s\n", (unsigned long long)d->left,
		       d->left_why ? d->left_why : "unknown");
	if (d->missed)
		printf("  %llu orders could not be executed as they were meant\n", (unsigned long long)d->missed);
	if (d->too_large)
		printf("  %llu traces had more states than are looked at\n", (unsigned long long)d->too_large);
	if (d->cut)
		puts("  there were more shared events than are looked at");
}

static void print_text(const struct explore_result *r)
{
	const struct xpl_drive *d = &r->drive;

	print_failures(r);
	if (r->first_failed) {
		puts("it failed in the first run already, in the order it chose itself");
		return;
	}
	printf("%llu orders executed in %.1f s (%llu native runs), %llu failed; %llu constraints solved, "
	       "%llu discarded\n", (unsigned long long)d->schedules, r->seconds,
	       (unsigned long long)r->native_runs + 1, (unsigned long long)d->failing,
	       (unsigned long long)d->constraints, (unsigned long long)d->cores_used);
	printf("patterns: %llu covered, %llu impossible, %llu open; estimated %.0f\n",
	       (unsigned long long)with_status(d, XPL_COVERED),
	       (unsigned long long)with_status(d, XPL_INFEASIBLE), (unsigned long long)with_status(d, XPL_OPEN),
	       d->estimate);
	print_end(r);
	if (r->serial.why)
		printf("  ends were not compared (--differ): %s\n", r->serial.why);
	else if (r->serial.complete)
		printf("  %llu serial orders end in %zu way%s\n", (unsigned long long)r->serial.orders, r->serial.v.n,
		       r->serial.v.n == 1 ? "" : "s");
	explore_print_races(r);
}

static void print_list(const struct explore_result *r)
{
	static const char *const words[] = { "open", "covered", "impossible" };

	for (size_t i = 0; i < r->drive.known.n; i++) {
		const struct xpl_known *k = &r->drive.known.v[i];
		const struct xpl_kind *kind = &xpl_kinds[k->kind];

		if (k->status == XPL_COVERED)
			continue;
		printf("%s %u:", words[k->status], k->kind);
		for (unsigned s = 0; s < k->n; s++) {
			char *at = explore_place(r, k->places[s]);
			char *safe = term_text_of(at, strlen(at));

			printf(" %c:%c(%c)@%s", kind->threads[s], kind->steps[s], kind->vars[s], safe);
			free(at);
			free(safe);
		}
		printf("%s%s\n", k->status == XPL_INFEASIBLE ? " because of " : "",
		       k->status == XPL_INFEASIBLE ? xpl_reason_name[k->reason] : "");
	}
}

/* ---- JSON ---- */

static void json_coverage(struct json *j, const struct xpl_drive *d)
{
	json_object(j, "coverage");
	json_uint(j, "covered", with_status(d, XPL_COVERED));
	json_uint(j, "impossible", with_status(d, XPL_INFEASIBLE));
	json_uint(j, "open", with_status(d, XPL_OPEN));
	json_num(j, "estimate", d->estimate);
	json_array(j, "kinds");
	for (unsigned k = 1; k <= XPL_KINDS; k++) {
		uint64_t n[3] = { 0 };

		for (size_t i = 0; i < d->known.n; i++)
			n[d->known.v[i].status] += d->known.v[i].kind == k;
		json_object(j, NULL);
		json_uint(j, "kind", k);
		json_uint(j, "covered", n[XPL_COVERED]);
		json_uint(j, "impossible", n[XPL_INFEASIBLE]);
		json_uint(j, "open", n[XPL_OPEN]);
		json_num(j, "estimate", d->estimate_by_kind[k]);
		json_end(j);
	}
	json_end(j);
	json_object(j, "filtered");
	for (unsigned i = 1; i < XPL_RULES; i++)
		json_uint(j, xpl_rule_name[i], d->filtered[i]);
	json_end(j);
	json_array(j, "over_time");
	for (size_t i = 0; i < d->over_time.n; i++) {
		json_object(j, NULL);
		json_num(j, "seconds", d->over_time.v[i].seconds);
		json_uint(j, "schedules", d->over_time.v[i].schedules);
		json_uint(j, "covered", d->over_time.v[i].covered);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static void json_failures(struct json *j, const struct explore_result *r, const char *name, bool confirmed)
{
	json_array(j, name);
	for (size_t i = 0; i < r->failures.n; i++) {
		const struct explore_failure *f = &r->failures.v[i];

		if (f->confirmed != confirmed)
			continue;
		json_object(j, NULL);
		json_str(j, "kind", bad_word(f->bad));
		json_str(j, "text", f->text);
		json_str(j, "trace", f->trace);
		json_uint(j, "schedule", f->schedule);
		json_uint(j, "orders", f->orders);
		json_uint(j, "native_runs", f->attempts);
		json_bool(j, "shaken", f->shaken);
		json_end(j);
	}
	json_end(j);
}

static void print_json(const struct options *o, const struct explore_result *r)
{
	const struct xpl_drive *d = &r->drive;
	struct json j = { 0 };

	json_object(&j, NULL);
	json_int(&j, "schema", CMD_JSON_SCHEMA);
	json_str(&j, "strategy", o->strategy);
	json_failures(&j, r, "failures", true);
	json_failures(&j, r, "unconfirmed", false);
	json_bool(&j, "exhausted", d->exhausted);
	json_bool(&j, "part", r->part);
	json_array(&j, "assumed");
	for (size_t i = 0; i < r->assumed.n; i++)
		json_str(&j, NULL, r->assumed.v[i]);
	json_end(&j);
	json_bool(&j, "interrupted", r->interrupted);
	json_bool(&j, "first_run_failed", r->first_failed);
	json_bool(&j, "first_run_endless", r->cut_after > 0);
	json_uint(&j, "looked_at", r->looked_at);
	json_bool(&j, "cut", d->cut);
	if (o->differ) {
		json_object(&j, "serial");
		json_uint(&j, "orders", r->serial.orders);
		json_uint(&j, "ends", r->serial.v.n);
		json_bool(&j, "complete", r->serial.complete);
		json_str(&j, "why", r->serial.why);
		json_end(&j);
	}
	json_uint(&j, "schedules", d->schedules);
	json_uint(&j, "constraints", d->constraints);
	json_uint(&j, "discarded", d->cores_used);
	json_uint(&j, "cores", d->cores.v.n);
	json_uint(&j, "failing_orders", d->failing);
	json_uint(&j, "distinct_failing_orders", d->failures.n);
	if (r->first_print)
		json_hex(&j, "failed_order", r->first_print);
	json_uint(&j, "not_enforced", d->not_enforced);
	json_uint(&j, "missed", d->missed);
	json_uint(&j, "repeated", d->repeated);
	json_uint(&j, "unrecorded", d->left);
	json_str(&j, "unrecorded_why", d->left_why);
	json_uint(&j, "native_orders", r->native_orders);
	json_uint(&j, "classes", d->traces.n);
	json_uint(&j, "states", d->states);
	json_uint(&j, "native_runs", r->native_runs + 1);
	json_uint(&j, "shaken_runs", r->shaken_runs);
	json_num(&j, "seconds", r->seconds);
	json_num(&j, "record_seconds", r->record_seconds);
	json_uint(&j, "first_schedules", d->first_schedules);
	json_uint(&j, "first_constraints", d->first_constraints);
	json_num(&j, "first_seconds", d->first_found ? d->first_seconds : 0);
	json_coverage(&j, d);
	explore_json_races(&j, r);
	json_end(&j);
	json_print(&j, stdout);
}

/* ---- the command ---- */

/* The number of this word, n: it is none of them. */
static size_t which(const char *const *words, size_t n, const char *word)
{
	size_t i = 0;

	while (i < n && strcmp(words[i], word))
		i++;
	return i;
}

#define COUNT(v) (sizeof(v) / sizeof *(v))

static err_t check_options(const struct options *o, struct explore_options *x)
{
	size_t strategy = which(strategies, COUNT(strategies), o->strategy), on = which(executors, COUNT(executors), o->on);

	if (strategy == COUNT(strategies))
		return err_new(ERR_USAGE, "--strategy: '%s' is none of pcr, mcr, pct, random", o->strategy);
	if (on == COUNT(executors))
		return err_new(ERR_USAGE, "--on: '%s' is none of auto, machine, native", o->on);
	x->strategy = (enum xpl_strategy)strategy;
	x->on = (enum explore_on)on;
	if (o->jobs > MOST_JOBS)
		return err_new(ERR_USAGE, "--jobs: at most %d", MOST_JOBS);
	x->jobs = (unsigned)o->jobs;
	if (o->shard && o->resume)
		return err_new(ERR_USAGE, "--resume: a shard has a coverage file of its own, in --out");
	if (o->shard)
		TRY(explore_shard_number(o->shard, &x->shard, &x->shards));
	if (!o->fail_exit)
		return NULL;
	char *pair = xasprintf("fail_exit=%s", o->fail_exit);
	err_t e = shim_flags_check(pair);

	free(pair);
	return e;
}

static bool has_confirmed(const struct explore_result *r)
{
	for (size_t i = 0; i < r->failures.n; i++)
		if (r->failures.v[i].confirmed)
			return true;
	return false;
}

static err_t write_junit(const struct options *o, const struct explore_result *r, const char *name)
{
	struct found_case *cases = xcalloc(r->failures.n + 1, sizeof *cases);
	size_t n = 0;

	for (size_t i = 0; i < r->failures.n; i++)
		if (r->failures.v[i].confirmed) {
			cases[n] = (struct found_case){ "csched explore", name, FOUND_FAILURE, n ? 0 : r->seconds,
							r->failures.v[i].text, NULL, r->failures.v[i].trace };
			n++;
		}
	if (!n)
		cases[n++] = (struct found_case){ "csched explore", name, FOUND_NOTHING, r->seconds, NULL, NULL, NULL };
	err_t e = found_write(&o->found, "csched explore", cases, n);
	free(cases);
	return e;
}

/* A directory, or a file that cannot be executed: packed traces cannot. */
static bool is_trace(const char *path)
{
	struct stat st;

	return strchr(path, '/') || !access(path, F_OK) ?
		       !stat(path, &st) && (S_ISDIR(st.st_mode) || !(st.st_mode & 0111)) : false;
}

static int tell(const struct options *o, const char *name, const struct explore_result *r)
{
	if (o->common.json) {
		print_json(o, r);
	} else {
		print_text(r);
		if (o->list)
			print_list(r);
		if (o->lines)
			explore_print_lines(r);
	}
	err_t page = o->html ? explore_write_page(r, name, o->html) : NULL;
	int written = cmd_fail("explore", page ? page : write_junit(o, r, name));
	return written ? written : found_status(&o->found, has_confirmed(r));
}

struct call {
	const struct options *o;
	struct explore_options x;
	struct explore_shard shard;
	const char *name; /* of the program or the trace */
};

static int explore(void *arg)
{
	const struct call *c = arg;
	struct explore_result r = { 0 };
	err_t e = explore_run(&c->x, &r);

	progress_end(&line);
	int status = e ? cmd_fail("explore", e) : tell(c->o, c->name, &r);
	if (c->shard.of)
		explore_shard_explain(&c->shard, &r);
	explore_result_free(&r);
	return status;
}

/* A shard goes on from its own files, and keeps them. */
static err_t prepare_shard(struct call *c, char **argv, char **coverage)
{
	c->shard = (struct explore_shard){ .argv = argv, .out = c->o->out, .strategy = c->o->strategy, .index = c->x.shard,
					   .of = c->x.shards, .seed = c->o->seed };
	TRY(explore_shard_resume(&c->shard));
	c->x.done = c->shard.resumed ? c->shard.before.runs : 0;
	c->x.save = explore_shard_save;
	c->x.save_arg = &c->shard;
	c->x.coverage = *coverage = explore_shard_path(c->o->out, c->x.shard, c->x.shards, XPL_COVERAGE_SUFFIX);
	return NULL;
}

static int explore_program(struct call *c, char **argv)
{
	char *shim = NULL, *obstacle, *coverage = NULL;
	bool alone;
	err_t e = launch_find_shim(&shim);

	obstacle = e ? NULL : launch_obstacle(argv[0], &alone);
	if (obstacle)
		e = err_new(ERR_USAGE, "%s", obstacle);
	free(obstacle);
	launch_suit(argv[0]);
	if (!e && c->o->shard)
		e = prepare_shard(c, argv, &coverage);
	if (c->x.coverage)
		door_grant(c->x.coverage);
	c->x.argv = argv;
	c->x.shim = shim;
	int status = e ? cmd_fail("explore", e) : explore(c);
	explore_shard_free(&c->shard);
	free(coverage);
	free(shim);
	return status;
}

/* The search looks at its clock itself; one step of it may take so many seconds more. */
#define STEP_SECONDS 30.0

static int explore_trace(struct call *c)
{
	const char *const files[] = { c->o->html, c->o->resume, c->o->found.junit };
	double limit = c->x.max_seconds > 0 ? 2 * c->x.max_seconds + STEP_SECONDS : 0;
	err_t e = NULL;

	if (c->x.shards)
		e = err_new(ERR_USAGE, "--shard: of a program, not of a trace");
	else if (c->x.jobs > 1 && !confined_off)
		e = err_new(ERR_USAGE, "--jobs: a trace is explored in one confined process; --no-sandbox allows several");
	for (size_t i = 0; i < COUNT(files) && !e; i++)
		if (files[i])
			e = newfile_hold(files[i], NEWFILE_GIVEN, 0666);
	c->x.trace = c->name;
	return e ? cmd_fail("explore", e) :
		   confined_run(&(struct confined){ .command = "explore", .input = c->name, .also = c->o->resume,
						    .timeout = limit }, explore, c);
}

static int explore_either(struct options *o, const struct cmd_args *args)
{
	struct call c = { .o = o, .name = args->v[0] };

	c.x = (struct explore_options){ .out = o->out, .fail_exit = o->fail_exit, .seed = o->seed,
					.max_schedules = o->schedules, .max_seconds = o->time, .run_limit = o->limit,
					.keep_going = o->keep_going, .compare = o->compare, .differ = o->differ, .coverage = o->resume,
					.progress = show, .progress_arg = o };
	if (!c.x.max_schedules && c.x.max_seconds <= 0)
		c.x.max_seconds = DEFAULT_SECONDS;
	err_t e = check_options(o, &c.x);
	if (!e)
		e = found_check(&o->found);
	if (e)
		return cmd_fail("explore", e);
	return args->n > 1 || !is_trace(args->v[0]) ? explore_program(&c, args->v) : explore_trace(&c);
}

int cmd_explore(int argc, char **argv)
{
	struct options o = { .strategy = "pcr", .on = "auto", .seed = 1 };
	const struct cmd_option options[] = {
		{ "strategy", 0, "NAME", CMD_TEXT, &o.strategy,
		  "pcr (default): new patterns; mcr: new values; pct, random: by chance" },
		{ "on", 0, "WHAT", CMD_TEXT, &o.on,
		  "what executes orders: machine, native (the real program), or auto (default):\n"
		  "the real program only what the machine cannot know" },
		{ "time", 't', "SECONDS", CMD_NUM, &o.time,
		  "at most so long (default 60 when --schedules is not given)" },
		{ "schedules", 'n', "N", CMD_UINT, &o.schedules, "at most N orders" },
		{ "jobs", 'j', "N", CMD_UINT, &o.jobs, "orders executed at a time (default 1)" },
		{ "seed", 's', "S", CMD_UINT, &o.seed, "start of random choices (default 1)" },
		{ "out", 'o', "DIR", CMD_TEXT, &o.out,
		  "directory for failing traces (default: the current one)" },
		{ "limit", 0, "SECONDS", CMD_NUM, &o.limit, "end a native run after so long (default 10)" },
		{ "fail-exit", 0, "STATUS,...", CMD_TEXT, &o.fail_exit,
		  "exit statuses that count as failures" },
		{ "keep-going", 'k', NULL, CMD_FLAG, &o.keep_going, "look for more behind the first failure" },
		{ "differ", 0, NULL, CMD_FLAG, &o.differ,
		  "output or exit status that no serial order of the threads gives is a failure" },
		{ "list", 'l', NULL, CMD_FLAG, &o.list,
		  "list the patterns that are open or proved impossible" },
		{ "lines", 0, NULL, CMD_FLAG, &o.lines, "how much is covered, by variable and by source line" },
		{ "resume", 0, "FILE", CMD_TEXT, &o.resume,
		  "go on from the coverage in FILE, if it is there, and write it" },
		{ "html", 0, "FILE", CMD_TEXT, &o.html, "write a page with the sources and the coverage over time" },
		{ "compare", 0, NULL, CMD_FLAG, &o.compare,
		  "drive the same run by mcr and random as well, for the page's curves" },
		{ "shard", 0, "I/N", CMD_TEXT, &o.shard,
		  "the I-th of N explorations that share the work; csched merge combines their files" },
		FOUND_OPTIONS(&o.found),
		CONFINED_OPTIONS,
		{ 0 },
	};
	const struct cmd_spec spec = {
		.name = "explore", .usage = "[options] -- PROGRAM [ARGUMENT ...] | [options] TRACE",
		.summary = "Drives a program that passes through orders of its threads that are certain to be\n"
			   "new, until one fails or none is left.",
		.options = options, .common = &o.common, .min_args = 1, .max_args = CMD_ANY,
		.command_line = true,
	};
	struct cmd_args args;
	int status;

	if (!cmd_parse(&spec, argc, argv, &args, &status))
		return status;
	return explore_either(&o, &args);
}
