/* csched trace: the symbolic traces of a recorded run, as .sym text. */
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/confined.h"
#include "analyzer/cmd/follow.h"
#include "analyzer/cmd/redacted.h"

#include "common/json.h"
#include "common/newfile.h"

#include <stdio.h>

struct options {
	uint64_t window;
	const char *out;
	struct cmd_common common;
};

static void print_json(const struct explanation *e)
{
	const struct ext_result *x = e->extracted;
	struct json j = { 0 };

	json_object(&j, NULL);
	json_int(&j, "schema", CMD_JSON_SCHEMA);
	json_uint(&j, "threads", x->trace->nthreads);
	json_uint(&j, "variables", x->trace->nvars);
	json_uint(&j, "shared_locations", x->locations);
	json_uint(&j, "shared_events", x->total);
	json_uint(&j, "accesses", x->accesses);
	json_uint(&j, "window_from", x->from);
	json_array(&j, "events");
	for (size_t i = 0; i < x->trace->nthreads; i++) {
		const struct sym_thread *t = &x->trace->threads[i];

		json_object(&j, NULL);
		json_str(&j, "thread", t->id);
		json_uint(&j, "events", t->nevents);
		json_uint(&j, "conditions", t->nconds);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	json_print(&j, stdout);
}

static err_t write_sym(FILE *f, void *trace)
{
	return sym_write(f, trace);
}

static err_t print_sym(const struct explanation *e, const char *path)
{
	if (path)
		return newfile_write(path, NEWFILE_GIVEN, 0666, write_sym, e->extracted->trace);
	/* main() looks whether it was written */
	err_free(sym_write(stdout, e->extracted->trace));
	return NULL;
}

static err_t trace(const char *path, struct options *o)
{
	struct explain_options x;
	struct explanation *e;

	if (redacted_is(path))
		return o->common.json ? err_new(ERR_USAGE, "%s is redacted: --json needs the whole trace",
						path) :
					redacted_sym(path, o->out);
	explain_options_init(&x);
	x.window = o->window;
	x.whole = true;
	TRY(follow_to_end(path, &x, &e));
	err_t bad = explain_extract(e, &x);
	if (!bad && o->common.json)
		print_json(e);
	if (!bad && (!o->common.json || o->out))
		bad = print_sym(e, o->out);
	explanation_free(e);
	return bad;
}

struct call {
	const char *path;
	struct options *o;
};

static int trace_confined(void *arg)
{
	struct call *c = arg;

	return cmd_fail("trace", trace(c->path, c->o));
}

int cmd_trace(int argc, char **argv)
{
	struct options o = { 0 };
	const struct cmd_option options[] = {
		{ "window", 'w', "N", CMD_UINT, &o.window, "keep only the last N shared events" },
		{ "out", 'o', "FILE", CMD_TEXT, &o.out, "write the .sym text to FILE" },
		EPOCH_OPTION,
		CONFINED_OPTIONS,
		{ 0 },
	};
	const struct cmd_spec spec = {
		.name = "trace", .usage = "[options] TRACE",
		.summary = "Prints the symbolic traces of a recorded run; see csched-sym(5).",
		.options = options, .common = &o.common, .min_args = 1, .max_args = 1,
	};
	struct cmd_args args;
	int status;

	if (!cmd_parse(&spec, argc, argv, &args, &status))
		return status;
	status = cmd_fail("trace", o.out ? newfile_hold(o.out, NEWFILE_GIVEN, 0666) : NULL);
	return status ? status : confined_run(&(struct confined){ .command = "trace", .input = args.v[0] }, trace_confined,
					      &(struct call){ args.v[0], &o });
}
