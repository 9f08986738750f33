/* Between the files of a followed thread: thread.c (its path), thread_stops.c (its stops). */
#ifndef CSCHED_MACHINE_THREAD_H
#define CSCHED_MACHINE_THREAD_H

#include "analyzer/machine/follow.h"

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
enum mach_stop run_engine(struct mach_run *r, struct run_thread *t);
/* The path agrees that this kind of fragment ends at pc. */
enum action run_match_end(struct mach_run *r, struct run_thread *t, enum trc_frag_kind kind,
			  uint64_t pc, const char *what);
/* The thread's record ends before what the instruction at rip would have left in it. */
bool run_is_cut_here(const struct mach_run *r, struct run_thread *t);

#endif
