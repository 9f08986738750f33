/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the serial orders end: each thread's part without others in between, in every order of the threads. */
#ifndef CSCHED_EXPLORE_SERIAL_H
#define CSCHED_EXPLORE_SERIAL_H

#include "analyzer/explore/drive.h"

struct xpl_outcome {
	int status;
	char *output;
	size_t len;
};

struct xpl_serial {
	VEC(struct xpl_outcome) v; /* each once */
	uint64_t orders;           /* executed */
	bool complete;             /* all of them were, and it is known how each ends: then others can be judged */
	char *why;                 /* else: why not */
};

/* run: executes one order of all threads. What it shows is taken in by d. */
err_t xpl_serial_find(struct xpl_serial *s, struct xpl_drive *d, uint32_t nthreads,
		      err_t (*run)(void *arg, const uint32_t *order, struct xpl_seen *out), void *arg);
/* Is it certain that no serial order ends like this execution? */
bool xpl_serial_differs(const struct xpl_serial *s, const struct xpl_seen *seen);
void xpl_serial_free(struct xpl_serial *s);

#endif
