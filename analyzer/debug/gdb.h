/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starting gdb on a recorded run, or waiting for one that somebody else starts: the front's part (front.h). */
#ifndef CSCHED_DEBUG_GDB_H
#define CSCHED_DEBUG_GDB_H

#include "common/err.h"
#include "common/strbuf.h"
#include "common/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct gdb_module {
	char *file; /* as the confined process names it: nothing to be believed */
	uint64_t bias;
};

struct gdb_run {
	VEC(struct gdb_module) modules;
	unsigned frame; /* the frame to show first */
	int pid;        /* of the confined process */
};

/* Commands that give gdb the modules where they were, and connect it to the socket at this path. */
err_t gdb_write_script(const struct gdb_run *r, const char *path, const char *address);

/* A listening socket; *is_path: it is a file that somebody has to remove. */
err_t gdb_listen(const char *address, int *fd, bool *is_path);
err_t gdb_listen_at_path(const char *path, int *fd);

/* Starts the installed gdb; its process id, or -1. */
int gdb_start(const char *script, char **arguments);
/* Waits for a client; -1: the other side of `gone` was closed, or gdb (0: none was started) ended before, *ended being its status. */
int gdb_accept(int listener, int gone, int gdb, int *ended);

#endif
