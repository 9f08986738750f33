/*
 * What a subcommand is, and the helpers all of them share.
 *
 * A command is a function `int cmd_NAME(int argc, char **argv)` in
 * cmd/NAME.c, argv[0] being its own name, and a row in the table of
 * analyzer/csched.c. It returns the exit status promised in csched(1):
 *
 *   0 answered   1 no answer (says why)   2 usage   3 unreadable or corrupt input
 *   4 internal error
 *
 * Its options live in one table from which both the parser and --help work:
 *
 *	struct { bool all; const char *thread; struct cmd_common common; } o = { 0 };
 *	const struct cmd_option options[] = {
 *		{ "all", 'a', NULL, CMD_FLAG, &o.all, "show everything" },
 *		{ "thread", 't', "ID", CMD_TEXT, &o.thread, "only thread ID" },
 *		{ 0 },
 *	};
 *	const struct cmd_spec spec = {
 *		.name = "dump", .usage = "[options] TRACE", .summary = "...",
 *		.options = options, .common = &o.common, .min_args = 1, .max_args = 1,
 *	};
 *	struct cmd_args args;
 *	int status;
 *	if (!cmd_parse(&spec, argc, argv, &args, &status))
 *		return status;
 */
#ifndef CSCHED_ANALYZER_CMD_H
#define CSCHED_ANALYZER_CMD_H

#include "analyzer/term.h"
#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CMD_JSON_SCHEMA 1 /* "schema" of every --json answer */

enum cmd_option_kind {
	CMD_FLAG, /* to: bool * */
	CMD_TEXT, /* to: const char ** (points into argv) */
	CMD_UINT, /* to: uint64_t *; decimal or 0x... */
	CMD_NUM,  /* to: double *; not negative */
	CMD_CALL, /* to: struct cmd_call *; may be given more than once */
};

/* For options that mean something more: set() gets the argument (NULL: a flag). */
struct cmd_call {
	err_t (*set)(void *arg, const char *option, const char *value);
	void *arg;
};

struct cmd_option {
	const char *name; /* without the dashes; NULL ends the table */
	char letter;      /* short form, or 0 */
	const char *arg;  /* name of the argument in the help; NULL: a flag */
	enum cmd_option_kind kind;
	void *to;
	const char *help; /* one line, or more separated by \n */
};

/* --json and --color, which every command takes. */
struct cmd_common {
	bool json;
	enum term_when color;
};

struct cmd_spec {
	const char *name;    /* "info" */
	const char *usage;   /* after the name: "[options] TRACE" */
	const char *summary; /* one sentence */
	const char *more;    /* help text after the options, or NULL */
	const struct cmd_option *options; /* or NULL */
	struct cmd_common *common;        /* NULL: the command has its own --json, --color */
	size_t min_args, max_args;        /* max_args 0 means none; CMD_ANY: no limit */
	/* The first argument that is no option, or --, ends the options: what
	 * follows is another program's command line. */
	bool command_line;
	/* Options that another room parses: asked first. extra_help is printed
	 * with the options. */
	err_t (*extra)(void *arg, int argc, char **argv, int *i, bool *taken);
	void *extra_arg;
	const char *extra_help;
};
#define CMD_ANY ((size_t)-1)

struct cmd_args {
	char **v; /* NULL-terminated; argv itself, reordered */
	size_t n;
	bool dashes; /* "--" stood before v[0] or, without command_line, anywhere */
};

/*
 * Parses argv. False: *status is what the command returns now (--help was
 * printed, or a usage error was reported).
 */
bool cmd_parse(const struct cmd_spec *spec, int argc, char **argv, struct cmd_args *args,
	       int *status);

/* Prints "csched NAME: MESSAGE", frees e, returns the exit status. NULL: 0. */
int cmd_fail(const char *name, err_t e);

/* The terminal that standard output is, after --color and NO_COLOR. */
struct term cmd_term(const struct cmd_common *common);

/* ---- the commands ---- */

typedef int cmd_function(int argc, char **argv);

cmd_function cmd_run, cmd_info, cmd_dump, cmd_replay, cmd_trace, cmd_solve, cmd_explain,
	cmd_hunt, cmd_explore, cmd_pack, cmd_save, cmd_doctor, cmd_debug, cmd_testgen, cmd_reproduce,
	cmd_merge, cmd_test, cmd_export;

#endif
