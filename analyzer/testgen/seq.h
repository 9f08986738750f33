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
	SEQ_PREFIX, /* the result of call `number` of the prefix */
	SEQ_LENGTH, /* how long argument `number` of the same call is */
	SEQ_BLOCK,  /* a structure with the values of variant `number`, or a pointer to one; without known members: zeros */
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

#define TEST_NO_OBJECT UINT32_MAX

/* The shared object is what call `object_call` of the prefix makes; TEST_NO_OBJECT: the library's own variables. */
struct test {
	struct seq prefix;
	union {
		struct seq part[JOB_THREADS]; /* of each thread; without calls: there is no such thread */
		struct { struct seq a, b; };
	};
	struct seq post;
	unsigned object_call;
};

/* An object that the functions under test work on as well, made in the prefix: both threads can use it. */
struct seq_helper {
	int object;
	unsigned call; /* of the prefix */
};
#define SEQ_HELPERS 3

/* What sequences are made of. */
struct seq_pools {
	const struct api *api;
	const struct api_conf *conf;
	int object;
	uint64_t seed;
	struct seq_helper helpers[SEQ_HELPERS];
	unsigned nhelpers;
};

typedef VEC(struct seq) seq_list_t;

/* Sequences that make an object; the last call's result is it. An empty one for the library's own variables. */
void seq_roots(const struct seq_pools *p, int object, unsigned most, seq_list_t *out);
/* Sequences whose last call is this function with the shared object as its own: at most so many. */
void seq_moves(const struct seq_pools *p, int function, unsigned most, seq_list_t *out);
/* Appends the calls that make helpers of the functions of the type under test to what stands in front of every prefix. */
void seq_helpers(struct seq_pools *p, struct seq *setup);
/* The destructor's call on the shared object; false: there is none. */
bool seq_ending(const struct seq_pools *p, struct seq *out);
/* What SEQ_LENGTH stands for in this call. */
int64_t seq_length(const struct seq_call *c, int64_t of);
/* Does the caller give it memory for what it returns? */
bool seq_result_in_memory(const struct api *a, const struct api_function *f);
/* Is there a 0 behind its arguments, of which there are a variable number? */
bool seq_needs_end(const struct api_function *f);
/* Calls on the shared object that look at what the threads have left. */
void seq_looks(const struct seq_pools *p, struct seq *out);
/* False: it would be too long. */
bool seq_append(struct seq *to, const struct seq *more);
unsigned test_calls(const struct test *t);
unsigned test_threads(const struct test *t);
/* The part's calls. */
struct seq *test_part(struct test *t, enum job_part part);
const struct seq *test_part_of(const struct test *t, enum job_part part);
/* Puts a test into a job (calls, text); the caller chooses mode, order and segments. False: too large. */
bool test_load(const struct api *a, const struct test *t, struct job *j);
/* Index in job.calls of the first call of a part. */
unsigned test_first(const struct test *t, enum job_part part);
/* "queue_push(q, 1)", malloc'd. */
char *seq_call_text(const struct api *a, const struct seq *s, unsigned i);
char *seq_text(const struct api *a, const struct seq *s);

#endif
