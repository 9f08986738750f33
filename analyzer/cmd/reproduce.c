/* SPDX-License-Identifier: GPL-2.0-or-later */
/* csched reproduce: from a crash stack alone to a test that fails with it. */
#include "analyzer/cmd/confined.h"
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/testgen.h"
#include "analyzer/launch.h"
#include "analyzer/testgen/goal.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_SECONDS 120.0
#define DEFAULT_DEPTH 4

struct options {
	bool no_explain, any_line, no_solve;
	const char *stack, *out, *header, *conf, *without;
	uint64_t seed, tests, depth, runs;
	double time;
	struct found_options found;
	struct cmd_common common;
};

struct reproduction {
	struct options *o;
	struct api *api;
	struct api_conf conf;
	struct stack stack;
	struct goal goal;
	struct testgen_options to;
	struct testgen_result result;
};

static bool reproduced(const struct reproduction *r)
{
	return r->result.violations.n > 0;
}

static void print_goal(const struct term *t, const struct reproduction *r)
{
	const struct goal *g = &r->goal;

	term_print(t, TERM_BOLD, "stack");
	fprintf(t->f, "      %s, %s\n", stack_kind_name(g->kind), r->stack.format);
	for (unsigned i = 0; i < g->nframes; i++) {
		char *name = term_text_of(g->frames[i].function, strlen(g->frames[i].function));

		fprintf(t->f, "  %-9s %s", i ? "" : "fails in", name);
		if (g->frames[i].file && g->frames[i].line)
			fprintf(t->f, " (%s:%u)", g->frames[i].file, g->frames[i].line);
		fprintf(t->f, "%s\n", i + 1 == g->nframes ? "  <- called by the test" : "");
		free(name);
	}
	if (g->other)
		fprintf(t->f, "  and       %s in the other thread\n", g->other->name);
}

static void print_solved(const struct term *t, const struct reproduction *r)
{
	const struct testgen_result *res = &r->result;

	fprintf(t->f, "%" PRIu64 " orders executed", res->orders);
	if (r->to.solve)
		fprintf(t->f, "; the solver was asked about %" PRIu64 " tests and had orders for %" PRIu64 "%s", res->asked, res->answered,
			!reproduced(r) ? "" : res->violations.v[0].solved ? ", the failing one among them" :
			"; the failing one was found by exploring");
	fputc('\n', t->f);
}

static void print_text(const struct term *t, const struct reproduction *r)
{
	const struct testgen_result *res = &r->result;

	print_goal(t, r);
	if (reproduced(r)) {
		term_print(t, TERM_GREEN, "reproduced ");
		testgen_print_violation(t, r->api, &res->violations.v[0]);
	} else if (res->sequential) {
		term_print(t, TERM_YELLOW, "fails sequentially too");
		char *before = seq_text(r->api, &res->sequential_test.prefix);
		fprintf(t->f, ": no second thread is needed\n  before    %s\n  call      %s\n", before, res->sequential);
		free(before);
	} else {
		term_print(t, TERM_YELLOW, "not reproduced");
		fprintf(t->f, "%s\n", res->exhausted ? ": all tests within --depth were tried" :
			": the limit was reached; --time and --depth raise it");
	}
	if (!reproduced(r) && r->api->program)
		fprintf(t->f, "  %s is a program: its functions were called without what main() does before; functions that "
			"prepare\n  something can be named in a testgen.conf (setup FUNCTION)\n", r->api->soname);
	if (!reproduced(r) && r->goal.near)
		fprintf(t->f, "  %u other failures were seen, which are not this one; the first: %s\n", r->goal.near,
			r->goal.nearest);
	print_solved(t, r);
	testgen_print_search(t, res);
}

