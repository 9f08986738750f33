/*
 * csched run: become the program, with the shim in it. Because this process
 * itself turns into the program, exit status, signals, process id and terminal
 * are the program's own. (With --json it is a child: see run_report.c.)
 */
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/run_report.h"
#include "analyzer/cmd/shim_flags.h"
#include "analyzer/hunt/files.h"
#include "analyzer/launch.h"
#include "common/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is said to us, not to the shim. */
struct own_flags {
	bool quiet;
	char *no_dir; /* why no trace can be kept in the directory that was named; or NULL */
	struct cmd_common common;
};

struct setting {
	const struct shim_flag *flag;
	struct strbuf *options;
	struct own_flags *own;
	struct cmd_call call;
};

/* The directory is the one that we see: the program and its children may go elsewhere before they start one. */
static void set_dir(const struct setting *s, const char *value)
{
	char *absolute = launch_absolute(value);
	err_t e = files_make_dirs(absolute);

	if (!e && access(absolute, W_OK | X_OK))
		e = err_errno("%s", absolute);
	free(s->own->no_dir);
	s->own->no_dir = e ? xstrdup(e->msg) : NULL;
	err_free(e);
	launch_option(s->options, s->flag->key, absolute);
	free(absolute);
}

static err_t set_flag(void *arg, const char *option, const char *value)
{
	const struct setting *s = arg;

	/* A flag without argument turns over what is the default. */
	if (s->flag->type == BOOL)
		value = !strncmp(option, "no-", 3) ? "0" : "1";
	if (!shim_flag_takes(s->flag, value))
		return err_new(ERR_USAGE, "--%s: '%s' is not %s", option, value, s->flag->values);
	if (!strcmp(s->flag->key, "quiet"))
		s->own->quiet = true;
	if (!strcmp(s->flag->key, "dir"))
		set_dir(s, value);
	else
		launch_option(s->options, s->flag->key, value);
	return NULL;
}

static char *flag_name(const struct shim_flag *f)
{
	bool on = f->type == BOOL && f->dflt && !strcmp(f->dflt, "1");
	char *name = xasprintf("%s%s", on ? "no-" : "", f->key);

	for (char *c = name; *c; c++)
		if (*c == '_')
			*c = '-';
	return name;
}

static char *flag_help(const struct shim_flag *f)
{
	if (f->type == BOOL && f->dflt && !strcmp(f->dflt, "1"))
		return xasprintf("do not %s", f->help);
	if (f->type == BOOL || !f->dflt)
		return xstrdup(f->help);
	return xasprintf("%s\n(default: %s)", f->help, f->dflt);
}

static int become(const char *shim, struct strbuf *options, const struct own_flags *own,
		  char **command)
{
	bool alone;
	char *obstacle = launch_obstacle(command[0], &alone);
	err_t e = alone ? NULL : launch_set_environment(shim, options->s ? options->s : "");
	int status = 0;

	launch_suit(command[0]);
	/* Who asked for silence still has to know that there will be no trace; of a directory the shim speaks itself. */
	const char *unrecorded = obstacle ? obstacle : own->quiet ? own->no_dir : NULL;
	if (!e && unrecorded)
		fprintf(stderr, "csched run: not recorded: %s\n", unrecorded);
	if (!e && own->common.json)
		e = run_and_report(command, obstacle, &status);
	else if (!e)
		status = launch_exec("csched run", command);
	free(obstacle);
	return e ? cmd_fail("run", e) : status;
}

static int run(struct cmd_option *options, struct strbuf *text, struct own_flags *own, int argc,
	       char **argv)
{
	const struct cmd_spec spec = {
		.name = "run",
		.usage = "[options] [--] PROGRAM [ARGUMENT...]",
		.summary = "Runs PROGRAM and records it. Ends exactly as PROGRAM ends.",
		.more = "The trace is a directory PROGRAM.PID.csched; by default it is kept only\n"
			"when the run failed. Without csched run:\n"
			"  LD_PRELOAD=libcsched.so CSCHED_OPTIONS=key=value:key=value PROGRAM\n"
			"PROGRAM not found: status 127; not executable: 126.\n"
			"With --json the last line on standard output says how the program ended,\n"
			"and which traces it left.\n",
		.options = options, .common = &own->common, .min_args = 1, .max_args = CMD_ANY, .command_line = true,
	};
	struct cmd_args args;
	int status;
	char *shim;

	if (!cmd_parse(&spec, argc, argv, &args, &status))
		return status;
	status = cmd_fail("run", launch_find_shim(&shim));
	if (status)
		return status;
	status = become(shim, text, own, args.v);
	free(shim);
	return status;
}

int cmd_run(int argc, char **argv)
{
	struct cmd_option options[SHIM_NFLAGS + 2] = { { 0 } };
	struct setting settings[SHIM_NFLAGS];
	char *names[SHIM_NFLAGS], *helps[SHIM_NFLAGS];
	struct strbuf text = { 0 };
	struct own_flags own = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < SHIM_NFLAGS; i++) {
		const struct shim_flag *f = &shim_flags[i];

		names[i] = flag_name(f);
		helps[i] = flag_help(f);
		settings[i] = (struct setting){ f, &text, &own, { set_flag, &settings[i] } };
		options[n++] = (struct cmd_option){ names[i], !strcmp(f->key, "quiet") ? 'q' : 0,
						    f->type == BOOL ? NULL : f->values, CMD_CALL,
						    &settings[i].call, helps[i] };
		if (!strcmp(f->key, "dir"))
			options[n++] = (struct cmd_option){ "out", 'o', f->values, CMD_CALL,
							    &settings[i].call,
							    "the same as --dir" };
	}
	int status = run(options, &text, &own, argc, argv);
	for (size_t i = 0; i < SHIM_NFLAGS; i++) {
		free(names[i]);
		free(helps[i]);
	}
	strbuf_free(&text);
	free(own.no_dir);
	return status;
}
