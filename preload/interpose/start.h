/* How a new thread learns what to run; shared by pthread and C11 threads. */
#ifndef CSCHED_PRELOAD_INTERPOSE_START_H
#define CSCHED_PRELOAD_INTERPOSE_START_H

#include <stdint.h>

struct start {
	void (*routine)(void); /* of whatever type the caller gave */
	void *arg;
};

struct start *start_new(void); /* NULL: no memory; then the thread is adopted later */
void start_free(struct start *s);
void start_begin(struct start *s, struct start *copy); /* first thing in the thread; frees s */
void start_end(void *site);
void start_memory(uint64_t *start, uint64_t *end); /* where all of this is kept */

#endif
