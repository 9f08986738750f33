/* csched hunt: run a program under perturbation until it fails, then explain. */
#include "analyzer/cmd/aside.h"
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/confined.h"
#include "analyzer/cmd/explain.h"
#include "analyzer/cmd/fix.h"
#include "analyzer/cmd/found.h"
#include "analyzer/cmd/shim_flags.h"
#include "analyzer/explain/explain.h"
#include "analyzer/hunt/hunt.h"
#include "analyzer/hunt/interrupt.h"
#include "analyzer/hunt/place.h"
#include "analyzer/hunt/plan.h"
#include "analyzer/hunt/shard.h"
#include "analyzer/launch.h"

#include "common/json.h"
#include "common/runtime_names.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TAIL_LINES 5
#define AGAIN_RUNS 100 /* a run is short, and the first that fails is the last */

#define NO_SEED UINT64_MAX
#define SHARD_SEED 1 /* all shards of a hunt need the same one */
#define SHARD_EXPLAIN 60 /* seconds to explain one of a shard's failures */

struct options {
	uint64_t runs, jobs, seed;
	double time, limit;
	const char *strategy, *out, *sites, *fail_exit, *shim_options, *with_fix, *fix, *trace_of, *check, *shard, *stop_file;
	uint32_t shard_index, shards;
	bool no_explain, keep_going, no_try;
	struct found_options found;
	struct cmd_common common;
};

/* Quoted for a shell where needed. */
static void print_word(FILE *f, const char *word)
{
	struct strbuf b = { 0 };

	strbuf_word(&b, word, strlen(word));
	fputs(b.s, f);
	strbuf_free(&b);
}

static void print_option(FILE *f, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	fprintf(f, " --%s=", name);
	print_word(f, value);
}

static void print_rerun(FILE *f, const struct options *o, const struct hunt_result *r, char **argv)
{
	fprintf(f, "csched hunt --runs=%d --seed=%llu", AGAIN_RUNS, (unsigned long long)r->first_seed);
	print_option(f, "strategy", *r->strategy ? r->strategy : "native");
	print_option(f, "fail-exit", o->fail_exit ? o->fail_exit : r->odd_exits);
	print_option(f, "trace-of", o->trace_of);
	print_option(f, "check", o->check);
	if (o->limit > 0)
		fprintf(f, " --limit=%g", o->limit);
	print_option(f, "options", o->shim_options);
	fputs(" --", f);
	for (; *argv; argv++) {
		fputc(' ', f);
		print_word(f, *argv);
	}
	fputc('\n', f);
}

/* Of the strategies that perturb one site: where that is in the program's source. */
static void print_site(const struct hunt_result *r, const char *program)
{
	unsigned module, offset;
	struct img_set *set = NULL;
	struct img_frame f = { 0 }, frames[16];
	const char *base = strrchr(program, '/');

	if (sscanf(r->strategy, "%*[a-z]/%u/%u/", &module, &offset) != 2 ||
	    (strncmp(r->strategy, "site", 4) && strncmp(r->strategy, "demote", 6) &&
	     strncmp(r->strategy, "meet", 4)) ||
	    module != ctl_module_hash(base ? base + 1 : program))
		return;
	err_t e = place_open(program, &set);
	size_t n = e ? 0 : img_frames(set, offset, frames, sizeof frames / sizeof *frames);

	for (size_t i = n; i-- > 0;) /* what the library has inlined there is what its caller did */
		if (frames[i].file && (!f.file || !runtime_header(frames[i].file)))
			f = frames[i];
	if (f.file)
		printf("  threads were held up at %s:%u (%s)\n", f.file, f.line, f.function);
	err_free(e);
	if (set)
		img_set_free(set);
}

/* The last lines of a program's output; what a terminal could take for a command is not passed on. */
static void print_tail(const char *text)
{
	const char *p = text + strlen(text);

	for (unsigned lines = 0; p > text && (p[-1] != '\n' || !p[0] || ++lines < TAIL_LINES); p--)
		;
	for (bool start = true; *p; p++) {
		if (start)
			fputs("  | ", stdout);
		start = *p == '\n';
		putchar(start || *p == '\t' || (unsigned char)*p >= ' ' ? *p : '?');
		if (!p[1] && !start)
			putchar('\n');
	}
}

