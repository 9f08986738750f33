/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every searching command says to the machine that started it: its exit status, and a JUnit file. */
#ifndef CSCHED_CMD_FOUND_H
#define CSCHED_CMD_FOUND_H

#include "analyzer/cmd/cmd.h"

#include "common/err.h"

/*
 * In the command's options: FOUND_OPTIONS(&o.found), in front of the { 0 }. Call found_check() before
 * the search, found_write() with what came of it, and return found_status().
 */
struct found_options {
	bool fail_if_found;
	const char *junit;
};

#define FOUND_OPTIONS(f) \
	{ "fail-if-found", 0, NULL, CMD_FLAG, &(f)->fail_if_found, \
	  "for CI: exit with 1 if a failure was found, with 0 if not" }, \
	{ "junit", 0, "FILE", CMD_TEXT, &(f)->junit, "write the results to FILE as JUnit XML" }

enum found_outcome {
	FOUND_NOTHING, /* searched, no failure */
	FOUND_FAILURE, /* and it counts */
	FOUND_SKIPPED, /* known, or not searched; `text` says why */
	FOUND_ERROR,   /* the search itself went wrong */
};

/* One line of a summary; one <testcase>. Strings may come from the traced program. */
struct found_case {
	const char *suite, *name;
	enum found_outcome outcome;
	double seconds;
	const char *text;        /* the failure in one line, or the reason; or NULL */
	const char *fingerprint; /* of the root cause; or NULL */
	const char *details;     /* trace, how to see it again, output; or NULL */
};

/* Can the JUnit file be written? Asked before hours are spent. */
err_t found_check(const struct found_options *o);
/* Writes --junit, if asked for; all of it or nothing. */
err_t found_write(const struct found_options *o, const char *command, const struct found_case *cases, size_t n);
/* Without --fail-if-found 0 means found and 1 not found: the search is the question. With it the other way about. */
int found_status(const struct found_options *o, bool found);

#endif
