/* SPDX-License-Identifier: GPL-2.0-or-later */
/* csched test: the tests of a suite, what was found in each, and what of that was known before. */
#ifndef CSCHED_CMD_TEST_H
#define CSCHED_CMD_TEST_H

#include "analyzer/cmd/found.h"
#include "analyzer/hunt/hunt.h"
#include "common/vec.h"

#define TEST_PRINT 40 /* "1c6fbe0b6163", or "point-" and 16 digits where the cause was not found */

struct test_failure {
	char fingerprint[TEST_PRINT];
	char *text, *trace;
	const char *known; /* why it does not count; NULL: it is new */
	size_t first;      /* the test in which this fingerprint came first */
};

struct test_case {
	char *name, *directory;  /* directory NULL: the current one */
	VEC(char *) argv, env;   /* NULL-terminated */
	const char *skipped;     /* why it is not run, or NULL */
	char *error;             /* why it could not be run, or NULL */
	uint64_t runs, timeouts;
	double seconds;
	bool always;             /* also without perturbation */
	VEC(struct test_failure) failures;
};

struct test_suite {
	VEC(struct test_case) tests;
	const char *kind; /* "ctest", "meson", "googletest", "command" */
};

/* test_find.c: which tests the command runs. */
err_t test_find(char **argv, struct test_suite *out);
void test_suite_free(struct test_suite *s);

/* test_known.c */
struct test_known_entry {
	char *fingerprint, *reason;
	unsigned line;
	bool expired, used;
	char until[11]; /* "2027-01-31"; "": a baseline */
};
struct test_known {
	VEC(struct test_known_entry) v;
};
/* Lines of "FINGERPRINT YYYY-MM-DD REASON"; what is wrong is named with its line. `today` as "YYYY-MM-DD". */
err_t test_known_suppressions(struct test_known *k, const char *path, const char *today);
/* Lines of "FINGERPRINT TEST: TEXT", as --write-baseline writes them. */
err_t test_known_baseline(struct test_known *k, const char *path);
err_t test_known_write(const struct test_suite *s, const char *path);
/* Why this one does not count, or NULL. */
const char *test_known_reason(struct test_known *k, const char *fingerprint);
void test_known_free(struct test_known *k);

/* test_answer.c. Returns how many new failures there are. */
size_t test_new_failures(const struct test_suite *s);
void test_print(const struct test_suite *s, const struct test_known *k);
void test_print_json(const struct test_suite *s, const struct test_known *k);
err_t test_junit(const struct found_options *o, const struct test_suite *s);

#endif