/* What the program itself takes for a failure is one only when asked for. */
static void print_exits(const struct options *o, const struct hunt_result *r)
{
	bool all = r->exits == r->runs;

	if (r->exits && !o->fail_exit && !r->odd_exit)
		printf("%s%llu runs ended with an exit status other than 0 (the last with %d): --fail-exit=%d "
		       "makes that a failure\n", all ? "all " : "", (unsigned long long)r->exits, r->exit_status,
		       r->exit_status);
	if (r->exits && all && r->exit_output && *r->exit_output) {
		puts("the first one said:");
		print_tail(r->exit_output);
	}
	if (r->threads == 1)
		puts("no run had a second thread: there was nothing to perturb");
}

static void print_kinds(const struct hunt_result *r)
{
	for (uint32_t i = 0; i < r->nkinds; i++) {
		const struct hunt_failure *k = &r->kinds[i];
		char *safe = term_text_of(k->text, strlen(k->text));

		printf("  %6llu x  %s\n", (unsigned long long)k->count, safe);
		if (k->trace && r->trace && strcmp(k->trace, r->trace))
			printf("            trace: %s\n", k->trace);
		free(safe);
	}
}

static void print_unconfirmed(const struct hunt_result *r)
{
	if (!r->unconfirmed)
		return;
	printf("%llu %s failed only while others were under way, with files or sockets that they share: not counted\n",
	       (unsigned long long)r->unconfirmed, r->unconfirmed == 1 ? "run" : "runs");
	if (r->unconfirmed_trace)
		printf("  no run failed alone; the trace of one of them: %s\n", r->unconfirmed_trace);
}

/* Of a script's processes: whose trace it is, and what can be done with one that did not fail itself. */
static void print_whose(const struct options *o, const struct hunt_result *r)
{
	if (o->trace_of && !r->named) {
		char *safe = term_text_of(o->trace_of, strlen(o->trace_of));

		printf("  no process named %s left a trace in that run; this is the one that failed\n", safe);
		free(safe);
	}
	if (!r->explainable)
		puts("  it records no failure of its own (another process failed, or the check did): csched replay executes "
		     "it again;\n  csched explain needs the place where it fails, as csched_fail() in the program");
}

static void print_text(const struct options *o, const struct hunt_result *r, char **argv)
{
	if (!r->runs) {
		puts("no run was made");
		return;
	}
	printf("%llu run%s in %.1f s, %llu failed", (unsigned long long)r->runs, r->runs == 1 ? "" : "s",
	       r->seconds, (unsigned long long)r->failures);
	if (r->stopped)
		fputs(" (stopped by the stop file)", stdout);
	if (r->timeouts)
		printf(", %llu ended by the time limit", (unsigned long long)r->timeouts);
	printf("; %u shared of %u sites learned\n", r->shared, r->sites);
	print_kinds(r);
	print_unconfirmed(r);
	if (!r->trace) {
		printf("no failure%s\n", r->interrupted ? " (interrupted)" : "");
		print_exits(o, r);
		return;
	}
	if (r->always)
		puts("it fails without any perturbation, too: no hunting is needed");
	printf("first failure: run %llu, after %.1f s (strategy %s, seed %llu)\n",
	       (unsigned long long)r->first_run, r->first_seconds,
	       *r->strategy ? r->strategy : "native", (unsigned long long)r->first_seed);
	if (r->refused)
		printf("  %u failing %s could not be followed into the failure: %s\n", r->refused,
		       r->refused == 1 ? "run" : "runs", r->better ? "another one was kept" : "the trace may be hard to explain");
	print_site(r, argv[0]);
	printf("trace: %s\n", r->trace);
	print_whose(o, r);
	fputs("again: ", stdout);
	print_rerun(stdout, o, r, argv);
	if (!r->always)
		printf("  (likely, not certain: delays do not guarantee an order. It tries up to %d times; csched replay "
		       "--native\n  enforces the order itself)\n", AGAIN_RUNS);
}

