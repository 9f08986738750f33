/* Updates that were lost, anywhere in a run: lost.c. */
#ifndef CSCHED_EXPLAIN_LOST_H
#define CSCHED_EXPLAIN_LOST_H

#include "analyzer/explain/explain.h"

struct lost_word {
	uint64_t address;
	uint32_t size;
};

/* What is known of the updates of some words. */
struct lost {
	uint64_t times;          /* that a thread wrote over what it had not seen; 0: never, the rest says nothing */
	size_t word;             /* the first one was of this word, ... */
	uint32_t thread, other;  /* ... by this thread, over what this one had written */
	struct ext_middle around;
};

/* Executes the run once more to see. stop, unless NULL: true ends that, and nothing is known. */
err_t lost_find(struct mach_run *run, const struct lost_word *words, size_t n, bool (*stop)(void *), void *stop_arg,
		struct lost *out);

#endif
