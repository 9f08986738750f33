/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Running tests: traces of parts, interleavings of two, all orders of whole calls. */
#ifndef CSCHED_TESTGEN_LAB_H
#define CSCHED_TESTGEN_LAB_H

#include "analyzer/testgen/seq.h"

/* An interleaving. */
struct candidate {
	struct job_segment segments[JOB_SEGMENTS];
	unsigned nsegments;
	unsigned rank;
	uint64_t place; /* the instructions that the stops are for: equal ones are the same decision in another round */
};
typedef VEC(struct candidate) candidate_list_t;

struct lab {
	const struct api *api;
	struct server server;
	struct seq_pools pools;
	struct seq setup;        /* in front of every prefix: calls that testgen.conf asks for ... */
	unsigned asked;          /* ... so many; then those that make helpers */
	struct seq looks;        /* calls behind both threads that may stumble over what these have left */
	double deadline;         /* monotonic seconds; 0: none */
	bool no_oracle;          /* for tests of the oracle only */
	uint64_t traces, runs, serials;
	double trace_seconds;    /* that the traces took */
	const candidate_list_t *solved; /* orders to be tried first, or NULL */
	bool ends;               /* runs note what they return and leave behind, for lab_compare() */
};

/* What a part does when it runs alone from the prefix's state. */
struct trace {
	struct job_event *events;
	uint32_t nevents, nsteps;
	enum job_end end;
	int32_t status, failed_call;
	uint64_t hash;    /* of the last call's accesses, locks and functions: the paper's M */
	uint64_t shape;   /* which of the last call's arguments are nothing; search_trace() */
	uint64_t state;   /* of the object afterwards */
	bool frees_object; /* the call ends the object it works on */
	bool truncated;
};

err_t lab_trace(struct lab *lab, const struct test *t, enum job_part part, struct trace *out);
void trace_free(struct trace *t);

/* How a job failed, in words, malloc'd: "segmentation fault in queue_pop (queue.c:31)". */
struct failure {
	enum job_end end;
	int status;
	unsigned thread;     /* 1: A, 2: B, ...; 0: the calls before or after */
	uint64_t address;
	uint8_t misuse;      /* enum heap_misuse */
	uint32_t nframes;    /* in the library, innermost first; offsets */
	uint64_t frames[JOB_FRAMES];
	bool outside;        /* the fault itself was in another library, called from frames[0] */
	uint64_t waits[JOB_THREADS]; /* deadlock: places where A, B, ... wait; 0: it does not */
	uint64_t calls[JOB_THREADS]; /* deadlock: the functions that they were in, as called */
	char *said;          /* on standard error, or NULL */
};

void failure_of(const struct job *j, struct failure *out);
void failure_free(struct failure *f);
/* Equal ones are reported once. */
uint64_t failure_print(const struct failure *f);
const char *failure_kind(const struct failure *f);

/* One end of an ordering: a place, and which execution of it by its thread. */
struct lab_place {
	unsigned thread; /* 0: A, 1: B, ... */
	uint32_t offset;
	uint32_t n;      /* from 1; JOB_NEVER: it never comes */
	bool after;
};
struct lab_edge {
	struct lab_place source, target;
};

struct violation {
	struct test test;
	struct failure failure;
	struct job_segment segments[JOB_SEGMENTS];
	unsigned nsegments;
	struct lab_edge edges[JOB_SEGMENTS];
	unsigned nedges;
	unsigned linearisations; /* that were executed, and do not fail */
	bool solved;             /* by one of lab.solved */
	bool race;               /* it does not fail: failure.frames are two accesses that race, of A and of B */
	bool guarded;            /* its heap is a guarded one */
	bool odd_state;          /* lab_compare(): only what is left differs, not what is returned */
	int64_t results[JOB_CALLS]; /* lab_compare(): of the job's calls */
	double seconds;          /* after the start */
	uint64_t number;         /* of the test that showed it */
	/* after writing */
	char *file, *schedule, *report;
	unsigned native_runs, native_failures;
};
void violation_free(struct violation *v);

/* Should a failure of the explored test be taken? The linearisations are executed after that. */
typedef bool lab_wanted(void *arg, const struct failure *f);

/*
 * Explores interleavings of the test's threads; traces: what each does alone. *found: one failed in a way that is wanted
 * and that no linearisation shows; out is filled then.
 */
err_t lab_explore(struct lab *lab, const struct test *t, const struct trace *const *traces,
		  lab_wanted *wanted, void *arg, bool *found, struct violation *out);

/*
 * minimise.c. Drops calls of a violation one at a time, as long as some interleaving of the others fails in the
 * same, wanted way and no linearisation of them fails.
 */
err_t lab_minimise(struct lab *lab, lab_wanted *wanted, void *arg, struct violation *v);

/*
 * Do interleavings of the threads that do not fail return something, or leave the object in a state (state.c), that no
 * linearisation does? *found: one does, each time; out->failure is empty then.
 */
err_t lab_compare(struct lab *lab, const struct test *t, const struct trace *const *traces, bool *found,
		  struct violation *out);

/* Two places, as offsets in the library. */
struct lab_race {
	bool (*first)(void *arg, uint64_t place), (*second)(void *arg, uint64_t place);
	void *arg;
};

/* race.c. Can A stop before an access at the first place, and B make one at the second, which races with it? */
err_t lab_find_race(struct lab *lab, const struct test *t, const struct trace *a, const struct trace *b,
		    const struct lab_race *r, bool *found, struct violation *out);

/* All orders of whole calls, each in a fresh process. *fails: one of them does. *n: executed. */
err_t lab_linearise(struct lab *lab, const struct test *t, unsigned *n, bool *fails);

bool lab_expired(const struct lab *lab);

/* conflict.c. Does b write what a accesses (or either, when both ways are asked for)? */
bool trace_interferes(const struct trace *a, const struct trace *b);
/* Is there a pair of accesses whose lock histories are disjoint? */
bool trace_interleaves(const struct trace *a, const struct trace *b);

/* Interleavings of n threads worth trying, best first. */
void lab_candidates(const struct trace *const *traces, unsigned n, unsigned most, candidate_list_t *out);
/* The same of two. */
void trace_candidates(const struct trace *a, const struct trace *b, unsigned most, candidate_list_t *out);

#endif
