/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that read a trace do so confined (analyzer/sandbox/); their options for that. */
#ifndef CSCHED_CMD_CONFINED_H
#define CSCHED_CMD_CONFINED_H

#include "analyzer/cmd/cmd.h"
#include "analyzer/sandbox/sandbox.h"

#include <stdbool.h>

/* Rows of a command's option table. */
#define CONFINED_OPTIONS \
	{ "no-sandbox", 0, NULL, CMD_FLAG, &confined_off, "read the trace unconfined (only traces you trust)" }, \
	{ "max-memory", 0, "SIZE", CMD_CALL, &confined_memory, "memory limit, like 500m or 16g" }, \
	{ "max-unpacked", 0, "SIZE", CMD_CALL, &confined_unpacked, "limit on the unpacked size of a packed trace" }

/* Of those that read a recorded run. */
#define EPOCH_OPTION \
	{ "epoch", 0, "N", CMD_CALL, &confined_epoch, "flight recorder: begin with epoch N (csched info lists them)" }

extern bool confined_off;
extern struct cmd_call confined_memory, confined_unpacked, confined_epoch;

struct confined {
	const char *command;
	const char *input;   /* the trace or file on the command line */
	const char *also;    /* another file that the user named and that is read; NULL: none */
	bool needs_input;    /* standard input is read */
	double timeout;      /* seconds that work() has been told to take at most; 0: none */
	int keep[SANDBOX_KEEP]; /* descriptors that stay open; 0: none */
};

/* The status of work(arg). */
int confined_run(const struct confined *c, int (*work)(void *), void *arg);

#endif