static void print_json(const struct hunt_result *r)
{
	struct json j = { 0 };

	json_object(&j, NULL);
	json_int(&j, "schema", CMD_JSON_SCHEMA);
	json_uint(&j, "runs", r->runs);
	json_uint(&j, "failures", r->failures);
	json_uint(&j, "timeouts", r->timeouts);
	json_uint(&j, "exits", r->exits);
	json_int(&j, "odd_exit", r->odd_exit);
	json_str(&j, "odd_exits", r->odd_exits);
	json_uint(&j, "unconfirmed", r->unconfirmed);
	json_str(&j, "unconfirmed_trace", r->unconfirmed_trace);
	json_bool(&j, "explainable", r->explainable);
	json_num(&j, "seconds", r->seconds);
	json_num(&j, "run_seconds", r->run_seconds);
	json_str(&j, "trace", r->trace);
	json_uint(&j, "unfollowed", r->refused);
	json_uint(&j, "first_run", r->first_run);
	json_num(&j, "first_seconds", r->first_seconds);
	json_uint(&j, "seed", r->first_seed);
	json_str(&j, "strategy", r->trace ? (*r->strategy ? r->strategy : "native") : NULL);
	json_bool(&j, "always_fails", r->always);
	json_bool(&j, "interrupted", r->interrupted);
	json_bool(&j, "stopped", r->stopped);
	json_uint(&j, "sites", r->sites);
	json_uint(&j, "shared_sites", r->shared);
	json_uint(&j, "threads", r->threads);
	json_str(&j, "output", r->trace ? r->output : r->exit_output);
	json_array(&j, "kinds");
	for (uint32_t i = 0; i < r->nkinds; i++) {
		json_object(&j, NULL);
		json_str(&j, "text", r->kinds[i].text);
		json_hex(&j, "fingerprint", r->kinds[i].print);
		json_uint(&j, "count", r->kinds[i].count);
		json_str(&j, "trace", r->kinds[i].trace);
		json_uint(&j, "seed", r->kinds[i].seed);
		json_str(&j, "strategy", !r->kinds[i].trace ? NULL : *r->kinds[i].strategy ? r->kinds[i].strategy : "native");
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	json_print(&j, stdout);
}

static err_t check_options(struct options *o)
{
	if (!plan_strategy_known(o->strategy))
		return err_new(ERR_USAGE, "--strategy: '%s' is none of %s", o->strategy,
			       plan_strategy_names());
	if (o->fail_exit) {
		char *pair = xasprintf("fail_exit=%s", o->fail_exit);
		err_t e = shim_flags_check(pair);

		free(pair);
		TRY(e);
	}
	if (o->shim_options)
		TRY(shim_flags_check(o->shim_options));
	if (o->shard) {
		char rest;

		if (sscanf(o->shard, "%u/%u%c", &o->shard_index, &o->shards, &rest) != 2 || !o->shard_index ||
		    o->shard_index > o->shards || o->shards > SHARD_MOST || !isdigit((unsigned char)*o->shard))
			return err_new(ERR_USAGE, "--shard: '%s' is not I/N, the I-th of N shards", o->shard);
	}
	if (o->jobs > 32)
		return err_new(ERR_USAGE, "--jobs: at most 32");
	return NULL;
}

static uint64_t seed_of_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_nsec / 1000;
}

/* The program is at hand, so the advice is tried as well. */
static int explain(const struct options *o, const struct hunt_result *r, char **argv)
{
	struct fix_request fix = {
		.trace = r->trace, .argv = argv, .fail_exit = o->fail_exit, .options = o->shim_options,
		.runs = FIX_TRIED_RUNS, .time = FIX_TRIED_SECONDS, .limit = o->limit, .jobs = o->jobs, .input = r->input,
	};
	char *alone[] = { (char *)"explain", r->trace, NULL };

	fflush(stdout);
	return o->no_try ? cmd_explain(2, alone) : explain_and_try(r->trace, &fix);
}

