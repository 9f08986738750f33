/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What one execution showed, as explore sees it: the shared accesses and operations of all
 * threads in the order in which they happened, with the values they saw.
 *
 * It is concrete where a symbolic trace (symtrace.h) is symbolic. An order of these events says
 * something about the program as long as each read sees what it saw here: until then every thread
 * does what it did here (maximal causality). What a thread does after a read of another value
 * only an execution tells.
 */
#ifndef CSCHED_EXPLORE_MODEL_H
#define CSCHED_EXPLORE_MODEL_H

#include "common/vec.h"

#include <stdbool.h>
#include <stdint.h>

#define XPL_NONE UINT32_MAX

enum xpl_op {
	XPL_READ,
	XPL_WRITE,
	XPL_RMW,       /* one step that cannot be cut in two: reads value, writes wvalue */
	XPL_LOCK,      /* exclusive; shared: a reader's lock */
	XPL_UNLOCK,
	XPL_TRY,       /* result: 1 acquired, 0 busy */
	XPL_WAIT_IN,   /* releases `mutex' and begins to wait for obj */
	XPL_WAIT_OUT,  /* woken (result 1) or timed out (0), with `mutex' acquired again */
	XPL_SIGNAL,
	XPL_BROADCAST,
	XPL_SEM_WAIT,
	XPL_SEM_TRY,
	XPL_SEM_POST,
	XPL_BAR_IN,    /* arrives */
	XPL_BAR_OUT,   /* result: which round it is for this thread, from 1 */
	XPL_ONCE_RUN,  /* runs the initialiser */
	XPL_ONCE_END,  /* has run it, or goes on because it was run */
	XPL_FORK,      /* peer */
	XPL_EXIT,
	XPL_JOIN,      /* peer */
	XPL_OPS
};

enum xpl_object_kind { XPL_MUTEX, XPL_COND, XPL_SEM, XPL_BARRIER, XPL_ONCE };

/* A variable: bytes of one aligned word of eight that are accessed together. */
struct xpl_var {
	uint64_t word, mask; /* address of the word; its bytes, as a mask of bits */
	uint64_t init;
};

struct xpl_object {
	enum xpl_object_kind kind;
	uint64_t address;
	int64_t count;   /* at the beginning: of a semaphore; threads of a barrier's round; once: 2 done */
	uint32_t owner;  /* holds it at the beginning, or XPL_NONE */
	bool recursive;
};

struct xpl_event {
	uint8_t op;
	bool shared;     /* XPL_LOCK, XPL_TRY: a reader's */
	bool program;    /* made by the program's own code, not by its C library */
	bool half;       /* one half of an instruction that reads and writes and can be cut in two */
	int32_t result;
	uint32_t thread, index;
	uint32_t target; /* variable or object */
	uint32_t mutex;  /* object, see XPL_WAIT_IN */
	uint32_t peer;
	uint64_t mask, value, wvalue; /* accesses: bits; what was read; what was written */
	uint64_t pc;     /* of the access, or inside the call; 0: none */
	uint64_t place, inside, nth; /* for struct mach_step; place 0: it has none */
	uint64_t history; /* hash of what this thread did up to here, with what it saw */
};

struct xpl_thread {
	VEC(uint32_t) events; /* numbers in struct xpl_trace, by rising index */
	bool from_start;      /* alive at the beginning */
	bool ended;           /* its last event is XPL_EXIT */
	bool waits;           /* behind its last event it waited for ever: for `pending' */
	struct xpl_event pending;
};

struct xpl_trace {
	VEC(struct xpl_event) events; /* in the order of execution */
	struct xpl_thread *threads;
	uint32_t nthreads;
	VEC(struct xpl_var) vars;
	VEC(struct xpl_object) objects;
	bool cut;     /* there were more events than are looked at */
	bool timed;   /* some thread waited with a time limit */
	uint32_t exits; /* the thread that ended the process, and did not end itself; XPL_NONE: not known */
};

/* Was it made in this execution? */
bool xpl_is_born(const struct xpl_trace *t, uint32_t thread);
struct xpl_trace *xpl_trace_new(uint32_t nthreads);
void xpl_trace_free(struct xpl_trace *t);
/* thread, and the fields that say what; index and history are filled in. Returns its number. */
uint32_t xpl_trace_add(struct xpl_trace *t, const struct xpl_event *e);

/* What the thread waited for when nobody could go on; the same fields as for xpl_trace_add(). */
void xpl_trace_pending(struct xpl_trace *t, const struct xpl_event *e);

static inline const struct xpl_event *xpl_at(const struct xpl_trace *t, uint32_t thread, uint32_t index)
{
	return &t->events.v[t->threads[thread].events.v[index]];
}

static inline bool xpl_is_access(const struct xpl_event *e)
{
	return e->op <= XPL_RMW;
}

static inline bool xpl_reads(const struct xpl_event *e)
{
	return e->op == XPL_READ || e->op == XPL_RMW;
}

static inline bool xpl_writes(const struct xpl_event *e)
{
	return e->op == XPL_WRITE || e->op == XPL_RMW;
}

/* print.c: which failing order it was. fails: the thread, XPL_NONE: all; names: numbers of threads that do not depend on the run, or NULL. */
uint64_t xpl_trace_print(const struct xpl_trace *t, uint32_t fails, const uint32_t *names);

/* Happens-before by the creation and the joining of threads alone, which every order keeps. */
struct xpl_life;
struct xpl_life *xpl_life_new(const struct xpl_trace *t);
void xpl_life_free(struct xpl_life *l);
bool xpl_life_before(const struct xpl_life *l, const struct xpl_event *a, const struct xpl_event *b);

uint64_t xpl_mix(uint64_t a, uint64_t b);

#endif
