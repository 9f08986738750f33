/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `monitor WORD` does at gdb's prompt. */
#ifndef CSCHED_DEBUG_MONITOR_H
#define CSCHED_DEBUG_MONITOR_H

#include "analyzer/debug/stub.h"
#include "common/strbuf.h"

/* Adds the answer, in lines; never fails: an error is an answer. */
void monitor_command(struct dbg *d, const struct stub_help *help, const char *line, struct strbuf *out);

#endif