/* One case for each kind of failure, or the one that says that there was none. */
static err_t write_junit(const struct options *o, const struct hunt_result *r, char **argv)
{
	struct found_case *cases = xcalloc(r->nkinds + 1, sizeof *cases);
	struct strbuf command = { 0 }, details = { 0 };

	for (char **a = argv; *a; a++) {
		strbuf_str(&command, a == argv ? "" : " ");
		strbuf_word(&command, *a, strlen(*a));
	}
	strbuf_fmt(&details, "csched replay --native %s -- %s\n%s", r->trace ? r->trace : "TRACE", command.s,
		   r->output ? r->output : "");
	for (uint32_t i = 0; i < r->nkinds; i++)
		cases[i] = (struct found_case){ "csched hunt", command.s, FOUND_FAILURE, i ? 0 : r->seconds,
						r->kinds[i].text, NULL, details.s };
	if (!r->nkinds)
		cases[0] = (struct found_case){ "csched hunt", command.s, FOUND_NOTHING, r->seconds, NULL, NULL, NULL };
	err_t e = found_write(&o->found, "csched hunt", cases, r->nkinds ? r->nkinds : 1);
	free(cases);
	strbuf_free(&command);
	strbuf_free(&details);
	return e;
}

static int hunt(struct options *o, char **argv)
{
	struct hunt_options h = {
		.argv = argv, .out = o->out, .strategy = o->strategy, .sites = o->sites,
		.fail_exit = o->fail_exit, .trace_of = o->trace_of, .check = o->check, .options = o->shim_options, .seed = o->seed, .max_runs = o->runs,
		.max_seconds = o->time, .run_limit = o->limit, .jobs = (uint32_t)o->jobs,
		.keep_going = o->keep_going, .quiet = o->common.json, .worth = aside_can_follow,
		.keeps_input = !o->no_explain && !o->no_try && !o->common.json,
	};
	struct hunt_result r = { 0 };
	char *shim = NULL;
	err_t e = check_options(o);

	h.shard = o->shard_index;
	h.shards = o->shards;
	h.stop_file = o->stop_file;
	if (o->seed == NO_SEED)
		h.seed = o->shards ? SHARD_SEED : seed_of_now();

	if (!e)
		e = found_check(&o->found);
	/* Without any budget: long enough for most, short enough to come back to. */
	if (!h.max_runs && h.max_seconds <= 0)
		h.max_seconds = 300;
	if (!e)
		e = launch_find_shim(&shim);
	h.shim = shim;
	bool alone;
	char *obstacle = e ? NULL : launch_obstacle(argv[0], &alone);
	if (obstacle)
		e = err_new(ERR_USAGE, "%s", obstacle);
	free(obstacle);
	launch_suit(argv[0]);
	if (!e)
		e = hunt_run(&h, &r);
	free(shim);
	bool ended = r.interrupted && interrupt_pending() != SIGINT;
	if (e) {
		hunt_result_free(&r);
		return cmd_fail("hunt", e);
	}
	if (o->common.json)
		print_json(&r);
	else
		print_text(o, &r, argv);
	int status = found_status(&o->found, r.trace), written = cmd_fail("hunt", write_junit(o, &r, argv));
	/* ^C ends the hunting; anything else ends us. */
	if (ended) {
		fflush(stdout);
		raise(interrupt_pending());
	}
	/* A merge groups failures by the fingerprints of their causes, which are beside the traces then. */
	for (uint32_t i = 0; o->shards && !o->no_explain && i < r.nkinds; i++)
		if (r.kinds[i].trace && r.kinds[i].kind)
			aside_explain(r.kinds[i].trace, SHARD_EXPLAIN);
	if (r.trace && r.explainable && !o->no_explain && !o->common.json && !o->shards) {
		int explained = explain(o, &r, argv);

		status = o->found.fail_if_found ? status : explained;
	}
	if (r.input)
		unlink(r.input);
	hunt_result_free(&r);
	return written ? written : status;
}

