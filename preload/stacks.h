#ifndef CSCHED_PRELOAD_STACKS_H
#define CSCHED_PRELOAD_STACKS_H

#include "preload/shim.h"

/* TRC_STACK of the thread that failed, with its registers; of every other living one. Both pointers may be NULL. Under rec_lock(). */
void stacks_write_failing(const struct shim_thread *failing, const uint64_t *regs);
void stacks_write_others(const struct shim_thread *failing);

#endif
