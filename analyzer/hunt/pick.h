/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of the traces that one run left is the one to keep: a script leaves one of each process it starts. */
#ifndef CSCHED_HUNT_PICK_H
#define CSCHED_HUNT_PICK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct pick {
	char *path;      /* the trace to keep, or NULL: none was left */
	char *text;      /* why the run failed, or NULL: no process recorded a failure */
	uint64_t print;  /* of the failure point: the same in every run that fails there */
	uint32_t kind;   /* of the failure: enum trc_failure_kind; 0: none */
	int32_t status;  /* TRC_FAIL_EXIT: with which */
	bool named;      /* the trace is of the program that was asked for */
	bool started;    /* ... of the process that we started itself */
	bool explained;  /* it has a failure of its own */
	bool outside;    /* some process wrote files, used sockets, ...: runs side by side may disturb each other */
};

/*
 * Looks through the traces in dir. `name`: the file name of the program whose trace is wanted, or NULL. `started` is the process
 * that was started. A run without a recorded failure is picked from only when `any`.
 */
void pick_trace(const char *dir, const char *name, pid_t started, bool any, struct pick *out);
void pick_free(struct pick *p);

struct trc_failure;

/* The point of a failure as a number: the same in every run that fails there. */
uint64_t pick_print(const struct trc_failure *f);

#endif