/* Instead of hunting. */
static int try_fix(struct options *o, char **argv)
{
	struct fix_request r = {
		.trace = o->with_fix, .file = o->fix, .argv = argv, .fail_exit = o->fail_exit, .options = o->shim_options,
		.runs = o->runs, .time = o->time, .limit = o->limit, .jobs = o->jobs, .json = o->common.json,
	};
	err_t e = o->with_fix ? check_options(o) :
				err_new(ERR_USAGE, "--fix needs the failing run it is for: --with-fix=TRACE");

	return e ? cmd_fail("hunt", e) : fix_command(&r);
}

int cmd_hunt(int argc, char **argv)
{
	struct options o = { .strategy = "auto", .seed = NO_SEED };
	const struct cmd_option options[] = {
		{ "runs", 'n', "N", CMD_UINT, &o.runs, "at most N runs" },
		{ "time", 't', "SECONDS", CMD_NUM, &o.time,
		  "time limit (default 300 when --runs is not given)" },
		{ "seed", 's', "S", CMD_UINT, &o.seed,
		  "seed of all random choices (default: from the clock; printed)" },
		{ "strategy", 0, "NAME", CMD_TEXT, &o.strategy,
		  "auto (default), site, demote, meet, shared, pct, sample, sync, start,\n"
		  "native, or exactly what a failing hunt printed" },
		{ "out", 'o', "DIR", CMD_TEXT, &o.out,
		  "directory for the failing trace (default: the current one)" },
		{ "jobs", 'j', "N", CMD_UINT, &o.jobs, "runs at a time (default: one per core)" },
		{ "limit", 0, "SECONDS", CMD_NUM, &o.limit,
		  "time limit of one run (default: from the first run)" },
		{ "sites", 0, "FILE", CMD_TEXT, &o.sites,
		  "keep what is learned about shared sites in FILE" },
		{ "fail-exit", 0, "STATUS,...", CMD_TEXT, &o.fail_exit,
		  "exit statuses that count as failures" },
		{ "trace-of", 0, "NAME", CMD_TEXT, &o.trace_of,
		  "for scripts: keep the trace of the program NAME" },
		{ "check", 0, "COMMAND", CMD_TEXT, &o.check,
		  "run this shell command after each run; a status other than 0 is a failure" },
		{ "options", 0, "KEY=VALUE:...", CMD_TEXT, &o.shim_options,
		  "further options for the shim, as in CSCHED_OPTIONS" },
		{ "with-fix", 0, "TRACE", CMD_TEXT, &o.with_fix,
		  "try the advice for this failing run on the program: runs like it\n"
		  "(--runs, default 500) without and with the fix applied by csched" },
		{ "fix", 0, "FILE", CMD_TEXT, &o.fix,
		  "with --with-fix: try this fix instead (csched-fix(5))" },
		{ "shard", 0, "I/N", CMD_TEXT, &o.shard,
		  "be the I-th of N hunts that share the work; keep what it learns in --out" },
		{ "stop-file", 0, "FILE", CMD_TEXT, &o.stop_file,
		  "end when FILE exists; create it when a failure is found" },
		{ "keep-going", 'k', NULL, CMD_FLAG, &o.keep_going,
		  "count failures until the budget ends" },
		{ "no-try", 0, NULL, CMD_FLAG, &o.no_try, "do not try the advice on the program" },
		{ "no-explain", 0, NULL, CMD_FLAG, &o.no_explain, "do not explain the failure" },
		FOUND_OPTIONS(&o.found),
		CONFINED_OPTIONS,
		{ 0 },
	};
	const struct cmd_spec spec = {
		.name = "hunt", .usage = "[options] -- PROGRAM [ARGUMENT ...]",
		.summary = "Runs a program again and again, perturbed differently each time, until it\n"
			   "fails; keeps the trace of that run and explains it.",
		.options = options, .common = &o.common, .min_args = 1, .max_args = CMD_ANY,
		.command_line = true,
	};
	struct cmd_args args;
	int status;

	if (!cmd_parse(&spec, argc, argv, &args, &status))
		return status;
	return o.with_fix || o.fix ? try_fix(&o, args.v) : hunt(&o, args.v);
}
