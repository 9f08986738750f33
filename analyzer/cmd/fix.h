/* SPDX-License-Identifier: GPL-2.0-or-later */
/* csched hunt --with-fix and --fix: advice tried on the real program. */
#ifndef CSCHED_CMD_FIX_H
#define CSCHED_CMD_FIX_H

#include "analyzer/explain/explain.h"
#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

struct fix_request {
	const char *trace; /* of the failing run: what it was perturbed with, and what to explain */
	const char *file;  /* a fix written by hand, tried instead of the advice; NULL: none */
	char **argv;
	const char *fail_exit, *options; /* as given to csched hunt, or NULL */
	uint64_t runs;     /* 0: FIX_RUNS */
	double time;       /* seconds for the runs of one fix; 0: no limit */
	double limit;      /* for one run; 0: from the first */
	uint64_t jobs;
	const char *input; /* a file with the standard input of runs; NULL: ours */
	bool json;
	int outside;       /* in the confined process: see struct fix_trial */
};

#define FIX_RUNS 500
/* Where the advice is tried beside an explanation: without it and with it, */
#define FIX_TRIED_RUNS 100
#define FIX_TRIED_SECONDS 10.0 /* each of the two at most this long */

/* Tries the advice of this explanation, and writes into it (and beside the trace) what that showed. */
err_t fix_try(const struct fix_request *r, struct explanation *e);

/*
 * work() in a confined process, with a helper that makes the runs for its fix_try(); the exit status. The request's program is
 * run as the user gave it, whatever the trace says.
 */
int fix_confined(struct fix_request *r, const char *command, int (*work)(void *), void *arg);

/* The exit status of the command: 0 a fix holds, 1 none does. */
int fix_command(struct fix_request *r);

#endif