static void print_json(const struct reproduction *r)
{
	const struct testgen_result *res = &r->result;
	struct json j = { 0 };

	json_object(&j, NULL);
	json_uint(&j, "schema", CMD_JSON_SCHEMA);
	json_str(&j, "library", r->api->path);
	json_bool(&j, "reproduced", reproduced(r));
	json_str(&j, "stack_kind", stack_kind_name(r->goal.kind));
	json_str(&j, "stack_format", r->stack.format);
	json_str(&j, "crashing_function", r->goal.crashing->name);
	json_str(&j, "point_of_failure", r->goal.frames[0].function);
	json_bool(&j, "fails_sequentially", !reproduced(r) && res->sequential);
	json_str(&j, "sequential_call", reproduced(r) ? NULL : res->sequential);
	if (reproduced(r))
		testgen_json_violation(&j, r->api, &res->violations.v[0]);
	else
		json_str(&j, "test", NULL);
	json_uint(&j, "tests", res->tests);
	json_num(&j, reproduced(r) ? "search_seconds" : "seconds", res->seconds);
	json_uint(&j, "other_failures", r->goal.near);
	json_uint(&j, "orders", res->orders);
	json_uint(&j, "solver_asked", res->asked);
	json_uint(&j, "solver_answered", res->answered);
	json_uint(&j, "solver_questions", res->questions);
	json_bool(&j, "solved", reproduced(r) && res->violations.v[0].solved);
	testgen_json_search(&j, res);
	json_end(&j);
	json_print(&j, stdout);
}

static err_t write_junit(const struct reproduction *r)
{
	struct found_case c = { "csched reproduce", r->o->stack, FOUND_NOTHING, r->result.seconds, NULL, NULL, NULL };

	if (reproduced(r))
		c = testgen_case(c.suite, c.name, r->api, &r->result.violations.v[0]);
	err_t e = found_write(&r->o->found, "csched reproduce", &c, 1);
	if (reproduced(r))
		testgen_case_free(&c);
	return e;
}

/* The crashing function must be one that a test can call, on an object or on the library's own variables. */
static err_t find_object(struct reproduction *r)
{
	struct api_function *f = (struct api_function *)r->goal.crashing;

	if (f->left_out)
		return err_new(ERR_NOANSWER, "'%s', which the test would have to call, is left out: %s", f->name, f->left_out);
	if (f->role == API_DESTRUCTOR)
		f->role = API_METHOD;
	r->to.object = api_is_move(r->api, f, r->api->globals) ? r->api->globals : f->object;
	if (!api_is_move(r->api, f, r->to.object))
		return err_new(ERR_NOANSWER, "'%s', the outermost frame of the library, works on nothing that two threads "
			       "could share (it is a %s); testgen.conf can say what it is", f->name, api_role_name(f->role));
	struct api_function *other = (struct api_function *)r->goal.other;
	if (other && other->role == API_DESTRUCTOR)
		other->role = API_METHOD;
	r->to.crashing = f->symbol;
	return NULL;
}

static err_t search(struct reproduction *r)
{
	struct lab lab;
	err_t e = testgen_setup(&lab, r->api, &r->conf, r->to.object, r->to.seed);

	/* What sanitizers report is a wrong access, not what comes of it. */
	lab.server.guard = r->goal.kind == STACK_FREED || r->goal.kind == STACK_OVERRUN;
	if (!e)
		e = testgen_search(&lab, &r->to, &r->result);
	if (!e && reproduced(r))
		e = testgen_write(&lab, &r->to, &r->result.violations.v[0], 1);
	server_stop(&lab.server);
	return e;
}

