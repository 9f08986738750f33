/* Which stores may still be in their threads' store buffers: see buffers.c. */
#ifndef CSCHED_MACHINE_BUFFERS_H
#define CSCHED_MACHINE_BUFFERS_H

#include "analyzer/follow/follow.h"

struct buffers;

struct buffers *buffers_new(struct mach_run *r);
void buffers_free(struct buffers *b);
/* The running thread accesses memory; a write is told before it happens. */
void buffers_access(struct buffers *b, uint64_t pc, uint64_t address, unsigned size, unsigned how);
void buffers_fence(struct buffers *b, uint32_t thread); /* its buffer is empty now */
/* Would the load see its value if such stores came later? Fills in which. */
bool buffers_explain(struct buffers *b, struct mach_forced *load);

#endif
