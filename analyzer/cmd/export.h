/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Traces for other tools. */
#ifndef CSCHED_CMD_EXPORT_H
#define CSCHED_CMD_EXPORT_H

#include "analyzer/follow/machine.h"
#include "common/err.h"
#include "common/trace_read.h"

#include <stdio.h>

/* Chrome's trace-event format: what each thread held and waited for, and when the run failed. */
err_t export_chrome(FILE *f, struct trc *t);
/* An ELF core dump of the process as the machine left it. */
err_t export_core(FILE *f, struct trc *t, struct mach_run *run);
/* The same into a file, from a trace that a confined process follows to its end for that; an exit status. */
int export_core_of(const char *command, const char *trace, const char *file);

#endif
