/*
 * The report options that `csched explain` and `csched solve` share, and the
 * one function that writes what they ask for.
 *
 *   --html FILE --dot FILE --sarif FILE   besides the report on the terminal
 *   --json --markdown                     instead of it, on standard output
 *   --redact --color=WHEN --width=N
 */
#ifndef CSCHED_REPORT_OPTIONS_H
#define CSCHED_REPORT_OPTIONS_H

#include "analyzer/report/report.h"
#include "analyzer/term.h"

struct report_options {
	const char *html, *dot, *sarif; /* file names from argv, or NULL; "-": stdout */
	bool json, markdown, redact;
	enum term_when color;
	unsigned width; /* 0: the terminal's, or 80 */
};

/* Help lines for the commands' --help text, each ending in a newline. */
extern const char report_options_help[];

void report_options_init(struct report_options *o);
/*
 * Fits `extra` of struct cmd_spec: arg is the struct report_options.
 * Looks at argv[*i]. One of ours: takes it (and its argument, as --html FILE or
 * --html=FILE), moves *i past it and sets *taken. Not ours: *taken is false.
 */
err_t report_options_parse(void *arg, int argc, char **argv, int *i, bool *taken);

/* Options that cannot be met together: two reports in one stream are neither. */
err_t report_options_check(const struct report_options *o);

/* Opens the files that are to be written, for a process that is going to be confined (common/newfile.h). */
err_t report_options_hold(const struct report_options *o);

/* Writes every report that was asked for; r->redact is set from the options. */
err_t report_emit(const struct report_options *o, struct report *r);

#endif
