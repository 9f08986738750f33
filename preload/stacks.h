#ifndef CSCHED_PRELOAD_STACKS_H
#define CSCHED_PRELOAD_STACKS_H

#include "preload/shim.h"

/* TRC_STACK of every living thread; regs are of `failing` (both may be NULL). Under rec_lock(). */
void stacks_write(const struct shim_thread *failing, const uint64_t *regs);

#endif
