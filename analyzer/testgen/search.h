/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the systematic searches share: prefixes, pairs of calls, what was seen. */
#ifndef CSCHED_TESTGEN_SEARCH_H
#define CSCHED_TESTGEN_SEARCH_H

#include "analyzer/term.h"
#include "analyzer/testgen/testgen.h"

struct prefix {
	struct seq s;
	unsigned object_call;
	bool first; /* what leads there interferes with the crashing call */
};
typedef VEC(struct prefix) prefixes_t;

/* Two calls from the same state. */
struct pair {
	const struct prefix *prefix;
	const struct seq *move_a, *move_b;
	const struct trace *a, *b;
	unsigned rank, number;
	uint64_t coverage, states; /* what the two calls lead to */
	uint64_t shaped; /* coverage, and which arguments are nothing: taking a callback away runs the code that sets one */
};
typedef VEC(struct pair) pairs_t;

struct search {
	struct lab *lab;
	const struct testgen_options *o;
	struct testgen_result *r;
	seq_list_t moves;
	prefixes_t roots;
	VEC(uint64_t) pairs, shaped; /* coverage */
	VEC(uint64_t) states;
	VEC(uint64_t) prints; /* failures found */
	struct progress progress;
	char where[64];       /* for the progress line: "level 1, prefix 2 of 7" */
	double began;
	uint64_t skipped;     /* tests that an earlier run of the shard explored */
	bool done;
	bool later;           /* reproduce: the crashing call comes behind both threads */
};

bool search_on(const struct search *s, enum testgen_rule rule);
void search_pruned(struct search *s, enum testgen_rule rule);
void search_show(struct search *s);
/* The trace of a call from a prefix. A function that ends the process or does not return is left out from then on. */
err_t search_trace(struct search *s, const struct prefix *p, const struct seq *move, struct trace *out);
struct test search_test(const struct prefix *p, const struct seq *a, const struct seq *b);

/* pairs.c: takes the pair into the list unless a rule prunes it. Nothing is copied. */
void search_consider(struct search *s, struct pair pair, pairs_t *list);
/* Explores the tests of the list, the most promising first. */
err_t search_pairs(struct search *s, pairs_t *list);
bool search_seen(const uint64_t *v, size_t n, uint64_t x);

/* autocontest.c: call sequences by coverage; ends when nothing new comes, or s->done. */
err_t search_sequences(struct search *s);

#endif
