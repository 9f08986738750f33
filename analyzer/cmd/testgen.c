/* SPDX-License-Identifier: GPL-2.0-or-later */
/* csched testgen: concurrent tests for a library. */
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/testgen.h"
#include "analyzer/launch.h"

#include "common/json.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_SECONDS 60.0
#define DEFAULT_DEPTH 3

struct options {
	bool list, no_explain, results, globals, guard, no_guard;
	const char *type, *strategy, *out, *header, *conf, *without, *shard;
	uint64_t tests, violations, seed, depth, runs, threads;
	double time;
	struct found_options found;
	struct cmd_common common;
};

/* ---- --list ---- */

static void list_functions(const struct term *t, const struct api *a, int object, enum api_role role)
{
	for (size_t i = 0; i < a->functions.n; i++) {
		const struct api_function *f = &a->functions.v[i];

		if (f->left_out || f->object != object || f->role != role)
			continue;
		char *name = term_text_of(f->name, strlen(f->name));
		fprintf(t->f, "    %-12.11s %s", api_role_name(role), name);
		if (!f->cxx) {
			fputs(" (", t->f);
			for (unsigned k = 0; k < f->nparams; k++)
				fprintf(t->f, "%s%s", k ? ", " : "", f->params[k].spelling);
			fputc(')', t->f);
		}
		fputc('\n', t->f);
		free(name);
	}
}

static bool has_functions(const struct api *a, int object)
{
	for (size_t i = 0; i < a->functions.n; i++)
		if (!a->functions.v[i].left_out && a->functions.v[i].object == object)
			return true;
	return false;
}

/* What the C++ library adds to a library is counted: it is hundreds of functions. */
static void list_left_out(const struct term *t, const struct api *a)
{
	unsigned theirs = 0;
	bool any = false;

	for (size_t i = 0; i < a->functions.n; i++) {
		const struct api_function *f = &a->functions.v[i];

		theirs += f->left_out && f->is_theirs;
		if (!f->left_out || f->is_theirs)
			continue;
		if (!any)
			term_print(t, TERM_BOLD, "left out\n");
		any = true;
		char *name = term_text_of(f->name, strlen(f->name));
		fprintf(t->f, "    %s: %s\n", name, f->left_out);
		free(name);
	}
	if (theirs)
		fprintf(t->f, "%s    %u functions of templates and of the C++ library\n", any ? "" : "left out\n", theirs);
}

static void list_text(const struct term *t, const struct api *a, int only)
{
	for (int o = 0; o < (int)a->objects.n; o++) {
		if ((only != API_NONE && o != only) || !has_functions(a, o))
			continue;
		term_print(t, TERM_BOLD, "%s", a->objects.v[o].name);
		for (size_t i = 0; i < a->objects.v[o].aliases.n; i++)
			fprintf(t->f, "%s%s", i ? ", " : " = ", a->objects.v[o].aliases.v[i]);
		if (a->objects.v[o].size)
			fprintf(t->f, "  %" PRIu64 " bytes\n", a->objects.v[o].size);
		else if (o == a->globals)
			fprintf(t->f, "  of functions that take no object: --globals\n");
		else
			fprintf(t->f, "  incomplete\n");
		for (int r = API_PLAIN; r <= API_DESTRUCTOR; r++)
			list_functions(t, a, o, (enum api_role)r);
	}
	if (only == API_NONE)
		list_left_out(t, a);
}

