/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Searching for tests of a library that fail, and what comes of it. */
#ifndef CSCHED_TESTGEN_TESTGEN_H
#define CSCHED_TESTGEN_TESTGEN_H

#include "analyzer/testgen/lab.h"
#include "analyzer/testgen/solve.h"

enum testgen_rule {
	TESTGEN_EXCEPTION = 1,   /* calls that fail alone */
	TESTGEN_STACK = 2,       /* reproduce: calls that do not come to the point of failure */
	TESTGEN_REDUNDANT = 4,   /* pairs whose coverage was seen */
	TESTGEN_INTERFERE = 8,   /* pairs that share nothing that is written */
	TESTGEN_INTERLEAVE = 16, /* pairs that locks keep apart */
	TESTGEN_STATE = 32,      /* prefixes that lead to a state that was seen */
	/* of sequences by coverage: what is not extended ... */
	TESTGEN_D1 = 64,         /* it fails */
	TESTGEN_D2 = 128,        /* it changes neither coverage nor state */
	TESTGEN_D3 = 256,        /* another one reached the state, and covers as much */
	/* ... and what gets no further extension */
	TESTGEN_B1 = 512,        /* one of its extensions covers more from the same state */
	TESTGEN_B2 = 1024,       /* another one has come to its state meanwhile, and covers as much */
	TESTGEN_ALL = 2047,
};
#define TESTGEN_RULES 11
/* "exception", ...; NULL ends the list. In the order of the bits. */
extern const char *const testgen_rule_names[];

struct testgen_result;

struct testgen_options {
	int object;
	const char *strategy;  /* "coverage", "breadth" or "random"; reproduce: NULL */
	const char *out;       /* directory */
	uint64_t seed, most_tests, most_violations;
	unsigned depth;        /* calls of a prefix behind the constructor */
	unsigned threads;      /* of a test, at most */
	double seconds;
	unsigned rules;        /* of enum testgen_rule, those that are on */
	unsigned native_runs;
	const char *shim;      /* NULL: nothing is confirmed natively */
	bool explain, quiet;
	bool guard_too;        /* where nothing fails, once more with a guarded heap */
	bool results;          /* look for what is not linearisable, too */
	/* reproduce: the call that crashes must be one of this function; NULL: any */
	const char *crashing;
	/* Is this trace of the crashing call near enough to the stack? */
	bool (*reaches)(void *arg, const struct trace *t);
	lab_wanted *wanted;
	void *arg;
	const struct lab_race *race; /* a data race is looked for, not a failure; NULL: a failure */
	const struct solve_failure *solve; /* the failure as a condition; NULL: nothing is solved for */
	/* a shard: its part, from 1, of so many (0: everything), and how many of its tests were explored earlier */
	uint32_t part, parts;
	uint64_t skip;
	/* after each test; NULL: not asked for */
	err_t (*save)(void *save_arg, struct lab *lab, struct testgen_result *r);
	void *save_arg;
};

struct testgen_result {
	VEC(struct violation) violations;
	VEC(struct violation) odd; /* do not fail, and are not linearisable: lab_compare() */
	uint64_t tests;        /* whose interleavings were explored */
	uint64_t groups;       /* of them with more than two threads */
	uint64_t considered;   /* pairs of calls that were looked at */
	uint64_t pruned[TESTGEN_RULES];
	uint64_t sequences;    /* that were chosen by their coverage */
	uint64_t covered;      /* different traces of calls in them */
	uint64_t jobs;
	uint64_t orders;       /* interleavings executed until the first violation was found, or all */
	/* with options.solve: questions to the solver, tests it was asked about, those for which it had an order */
	uint64_t questions, asked, answered;
	uint64_t traces;       /* of them: call sequences in one thread, stepped through ... */
	double trace_seconds;  /* ... which took so long */
	double seconds, first_seconds;
	unsigned depth;        /* reached */
	bool exhausted;        /* everything within the limits was tried */
	char *sequential;      /* a call that fails alone in a way that is wanted: "log(shared, NULL)" */
	struct test sequential_test;
	VEC(char *) remarks;   /* functions that were left out on the way, and why */
};

err_t testgen_search(struct lab *lab, const struct testgen_options *o, struct testgen_result *r);
/* Is this test another shard's, or was it explored by an earlier run of this one? *skipped counts the latter. */
bool testgen_is_elsewhere(const struct testgen_options *o, const struct api *a, const struct test *t, uint64_t *skipped);
/* Algorithm 1 of ConTeGe. */
err_t testgen_random(struct lab *lab, const struct testgen_options *o, struct testgen_result *r);
/* After lab_explore() found nothing: the same test's results, when they are asked for. */
err_t testgen_compare(struct lab *lab, const struct testgen_options *o, const struct test *t,
		      const struct trace *const *traces, double began, struct testgen_result *r);
void testgen_result_free(struct testgen_result *r);

/* Writes test, schedule and report, and confirms the failure on the real program. */
err_t testgen_write(struct lab *lab, const struct testgen_options *o, struct violation *v, unsigned number);
/* The same of a test that is not linearisable: test and schedule, nothing is run. */
err_t testgen_write_odd(struct lab *lab, const struct testgen_options *o, struct violation *v, unsigned number);
/* "counter_next(shared) returns 1; ...", malloc'd. */
char *testgen_odd_text(const struct api *a, const struct violation *v);
/* "segmentation fault in queue_pop (queue.c:31)", malloc'd. */
char *testgen_failure_text(const struct api *a, const struct failure *f);

#endif
