/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between observe.c, which notes what happens, and observe_build.c, which makes a trace of it. */
#ifndef CSCHED_EXPLORE_OBSERVE_INTERNAL_H
#define CSCHED_EXPLORE_OBSERVE_INTERNAL_H

#include "analyzer/explore/observe.h"
#include "analyzer/symtrace/extract_level.h"

#define OBS_MAX_RAW (4u << 20)    /* accesses and operations of one execution that are kept */
#define OBS_MAX_EVENTS 4000u      /* shared ones that are looked at: the search is more than linear. Of more ... */
#define OBS_CUT_EVENTS 2000u      /* ... the first ones of each thread, so many in all, */
#define OBS_LEAST_EVENTS 32u      /* and at least so many of each */
#define OBS_MAX_OUTPUT (64u << 10) /* bytes */

enum raw_kind { RAW_ACCESS, RAW_SYNC, RAW_BORN, RAW_ENDED };

struct raw {
	uint8_t kind, size, flags;
	bool program;
	uint32_t thread;
	uint64_t pc, place_nth, inside;
	union {
		struct {
			uint64_t address, value;
		};
		struct {
			uint64_t object, mutex;
			uint32_t op_at, peer;
			int32_t result;
		};
	};
};

/* (thread, place, inside) -> how often */
struct counter {
	uint64_t place, inside, n, insn;
	uint32_t thread;
};

struct counters {
	struct counter *v;
	size_t n, cap;
};

/* Objects as they are before the first thread is made. */
struct initial {
	uint64_t address;
	enum xpl_object_kind kind;
	int64_t count;
	bool recursive;
};

struct xpl_prelude {
	uint64_t from;
	bool found;
	struct counters counts; /* of instructions, by the whole run's numbers */
	VEC(struct initial) initial;
	/* while looking */
	struct mach_run *run;
};

struct observer {
	struct mach_run *run;
	struct level *level;
	struct counters counts;
	uint64_t *inside;  /* by thread */
	VEC(struct raw) raws;
	bool full;
	struct xpl_seen *seen;
	uint32_t nthreads;
	const struct xpl_prelude *prelude;
};

/* The entry of a thread's place, made when it is not there. */
struct counter *xpl_counter_at(struct counters *c, uint32_t thread, uint64_t place, uint64_t inside);
/* Everything was noted: the trace of it becomes o->seen's. */
void xpl_observe_build(struct observer *o);

#endif