/* *status: not 0 when the stack could not be read, which has been said. */
static err_t work(struct reproduction *r, const char *library, int *status)
{
	struct options *o = r->o;
	char *shim = NULL, here[PATH_MAX], *out = NULL;

	if (!o->stack)
		return err_new(ERR_USAGE, "--stack FILE is needed: a backtrace as text; - for standard input");
	r->to = (struct testgen_options){
		.out = o->out ? o->out : "csched-reproduce", .seed = o->seed, .most_tests = o->tests, .most_violations = 1,
		.depth = (unsigned)o->depth, .threads = 2, .seconds = o->time, .explain = !o->no_explain, .quiet = o->common.json,
		.native_runs = (unsigned)o->runs, .wanted = goal_wanted, .reaches = goal_reaches, .arg = &r->goal,
	};
	TRY(testgen_parse_rules(o->without, &r->to.rules));
	TRY(found_check(&o->found));
	*status = reproduce_read_stack(o->stack, &r->stack);
	if (*status)
		return NULL;
	TRY(api_read(library, o->header, &r->api));
	if (o->conf)
		TRY(api_conf_read(o->conf, r->api, &r->conf));
	TRY(goal_of(r->api, &r->stack, o->stack, &r->goal));
	r->goal.any_line = o->any_line;
	/* Who waits for locks writes nothing that the other has to read. */
	if (r->goal.kind == STACK_DEADLOCK)
		r->to.rules &= ~(unsigned)(TESTGEN_INTERFERE | TESTGEN_STACK);
	TRY(find_object(r));
	r->to.race = goal_race(&r->goal);
	r->to.solve = o->no_solve ? NULL : goal_solve(&r->goal);
	TRY(launch_find_shim(&shim));
	r->to.shim = shim;
	if (r->to.out[0] != '/' && getcwd(here, sizeof here))
		r->to.out = out = xasprintf("%s/%s", here, r->to.out);
	err_t e = search(r);
	free(shim);
	free(out);
	return e;
}

int cmd_reproduce(int argc, char **argv)
{
	struct options o = { .time = DEFAULT_SECONDS, .depth = DEFAULT_DEPTH, .runs = 3 };
	const struct cmd_option options[] = {
		{ "stack", 0, "FILE", CMD_TEXT, &o.stack, "the crash stack: text (- for standard input), a core file or a\n"
		  "csched trace" },
		{ "time", 0, "SECONDS", CMD_NUM, &o.time, "time limit of the search; 120 by default, 0 for none" },
		{ "tests", 'n', "N", CMD_UINT, &o.tests, "at most so many tests" },
		{ "depth", 0, "N", CMD_UINT, &o.depth, "calls in front of the threads, behind the constructor; 4 by default" },
		{ "seed", 's', "S", CMD_UINT, &o.seed, "in which order equal calls are tried" },
		{ "without", 0, "RULES", CMD_TEXT, &o.without, "switch pruning rules off: exception, stack, redundant,\n"
		  "interfere, interleave, state or all, with commas" },
		{ "no-solve", 0, NULL, CMD_FLAG, &o.no_solve, "do not ask the solver for orders: only explore" },
		{ "any-line", 0, NULL, CMD_FLAG, &o.any_line, "the library was rebuilt: compare functions, not lines" },
		{ "conf", 'c', "FILE", CMD_TEXT, &o.conf, "a testgen.conf: what the debug information does not say" },
		{ "header", 0, "FILE", CMD_TEXT, &o.header, "take declarations from this C header" },
		{ "out", 'o', "DIR", CMD_TEXT, &o.out, "directory for the test; csched-reproduce by default" },
		{ "runs", 0, "N", CMD_UINT, &o.runs, "confirm the test by so many runs of the real program; 3 by default" },
		{ "no-explain", 0, NULL, CMD_FLAG, &o.no_explain, "do not explain the failing run" },
		FOUND_OPTIONS(&o.found),
		CONFINED_OPTIONS,
		{ 0 },
	};
	const struct cmd_spec spec = {
		.name = "reproduce", .usage = "--stack FILE [options] LIBRARY.so",
		.summary = "Finds a test and an order that fail with a given crash stack.",
		.options = options, .common = &o.common, .min_args = 1, .max_args = 1,
	};
	struct reproduction r = { .o = &o };
	struct cmd_args args;
	int status;

	if (!cmd_parse(&spec, argc, argv, &args, &status))
		return status;
	status = 0;
	err_t e = work(&r, args.v[0], &status);
	struct term t = cmd_term(&o.common);
	if (!e && !status && o.common.json)
		print_json(&r);
	else if (!e && !status)
		print_text(&t, &r);
	if (!e && !status)
		e = write_junit(&r);
	bool found = reproduced(&r);
	testgen_result_free(&r.result);
	stack_free(&r.stack);
	goal_free(&r.goal);
	api_free(r.api);
	api_conf_free(&r.conf);
	if (e)
		return cmd_fail("reproduce", e);
	return status ? status : found_status(&o.found, found);
}