static void list_json(const struct api *a)
{
	struct json j = { 0 };

	json_object(&j, NULL);
	json_uint(&j, "schema", CMD_JSON_SCHEMA);
	json_str(&j, "library", a->path);
	json_array(&j, "functions");
	for (size_t i = 0; i < a->functions.n; i++) {
		const struct api_function *f = &a->functions.v[i];

		json_object(&j, NULL);
		json_str(&j, "name", f->name);
		json_str(&j, "symbol", f->symbol);
		json_str(&j, "role", api_role_name(f->role));
		json_str(&j, "type", f->object == API_NONE ? NULL : a->objects.v[f->object].name);
		json_str(&j, "left_out", f->left_out);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	json_print(&j, stdout);
}

/* ---- the answer ---- */

static void print_parts(const struct term *t, const struct api *a, const struct test *test)
{
	char *p = seq_text(a, &test->prefix);

	fprintf(t->f, "  before    %s\n", p);
	free(p);
	for (unsigned i = 0; i < JOB_THREADS && test->part[i].n; i++) {
		char *x = seq_text(a, &test->part[i]);

		fprintf(t->f, "  thread %c  %s\n", 'A' + i, x);
		free(x);
	}
}

static void json_parts(struct json *j, const struct api *a, const struct test *test)
{
	char *p = seq_text(a, &test->prefix), key[] = "thread_a";

	json_str(j, "before", p);
	free(p);
	for (unsigned i = 0; i < JOB_THREADS && test->part[i].n; i++) {
		char *x = seq_text(a, &test->part[i]);

		key[sizeof key - 2] = (char)('a' + i);
		json_str(j, key, x);
		free(x);
	}
}

void testgen_print_violation(const struct term *t, const struct api *a, const struct violation *v)
{
	char *text = testgen_failure_text(a, &v->failure);

	term_print(t, TERM_RED, "violation");
	fprintf(t->f, "  %s\n", text);
	print_parts(t, a, &v->test);
	if (!v->failure.thread && v->test.post.n) {
		char *z = seq_text(a, &v->test.post);

		fprintf(t->f, "  after     %s\n", z);
		free(z);
	}
	if (v->race)
		fputs("  with the schedule the two accesses are next to each other; nothing fails by that\n", t->f);
	else
		fprintf(t->f, "  none of the %u orders of whole calls fails\n", v->linearisations);
	fprintf(t->f, "  test      %s\n  schedule  %s\n", v->file, v->schedule);
	if (v->native_runs)
		fprintf(t->f, "  on the real program it fails %u of %u times\n", v->native_failures, v->native_runs);
	if (v->native_failures)
		fprintf(t->f, "  again     csched replay --native %.*s.csched -- %.*s\n", (int)strlen(v->file) - 2, v->file,
			(int)strlen(v->file) - 2, v->file);
	if (v->report)
		fprintf(t->f, "  explained %s\n", v->report);
	free(text);
}

void testgen_json_violation(struct json *j, const struct api *a, const struct violation *v)
{
	char *text = testgen_failure_text(a, &v->failure);

	json_str(j, "kind", failure_kind(&v->failure));
	json_str(j, "failure", text);
	json_str(j, "test", v->file);
	json_str(j, "schedule", v->schedule);
	json_str(j, "report", v->report);
	json_parts(j, a, &v->test);
	json_uint(j, "calls", test_calls(&v->test));
	json_uint(j, "linearisations", v->linearisations);
	json_uint(j, "found_by_test", v->number);
	json_num(j, "seconds", v->seconds);
	json_uint(j, "native_runs", v->native_runs);
	json_uint(j, "native_failures", v->native_failures);
	free(text);
}

/* Not a failure: nothing crashed, and whether it matters is for the library's documentation to say. */
static void print_odd(const struct term *t, const struct api *a, const struct violation *v)
{
	char *text = testgen_odd_text(a, v);

	term_print(t, TERM_YELLOW, "not linearisable");
	fprintf(t->f, "  %s\n", text);
	print_parts(t, a, &v->test);
	fprintf(t->f, "  none of the %u orders of whole calls does that\n", v->linearisations);
	fprintf(t->f, "  test      %s\n  schedule  %s\n", v->file, v->schedule);
	free(text);
}

static void json_odd(struct json *j, const struct api *a, const struct violation *v)
{
	char *text = testgen_odd_text(a, v);

	json_object(j, NULL);
	json_str(j, "kind", v->odd_state ? "state" : "results");
	json_str(j, "what", text);
	json_str(j, "test", v->file);
	json_str(j, "schedule", v->schedule);
	json_parts(j, a, &v->test);
	json_uint(j, "linearisations", v->linearisations);
	json_num(j, "seconds", v->seconds);
	json_end(j);
	free(text);
}

static void print_json(const struct api *a, const struct testgen_options *o, const struct testgen_result *r)
{
	struct json j = { 0 };

	json_object(&j, NULL);
	json_uint(&j, "schema", CMD_JSON_SCHEMA);
	json_str(&j, "library", a->path);
	json_str(&j, "type", a->objects.v[o->object].name);
	json_array(&j, "violations");
	for (size_t i = 0; i < r->violations.n; i++) {
		json_object(&j, NULL);
		testgen_json_violation(&j, a, &r->violations.v[i]);
		json_end(&j);
	}
	json_end(&j);
	if (o->results) {
		json_array(&j, "not_linearisable");
		for (size_t i = 0; i < r->odd.n; i++)
			json_odd(&j, a, &r->odd.v[i]);
		json_end(&j);
	}
	json_uint(&j, "tests", r->tests);
	json_num(&j, "seconds", r->seconds);
	json_num(&j, "first_seconds", r->first_seconds);
	testgen_json_search(&j, r);
	json_end(&j);
	json_print(&j, stdout);
}

static double per_second(const struct testgen_result *r)
{
	return r->trace_seconds > 0 ? (double)r->traces / r->trace_seconds : 0;
}

void testgen_json_search(struct json *j, const struct testgen_result *r)
{
	json_uint(j, "pairs", r->considered);
	json_object(j, "pruned");
	for (unsigned i = 0; i < TESTGEN_RULES; i++)
		json_uint(j, testgen_rule_names[i], r->pruned[i]);
	json_end(j);
	json_uint(j, "tests_of_many", r->groups);
	json_uint(j, "executions", r->jobs);
	json_uint(j, "traced", r->traces);
	json_num(j, "traced_per_second", per_second(r));
	json_uint(j, "sequences", r->sequences);
	json_uint(j, "covered", r->covered);
	json_uint(j, "depth", r->depth);
	json_bool(j, "exhausted", r->exhausted);
	json_array(j, "left_out");
	for (size_t i = 0; i < r->remarks.n; i++)
		json_str(j, NULL, r->remarks.v[i]);
	json_end(j);
}

void testgen_print_search(const struct term *t, const struct testgen_result *r)
{
	fprintf(t->f, "%" PRIu64 " tests in %.1f s (%" PRIu64 " executions), prefixes of up to %u calls%s\n", r->tests,
		r->seconds, r->jobs, r->depth, r->exhausted ? "" : "; the search was cut short");
	fprintf(t->f, "  of %" PRIu64 " pairs of calls, pruned by rule:", r->considered);
	for (unsigned i = 0; i < TESTGEN_RULES; i++)
		if (r->pruned[i])
			fprintf(t->f, " %s %" PRIu64, testgen_rule_names[i], r->pruned[i]);
	fputc('\n', t->f);
	if (r->sequences)
		fprintf(t->f, "  %" PRIu64 " call sequences chosen by what they cover: %" PRIu64 " different traces of calls\n",
			r->sequences, r->covered);
	fprintf(t->f, "  %" PRIu64 " call sequences executed in one thread, %.0f per second\n", r->traces, per_second(r));
	for (size_t i = 0; i < r->remarks.n; i++)
		fprintf(t->f, "  %s\n", r->remarks.v[i]);
}

struct found_case testgen_case(const char *command, const char *name, const struct api *a, const struct violation *v)
{
	char *p = seq_text(a, &v->test.prefix);
	int base = (int)strlen(v->file) - 2; /* without .c */
	struct strbuf b = { 0 };

	strbuf_fmt(&b, "before: %s\n", p);
	for (unsigned i = 0; i < JOB_THREADS && v->test.part[i].n; i++) {
		char *x = seq_text(a, &v->test.part[i]);

		strbuf_fmt(&b, "thread %c: %s\n", 'A' + i, x);
		free(x);
	}
	strbuf_fmt(&b, "test: %s\nschedule: %s\n", v->file, v->schedule);
	if (v->native_failures)
		strbuf_fmt(&b, "csched replay --native %.*s.csched -- %.*s\n", base, v->file, base, v->file);
	free(p);
	return (struct found_case){ command, name, FOUND_FAILURE, v->seconds, testgen_failure_text(a, &v->failure), NULL,
				    strbuf_take(&b) };
}

void testgen_case_free(struct found_case *c)
{
	free((char *)c->text);
	free((char *)c->details);
}

/* One case for each violation, or the one that says that there was none. */
static err_t write_junit(const struct options *o, const struct api *a, int object, const struct testgen_result *r)
{
	struct found_case *cases = xcalloc(r->violations.n + 1, sizeof *cases);
	char *name = xasprintf("%s of %s", a->objects.v[object].name, a->soname);
	size_t n = r->violations.n;
	double before = 0;

	for (size_t i = 0; i < n; i++) {
		cases[i] = testgen_case("csched testgen", name, a, &r->violations.v[i]);
		/* Their times add up to that of the search until the last one. */
		cases[i].seconds -= before;
		before = r->violations.v[i].seconds;
	}
	if (!n)
		cases[0] = (struct found_case){ "csched testgen", name, FOUND_NOTHING, r->seconds, NULL, NULL, NULL };
	err_t e = found_write(&o->found, "csched testgen", cases, n ? n : 1);
	for (size_t i = 0; i < n; i++)
		testgen_case_free(&cases[i]);
	free(cases);
	free(name);
	return e;
}

/* ---- flow ---- */

err_t testgen_parse_rules(const char *without, unsigned *rules)
{
	*rules = TESTGEN_ALL;
	for (const char *p = without; p && *p;) {
		size_t n = strcspn(p, ",");
		bool known = false;

		if (n == 3 && !strncmp(p, "all", 3)) {
			*rules = 0;
			known = true;
		}
		for (unsigned i = 0; testgen_rule_names[i]; i++)
			if (strlen(testgen_rule_names[i]) == n && !strncmp(p, testgen_rule_names[i], n)) {
				*rules &= ~(1u << i);
				known = true;
			}
		if (!known)
			return err_new(ERR_USAGE, "--without: '%.*s' is no rule; there are exception, stack, redundant, "
				       "interfere, interleave, state, d1, d2, d3, b1, b2 and all", (int)n, p);
		p += n + (p[n] == ',');
	}
	return NULL;
}

err_t testgen_setup(struct lab *lab, const struct api *a, const struct api_conf *conf, int object, uint64_t seed)
{
	*lab = (struct lab){ .api = a };
	lab->server.fd = -1;
	lab->pools = (struct seq_pools){ .api = a, .conf = conf, .object = object, .seed = seed };
	for (size_t i = 0; i < conf->setup.n; i++) {
		const struct api_function *f = api_find_function(a, conf->setup.v[i]);
		seq_list_t l = { 0 };

		seq_moves(&lab->pools, (int)(f - a->functions.v), 1, &l);
		bool good = l.n && seq_append(&lab->setup, &l.v[0]);
		vec_free(&l);
		if (!good)
			return err_new(ERR_INPUT, "setup function '%s' cannot be called", conf->setup.v[i]);
	}
	lab->asked = lab->setup.n;
	seq_helpers(&lab->pools, &lab->setup);
	return server_start(a, &lab->server);
}

static err_t find_type(const struct api *a, const struct options *o, int *object)
{
	const char *type = o->type;

	*object = o->globals ? a->globals : type ? api_find_object(a, type) : api_likely_object(a);
	if (*object != API_NONE)
		return NULL;
	if (type)
		return err_new(ERR_NOANSWER, "%s has no type '%s'; csched testgen %s --list shows those it has", a->soname,
			       type, a->soname);
	return err_new(ERR_NOANSWER, "%s has no type with a constructor and methods; csched testgen %s --list shows what "
		       "was understood; --globals tests functions that take no object", a->soname, a->soname);
}

static err_t search(const struct options *o, const struct api *a, const struct api_conf *conf,
		    struct testgen_options *to, const struct term *t, bool *found)
{
	struct testgen_result r = { 0 };
	struct lab lab;
	err_t e = testgen_setup(&lab, a, conf, to->object, to->seed);

	lab.server.guard = o->guard;
	if (!e)
		seq_looks(&lab.pools, &lab.looks);
	if (!e)
		e = strcmp(to->strategy, "random") ? testgen_search(&lab, to, &r) : testgen_random(&lab, to, &r);
	if (!e && to->save)
		e = to->save(to->save_arg, &lab, &r);
	for (size_t i = 0; i < r.violations.n && !e && !to->save; i++)
		e = testgen_write(&lab, to, &r.violations.v[i], (unsigned)i + 1);
	for (size_t i = 0; i < r.odd.n && !e; i++)
		e = testgen_write_odd(&lab, to, &r.odd.v[i], (unsigned)i + 1);
	server_stop(&lab.server);
	*found = r.violations.n > 0;
	if (!e)
		e = write_junit(o, a, to->object, &r);
	if (!e && o->common.json) {
		print_json(a, to, &r);
	} else if (!e) {
		for (size_t i = 0; i < r.violations.n; i++)
			testgen_print_violation(t, a, &r.violations.v[i]);
		fprintf(t->f, "%zu violation%s of %s\n", r.violations.n, r.violations.n == 1 ? "" : "s",
			a->objects.v[to->object].name);
		for (size_t i = 0; i < r.odd.n; i++)
			print_odd(t, a, &r.odd.v[i]);
		testgen_print_search(t, &r);
	}
	testgen_result_free(&r);
	return e;
}

static err_t work(const struct options *o, const char *library, struct api **a, struct api_conf *conf, bool *found)
{
	struct term t = cmd_term(&o->common);
	struct testgen_options to = {
		.strategy = o->strategy ? o->strategy : "coverage", .out = o->out ? o->out : "csched-testgen",
		.seed = o->seed, .most_tests = o->tests, .most_violations = o->violations, .depth = (unsigned)o->depth,
		.threads = (unsigned)o->threads,
		.seconds = o->time, .results = o->results, .guard_too = !o->guard && !o->no_guard,
		.explain = !o->no_explain, .quiet = o->common.json, .native_runs = (unsigned)o->runs,
	};
	char out[PATH_MAX], *shim = NULL;

	if (strcmp(to.strategy, "coverage") && strcmp(to.strategy, "breadth") && strcmp(to.strategy, "random"))
		return err_new(ERR_USAGE, "--strategy is coverage, breadth or random, not '%s'", to.strategy);
	if (o->threads < 2 || o->threads > JOB_THREADS)
		return err_new(ERR_USAGE, "--threads: a test has 2 to %d threads, not %" PRIu64, JOB_THREADS, o->threads);
	TRY(testgen_parse_rules(o->without, &to.rules));
	if (!o->list)
		TRY(found_check(&o->found));
	TRY(api_read(library, o->header, a));
	if (o->conf)
		TRY(api_conf_read(o->conf, *a, conf));
	to.object = API_NONE;
	if (o->type || o->globals || !o->list)
		TRY(find_type(*a, o, &to.object));
	if (o->list) {
		if (o->common.json)
			list_json(*a);
		else
			list_text(&t, *a, to.object);
		*found = true;
		return NULL;
	}
	TRY(launch_find_shim(&shim));
	to.shim = shim;
	/* Programs are started from there: absolute. */
	if (to.out[0] != '/' && getcwd(out, sizeof out)) {
		char *full = xasprintf("%s/%s", out, to.out);
		to.out = full;
	}
	struct testgen_shard shard = { .to = &to, .api = *a };
	err_t e = o->shard ? testgen_shard_begin(&shard, o->shard) : NULL;
	if (o->shard) {
		to.save = testgen_shard_save;
		to.save_arg = &shard;
	}
	if (!e)
		e = search(o, *a, conf, &to, &t, found);
	testgen_shard_free(&shard);
	if (to.out != o->out && to.out[0] == '/' && o->out != to.out)
		free((char *)to.out);
	free(shim);
	return e;
}

int cmd_testgen(int argc, char **argv)
{
	struct options o = { .time = DEFAULT_SECONDS, .depth = DEFAULT_DEPTH, .runs = 3, .threads = 2 };
	const struct cmd_option options[] = {
		{ "type", 't', "TYPE", CMD_TEXT, &o.type, "the type under test, like 'struct queue'; the likeliest one without" },
		{ "globals", 0, NULL, CMD_FLAG, &o.globals, "test the functions that take no object: they share the library's\n"
		  "own variables" },
		{ "list", 'l', NULL, CMD_FLAG, &o.list, "only show what was understood of the library" },
		{ "strategy", 0, "NAME", CMD_TEXT, &o.strategy, "coverage (the default), breadth or random" },
		{ "time", 0, "SECONDS", CMD_NUM, &o.time, "time limit of the search; 60 by default, 0 for none" },
		{ "tests", 'n', "N", CMD_UINT, &o.tests, "at most so many tests" },
		{ "violations", 0, "N", CMD_UINT, &o.violations, "stop after so many" },
		{ "depth", 0, "N", CMD_UINT, &o.depth, "calls in front of the threads, behind the constructor; 3 by default" },
		{ "threads", 0, "N", CMD_UINT, &o.threads, "also tests of three to N threads, at most 4; 2 by default" },
		{ "seed", 's', "S", CMD_UINT, &o.seed, "where random choices start from" },
		{ "without", 0, "RULES", CMD_TEXT, &o.without, "switch pruning rules off: exception, stack, redundant,\n"
		  "interfere, interleave, state, d1, d2, d3, b1, b2 or all,\n"
		  "with commas" },
		{ "conf", 'c', "FILE", CMD_TEXT, &o.conf, "a testgen.conf: what the debug information does not say" },
		{ "header", 0, "FILE", CMD_TEXT, &o.header, "take declarations from this C header" },
		{ "out", 'o', "DIR", CMD_TEXT, &o.out, "directory for the tests; csched-testgen by default" },
		{ "runs", 0, "N", CMD_UINT, &o.runs, "confirm each test by so many runs of the real program; 3 by default" },
		{ "shard", 0, "I/N", CMD_TEXT, &o.shard, "the I-th of N disjoint parts of the tests; csched merge unites them" },
		{ "guard", 0, NULL, CMD_FLAG, &o.guard, "memory that is freed, or lies behind a block, cannot be accessed;\n"
		  "by default only in a second try of each test" },
		{ "no-guard", 0, NULL, CMD_FLAG, &o.no_guard, "no second try" },
		{ "results", 0, NULL, CMD_FLAG, &o.results,
		  "also report results and states that no order of whole calls gives" },
		{ "no-explain", 0, NULL, CMD_FLAG, &o.no_explain, "do not explain the failing runs" },
		FOUND_OPTIONS(&o.found),
		{ 0 },
	};
	const struct cmd_spec spec = {
		.name = "testgen", .usage = "[options] LIBRARY.so", .summary = "Makes concurrent tests of a library.",
		.options = options, .common = &o.common, .min_args = 1, .max_args = 1,
	};
	struct cmd_args args;
	struct api *a = NULL;
	struct api_conf conf = { 0 };
	bool found = false;
	int status;

	if (!cmd_parse(&spec, argc, argv, &args, &status))
		return status;
	err_t e = work(&o, args.v[0], &a, &conf, &found);
	api_free(a);
	api_conf_free(&conf);
	if (e)
		return cmd_fail("testgen", e);
	return o.list ? 0 : found_status(&o.found, found);
}
