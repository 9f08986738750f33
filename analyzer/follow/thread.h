/* Between the files of a followed thread: thread.c (its path), thread_stops.c (its stops). */
#ifndef CSCHED_MACHINE_THREAD_H
#define CSCHED_MACHINE_THREAD_H

#include "analyzer/follow/follow.h"

/* Records that only mark a position on the path and are behind us. */
void run_pass_marks(struct run_thread *t);
/* A generation between here and where the thread is interrupted. */
void run_pass_generation(struct run_thread *t);
/* It interrupts the thread at this place of its path, between two fragments. */
bool run_stops_at(const struct trc_rec *rec, uint64_t pos);
/* The record's head asks the engine to stop here. */
bool run_wants_stop(struct run_thread *t);
/* The engine's branch hook: is it as recorded? */
mach_branch_fn run_on_branch;
/* The engine, along the thread's path as far as it is known. */
/* faults.c */
void run_expect_fault(struct mach_run *r, struct run_thread *t); /* of this thread, before it goes on */
bool run_fault_expected(const struct mach_run *r); /* the engine stopped because of that */
enum action run_fault_is_recorded(struct mach_run *r, struct run_thread *t); /* ACT_RUN: not at this access */
bool run_registers_are(struct mach_run *r, const uint64_t *regs); /* the sixteen, in TRC order */
bool run_fault_elsewhere(const struct mach_run *r, const struct run_thread *t); /* the recorded one, if any, is of another page */
bool run_stack_grows(struct mach_run *r); /* the fault was below a mapping that grows, and has: go on */

enum mach_stop run_engine(struct mach_run *r, struct run_thread *t);
/* The path agrees that this kind of fragment ends at pc. */
enum action run_match_end(struct mach_run *r, struct run_thread *t, enum trc_frag_kind kind,
			  uint64_t pc, const char *what);
/* The thread's record ends before what the instruction at rip would have left in it. */
bool run_is_cut_here(const struct mach_run *r, struct run_thread *t);

#endif
