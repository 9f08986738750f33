/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between observe.c, which notes what happens, and observe_build.c, which makes a trace of it. */
#ifndef CSCHED_EXPLORE_OBSERVE_INTERNAL_H
#define CSCHED_EXPLORE_OBSERVE_INTERNAL_H

#include "analyzer/explore/observe.h"
#include "analyzer/symtrace/extract_level.h"

#define OBS_MAX_RAW (1u << 20)    /* accesses and operations of one execution that are kept ... */
#define OBS_LEAST_ROOM (1u << 18) /* ... and so many that must be dropped to go on */
#define OBS_MAX_EVENTS 4000u      /* shared ones that are looked at: the search is more than linear. Of more ... */
#define OBS_ALIKE 4u              /* ... so many of the variables that the same code of the same threads accesses; then */
#define OBS_CUT_EVENTS 2000u      /* those with the fewest accesses, so many events in all; and of operations alone */
#define OBS_LEAST_EVENTS 32u      /* the first ones of each thread, and at least so many of each */
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

/* A word of eight bytes that is accessed after the first thread was made. */
struct obs_word {
	uint64_t address; /* / 8, plus one; 0: empty */
	uint32_t first;   /* thread */
	bool second, written;
	bool left_out;    /* it is shared, but there were too many: see observe_sample.c */
	uint64_t parts[8]; /* masks that are accessed together; 0 ends them */
	uint32_t vars[8];
	/* for the choice of those that are looked at */
	uint32_t accesses;
	uint64_t by[2];   /* which code of which threads accesses it: a set, as bits of hashes */
};

struct obs_words {
	struct obs_word *v;
	size_t n, cap;
};

struct observer {
	struct mach_run *run;
	struct level *level;
	struct counters counts;
	uint64_t *inside;  /* by thread */
	VEC(struct raw) raws;
	bool full;
	/* Whose accesses were not kept: until then one thread alone accessed them, or (left_out) there were too many. */
	struct obs_words dropped;
	bool lost;                /* something that is shared is not looked at */
	struct xpl_seen *seen;
	const struct xpl_event *expect; /* what the execution is to show, or NULL */
	uint32_t nthreads;
	const struct xpl_prelude *prelude;
	struct img_set *images;
	const struct xpl_terms *terms; /* NULL: the run's own */
	const struct img_module *moved; /* of this run, looked up last: the first run has it ... */
	uint64_t moved_by;              /* ... so many bytes further on */
};

/* The entry of a thread's place, made when it is not there. */
struct counter *xpl_counter_at(struct counters *c, uint32_t thread, uint64_t place, uint64_t inside);
size_t obs_operations(const struct observer *o);
/* Which words are accessed, by whom, from what was noted. */
void obs_find_words(const struct observer *o, struct obs_words *w);
/*
 * Drops what one thread alone accesses, its stack above all, then what is accessed too often; full when that makes no room.
 */
void obs_make_room(struct observer *o);
struct obs_word *obs_word_at(struct obs_words *w, uint64_t number);
/* The part of an access that lies in its first word (0) or in the second (1). */
bool obs_piece_of(const struct raw *r, unsigned which, uint64_t *number, uint64_t *mask, uint64_t *value);
/* What was dropped is left out. */
void obs_leave_dropped(const struct observer *o, struct obs_words *w);
/* Leaves shared words out until the rest has few enough accesses beside so many operations; true: some were. */
bool obs_sample(const struct observer *o, struct obs_words *w, size_t operations);

/* Everything was noted: the trace of it becomes o->seen's. */
void xpl_observe_build(struct observer *o);

#endif
