/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recorded run as a thing to be debugged: it stands at a position, and moves to others, forwards and backwards.
 *
 * A position is a time of the run (machine.h); people write it as THREAD:N, where thread THREAD
 * has executed N instructions, which is what `csched replay --until` takes, too.
 */
#ifndef CSCHED_DEBUG_TARGET_H
#define CSCHED_DEBUG_TARGET_H

#include "analyzer/follow/machine.h"
#include "common/vec.h"

enum dbg_reason {
	DBG_STEPPED,
	DBG_BREAKPOINT,
	DBG_WATCHPOINT, /* address, how */
	DBG_FAILURE,    /* the run stands where it failed */
	DBG_END,        /* nothing is recorded behind this */
	DBG_BEGIN,      /* nor before this */
	DBG_INTERRUPTED,
	DBG_JUMPED,     /* somebody asked to be here */
};

struct dbg_stop {
	enum dbg_reason reason;
	uint32_t thread;
	uint64_t address;
	unsigned how;
};

struct dbg_mark {
	char *name;
	uint64_t time;
};

/* An event of the report, and the place just before it. */
struct dbg_place {
	uint64_t time;
	uint32_t thread; /* that one looks at; UINT32_MAX: who comes next */
};

struct dbg_event {
	struct dbg_place at;
	char *text;
};

struct dbg {
	struct trc *t;
	struct img_set *images;
	struct mach_run *run;
	struct mach_result *result;
	uint64_t now, end;
	VEC(uint64_t) breaks;        /* sorted; one that is set twice is there twice */
	VEC(struct mach_span) spans; /* watched */
	VEC(struct dbg_mark) marks;
	/* Another order of the threads than the recorded one: "failing" or "passing"; NULL: the recorded one. */
	const char *order;
	bool order_fails;      /* at its end ... */
	uint32_t order_thread; /* ... this thread stands where it fails, or where the order ends */
	VEC(struct dbg_event) events;
	bool jumps; /* the next move goes to jump, wherever it was to go */
	struct dbg_place jump;
	bool interrupted; /* set from outside while it moves */
};

err_t dbg_init(struct dbg *d, struct trc *t, struct img_set *images, struct mach_run *run,
	       struct mach_result *result);
void dbg_free(struct dbg *d);

err_t dbg_go(struct dbg *d, uint64_t time);
/* One instruction of the thread; what others do before that (or, back, after) happens, too. */
err_t dbg_step(struct dbg *d, uint32_t thread, bool back, struct dbg_stop *out);
err_t dbg_continue(struct dbg *d, bool back, struct dbg_stop *out);
/* Why it stands here without having moved. */
void dbg_where(struct dbg *d, struct dbg_stop *out);

void dbg_break(struct dbg *d, uint64_t pc, bool set);
void dbg_watch(struct dbg *d, struct mach_span span, bool set);

/* "T0.1:4711": malloc'd. */
char *dbg_position(struct dbg *d);
void dbg_event(struct dbg *d, struct dbg_place at, char *text); /* takes the text */
/* THREAD:N, a mark, "begin" or "end". */
err_t dbg_parse(struct dbg *d, const char *text, struct dbg_place *out);
void dbg_mark(struct dbg *d, const char *name);

#endif
