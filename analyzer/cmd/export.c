/* SPDX-License-Identifier: GPL-2.0-or-later */
/* csched export: a trace for other tools. */
#include "analyzer/cmd/export.h"

#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/confined.h"
#include "analyzer/cmd/follow.h"
#include "common/json.h"
#include "common/newfile.h"

#include <stdio.h>

struct options {
	const char *chrome, *core;
	struct cmd_common common;
};

static void print_json(const struct options *o)
{
	struct json j = { 0 };

	json_object(&j, NULL);
	json_int(&j, "schema", CMD_JSON_SCHEMA);
	json_str(&j, "chrome", o->chrome);
	json_str(&j, "core", o->core);
	json_end(&j);
	json_print(&j, stdout);
}

static err_t write_chrome(FILE *f, void *t)
{
	return export_chrome(f, t);
}

static err_t write_core(FILE *f, void *explanation)
{
	struct explanation *e = explanation;

	return export_core(f, e->t, e->run);
}

/* Memory at the failure is not in the trace: the machine has to come there. */
static err_t write_core_of(const char *path, const char *file)
{
	struct explain_options x;
	struct explanation *e;

	explain_options_init(&x);
	TRY(follow_to_end(path, &x, &e));
	follow_quiet();
	err_t bad = newfile_write(file, NEWFILE_GIVEN, 0600, write_core, e);
	explanation_free(e);
	return bad;
}

static err_t export(const char *path, const struct options *o)
{
	struct trc *t;

	TRY(trc_open(path, 0, &t));
	err_t e = o->chrome ? newfile_write(o->chrome, NEWFILE_GIVEN, 0666, write_chrome, t) : NULL;
	trc_close(t);
	if (!e && o->core)
		e = write_core_of(path, o->core);
	if (!e && o->common.json)
		print_json(o);
	return e;
}

struct call {
	const char *command, *path;
	const struct options *o;
};

static int export_confined(void *arg)
{
	struct call *c = arg;

	return cmd_fail(c->command, export(c->path, c->o));
}

static err_t hold(const struct options *o)
{
	if (!o->chrome && !o->core)
		return err_new(ERR_USAGE, "needs --chrome=FILE or --core=FILE");
	if (o->chrome)
		TRY(newfile_hold(o->chrome, NEWFILE_GIVEN, 0666));
	return o->core ? newfile_hold(o->core, NEWFILE_GIVEN, 0600) : NULL;
}

static int run(const char *command, const char *path, const struct options *o)
{
	int status = cmd_fail(command, hold(o));

	return status ? status : confined_run(&(struct confined){ .command = command, .input = path }, export_confined,
					      &(struct call){ command, path, o });
}

int export_core_of(const char *command, const char *path, const char *file)
{
	return run(command, path, &(struct options){ .core = file });
}

int cmd_export(int argc, char **argv)
{
	struct options o = { 0 };
	const struct cmd_option options[] = {
		{ "chrome", 0, "FILE", CMD_TEXT, &o.chrome, "threads and the locks they held and waited for, as a Chrome trace" },
		{ "core", 0, "FILE", CMD_TEXT, &o.core, "memory and registers at the end of the run, as a core dump" },
		EPOCH_OPTION,
		CONFINED_OPTIONS,
		{ 0 },
	};
	const struct cmd_spec spec = {
		.name = "export", .usage = "--chrome=FILE|--core=FILE TRACE", .summary = "Writes a trace in formats of other tools.",
		.options = options, .common = &o.common, .min_args = 1, .max_args = 1,
	};
	struct cmd_args args;
	int status;

	if (!cmd_parse(&spec, argc, argv, &args, &status))
		return status;
	return run("export", args.v[0], &o);
}
