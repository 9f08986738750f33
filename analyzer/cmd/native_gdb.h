/* csched replay --native --gdb: one enforced run under gdb, stopped at the failure. */
#ifndef CSCHED_CMD_NATIVE_GDB_H
#define CSCHED_CMD_NATIVE_GDB_H

#include "common/err.h"
#include "common/trace_read.h"

/* Returns when gdb has ended. t: the recorded run; schedule: the file to enforce, absolute. */
err_t native_gdb(char **program, const char *shim, const char *schedule, const struct trc *t);

#endif
