/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What fix.c applies and fix_read.c reads: the points of a fix (common/control_format.h). */
#ifndef CSCHED_PRELOAD_FIX_H
#define CSCHED_PRELOAD_FIX_H

#include "preload/control/control.h"

#define FIX_POINTS 512
#define FIX_ITEMS 64     /* regions and orders, numbered from 0 */
#define FIX_LOCKS 8      /* locks of the fix's own */
#define FIX_OBJECTS 64   /* locks of the program that go with them */
#define FIX_THREADS_NAMED 64
#define FIX_NESTED 8     /* regions that one thread is in at a time */

enum fix_kind {
	FIX_BEGIN, FIX_ENTER, FIX_END, /* of a region */
	FIX_TAKEN,                     /* a call that acquires a lock that goes with one of ours */
	FIX_SOURCE, FIX_TARGET,        /* of an order */
	FIX_JOIN,                      /* here the named threads have ended */
	FIX_CHECK,                     /* reads what a wait for a condition is about */
	FIX_KEEP,                      /* a call that frees: it frees nothing */
	FIX_FENCE,                     /* stores are visible before what follows */
	FIX_WAKE_ALL,                  /* a call that wakes one: it wakes all */
	FIX_KINDS
};

struct fix_point {
	enum fix_kind kind;
	uint32_t item;   /* FIX_TAKEN: the lock */
	uint32_t module; /* hash of its file name */
	uint64_t offset;
	uint64_t pc;     /* in this process; 0: not translated yet */
	uint64_t back;   /* of a call: where it returns to; else 0 */
};

struct fix_item {
	uint32_t lock;   /* of a region */
	uint32_t up;     /* so many returns of functions do not end the region */
	uint32_t count;  /* the so many-th execution of its end does */
	bool each;       /* an order: the n-th time it waits for all of its threads to have done it n times */
	uint32_t done;   /* sources so far, a futex */
};

struct fix_object {
	uint32_t lock;
	uint32_t module; /* 0: an address, learned at a call */
	uint64_t address;
};

struct fix {
	struct fix_point point[FIX_POINTS];
	struct fix_item item[FIX_ITEMS];
	struct fix_object object[FIX_OBJECTS];
	struct {
		char id[SHIM_ID_MAX];
		uint32_t item; /* an order whose source it does, FIX_ITEMS: one that is joined */
		uint32_t done; /* how often */
	} named[FIX_THREADS_NAMED];
	unsigned npoints, nobjects, nnamed;
	bool regions, checks;
};

/* False: the text is no fix, or asks for more than there is room for. */
bool fix_parse(struct fix *f, const char *text);

/* fix_lock.c */

/* Locks of the fix's own, each may be taken several times by its thread. c: for those who may have to wait. */
void fix_lock_take(struct tr_ctx *c, uint32_t lock);
void fix_lock_release(const struct shim_thread *t, uint32_t lock);
bool fix_lock_try(const struct shim_thread *t, uint32_t lock);
bool fix_lock_is_mine(const struct shim_thread *t, uint32_t lock);
/* All that t holds of it; and as often again. */
uint32_t fix_lock_release_all(const struct shim_thread *t, uint32_t lock);
void fix_lock_set_depth(uint32_t lock, uint32_t depth); /* of one that is the caller's */
void fix_lock_take_again(struct shim_thread *t, uint32_t lock, uint32_t depth);
void fix_locks_forked(const struct shim_thread *t);

/* One wait: since when, and since when nobody has gone on. Begins as all zero. */
struct fix_patience {
	uint64_t begin, stuck, events;
};

/*
 * Waits a moment, or until *word is not `held`: the caller looks again. False: nobody can go on, or it has taken too long; the
 * run has failed by then, as a deadlock under the fix.
 */
bool fix_wait(struct fix_patience *p, struct shim_thread *t, uint32_t *word, uint32_t held, const char *what, uint64_t number);
void fix_wake(uint32_t *word);

#endif
