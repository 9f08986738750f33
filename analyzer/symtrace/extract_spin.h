/*
 * Threads that wait in a loop of plain loads (while (!ready) sched_yield();). Each round is like the one before it:
 * the same accesses with the same values, and the registers come back to what they were. As events thousands
 * of such rounds would fill the window and say nothing that the first and the last do not say: what lies
 * between is left out. Rounds that write what others see, or use a lock, are kept.
 */
#ifndef CSCHED_SYMTRACE_EXTRACT_SPIN_H
#define CSCHED_SYMTRACE_EXTRACT_SPIN_H

#include "analyzer/follow/machine.h"

#include <stdbool.h>

struct spins;

struct spins *spins_new(struct mach_run *run);
void spins_free(struct spins *s);

/* Every access of the run, in its order, from a moment on; event: it makes one. */
void spins_access(struct spins *s, const struct mach_access *a, bool event);
/* The thread does something that is no access: its rounds end here. */
void spins_leave(struct spins *s, uint32_t thread);
/* The run ends. Are there rounds that can be left out? They are left out from now on. */
bool spins_settle(struct spins *s);
/* Does this access lie in a round that is left out? Never, before they are settled. */
bool spins_leave_out(const struct spins *s, const struct mach_access *a);

#endif
