/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call sequences, the values they are made with, and tests made of them. */
#ifndef CSCHED_TESTGEN_SEQ_H
#define CSCHED_TESTGEN_SEQ_H

#include "analyzer/testgen/server.h"
#include "common/strbuf.h"

#define SEQ_CALLS 12

enum seq_value_kind {
	SEQ_NUMBER, SEQ_REAL, SEQ_TEXT, SEQ_BUFFER, SEQ_STUB, SEQ_STRING,
	SEQ_SHARED, /* the object under test */
	SEQ_LOCAL,  /* the result of call `number` of the same sequence */
	SEQ_OUT,    /* a word that is filled, and then the call's result */
	SEQ_PLACE,  /* memory of `number` bytes that is initialised, and then the call's result */
};

struct seq_value {
	enum seq_value_kind kind;
	int64_t number;
	double real;
	const char *text; /* lives as long as the pools */
};

struct seq_call {
	int function; /* index in api.functions */
	unsigned nargs;
	struct seq_value args[API_PARAMS];
};

struct seq {
	struct seq_call calls[SEQ_CALLS];
	unsigned n;
};

/* The shared object is what call `object_call` of the prefix makes. */
struct test {
	struct seq prefix, a, b, post;
	unsigned object_call;
};

/* What sequences are made of. */
struct seq_pools {
	const struct api *api;
	const struct api_conf *conf;
	int object;
	uint64_t seed;
};

typedef VEC(struct seq) seq_list_t;

/* Sequences that make an object; the last call's result is it. */
void seq_roots(const struct seq_pools *p, int object, unsigned most, seq_list_t *out);
/* Sequences whose last call is this function with the shared object as its own: at most so many. */
void seq_moves(const struct seq_pools *p, int function, unsigned most, seq_list_t *out);
/* The destructor's call on the shared object; false: there is none. */
bool seq_ending(const struct seq_pools *p, struct seq *out);
/* False: it would be too long. */
bool seq_append(struct seq *to, const struct seq *more);
unsigned test_calls(const struct test *t);
/* Puts a test into a job (calls, text); the caller chooses mode, order and segments. False: too large. */
bool test_load(const struct api *a, const struct test *t, struct job *j);
/* Index in job.calls of the first call of a part. */
unsigned test_first(const struct test *t, enum job_part part);
/* "queue_push(q, 1)", malloc'd. */
char *seq_call_text(const struct api *a, const struct seq *s, unsigned i);
char *seq_text(const struct api *a, const struct seq *s);

#endif
