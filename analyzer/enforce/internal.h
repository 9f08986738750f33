/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ends of the edges in a schedule's file. Shared inside the room. */
#ifndef CSCHED_ENFORCE_INTERNAL_H
#define CSCHED_ENFORCE_INTERNAL_H

#include "analyzer/enforce/enforce.h"
#include "analyzer/enforce/schedule.h"

/* source: what others wait for. held: the thread waits behind it. False: it is not known. */
bool schedule_end_in(const struct enforce *e, struct schedule *s, const struct sym_trace *t, struct sched_ref r,
		     bool source, bool held, struct schedule_end *out);
/* Before the n-th execution of this instruction by a thread, be it no event. False: likewise. */
bool schedule_end_at(const struct enforce *e, struct schedule *s, const char *thread, uint64_t pc, uint64_t n,
		     struct schedule_end *out);
void schedule_end_free(struct schedule_end *end);
/* The edge between them, where both are known; NULL: not. */
struct schedule_edge *schedule_push(struct schedule *s, bool source_told, struct schedule_end source,
				    bool target_told, struct schedule_end target);

/* meet.c: for a failure that needs store buffers; no edges: it does not. */
void schedule_meetings(const struct enforce *e, struct schedule *s);

/*
 * calls.c: system calls that have to do with the same files, as far as the order leaves room for how they were
 * recorded. By thread, `last` gets the last call of that sort. False: none of them has to do with another; s NULL: only asks that.
 */
bool schedule_calls(const struct enforce *e, struct schedule *s, const struct sched_order *order, size_t until,
		    const struct ext_call **last);
/* Where its thread can be held behind that call. False: it is not known. */
bool schedule_call_end(const struct enforce *e, struct schedule *s, const struct ext_call *c, struct schedule_end *out);

/*
 * A thread that had only begun, or not even that: held at its start. One that was being made when the run
 * failed has no name yet: it is whoever has no part in the order.
 */
struct schedule_end schedule_start_of(const struct sym_trace *t, uint32_t thread);

/*
 * Which thread resolves a symbol is decided by who comes first: how often a thread
 * passes a place in the dynamic linker differs from run to run.
 */
bool schedule_is_linker(const struct img_module *m);

#endif
