/* What the commands that look for schedules share: their options and their meaning. */
#ifndef CSCHED_CMD_SOLVING_H
#define CSCHED_CMD_SOLVING_H

#include "analyzer/cmd/cmd.h"
#include "analyzer/report/report_options.h"
#include "analyzer/schedule/schedule.h"

struct solving {
	uint64_t window, alternates;
	double timeout;
	const char *model;
};

/* Of every command whose reports show source lines (common/door.h). */
#define SOURCE_ROOT_OPTION \
	{ "source-root", 0, "DIR", CMD_CALL, &source_root_option, \
	  "also show sources below DIR; may be given more than once" }
extern struct cmd_call source_root_option;

/* Rows of a command's option table; what the window is differs. */
#define SOLVING_OPTIONS(s, window_help) \
	{ "window", 'w', "N", CMD_UINT, &(s)->window, window_help }, \
	{ "alternates", 0, "N", CMD_UINT, &(s)->alternates, \
	  "look for N passing orders (default 1)" }, \
	{ "timeout", 0, "SECONDS", CMD_NUM, &(s)->timeout, \
	  "stop after SECONDS and report what is known" }, \
	{ "memory-model", 0, "MODEL", CMD_TEXT, &(s)->model, \
	  "sc (default) or tso: x86 store buffers" }, \
	SOURCE_ROOT_OPTION

/*
 * The command line of a command that reports: one argument, the options of the spec and those of the
 * report. The argument; NULL: *status is what the command returns now. program: takes what is given after --, a program and
 * its arguments, *program NULL when there is none; NULL: the command takes no program.
 */
const char *solving_parse(struct cmd_spec *spec, struct report_options *report, int argc, char **argv,
			  char ***program, int *status);
/* All of *o, defaults included. */
err_t solving_options(const struct solving *s, struct sched_options *o);
uint64_t solving_peak_bytes(void);

#endif
