/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starting gdb on a recorded run, or waiting for one that somebody else starts. */
#ifndef CSCHED_DEBUG_GDB_H
#define CSCHED_DEBUG_GDB_H

#include "analyzer/debug/stub.h"
#include "common/strbuf.h"

/* Commands that give gdb the modules of the run, where they were. */
void gdb_symbols(struct dbg *d, struct strbuf *script);

/* Runs the installed gdb on it with these further arguments; *status is gdb's. */
err_t gdb_run(struct dbg *d, char **arguments, const struct stub_help *help, int *status);

/* HOST:PORT, :PORT (this machine only) or the path of a socket: serves one client after the other until ^C. */
err_t gdb_listen(struct dbg *d, const char *address, const struct stub_help *help);

#endif
