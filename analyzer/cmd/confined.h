/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that read a trace do so confined (analyzer/sandbox/); their options for that. */
#ifndef CSCHED_CMD_CONFINED_H
#define CSCHED_CMD_CONFINED_H

#include "analyzer/cmd/cmd.h"

#include <stdbool.h>

/* Rows of a command's option table. */
#define CONFINED_OPTIONS \
	{ "no-sandbox", 0, NULL, CMD_FLAG, &confined_off, "read the trace unconfined: only one you trust" }, \
	{ "max-memory", 0, "SIZE", CMD_CALL, &confined_memory, "memory to use at most: 500m, 16g" }, \
	{ "max-unpacked", 0, "SIZE", CMD_CALL, &confined_unpacked, "room a packed trace may take at most" }

extern bool confined_off;
extern struct cmd_call confined_memory, confined_unpacked;

struct confined {
	const char *command;
	const char *input;   /* the trace or file on the command line */
	bool needs_input;    /* standard input is read */
	double timeout;      /* seconds that work() has been told to take at most; 0: none */
};

/* The status of work(arg). */
int confined_run(const struct confined *c, int (*work)(void *), void *arg);

#endif
