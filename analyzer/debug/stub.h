/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A debugger's side of a recorded run: answers gdb's remote protocol until the client goes. */
#ifndef CSCHED_DEBUG_STUB_H
#define CSCHED_DEBUG_STUB_H

#include "analyzer/debug/target.h"

/* What the answers to `monitor explain` and `monitor output` are made with. */
struct stub_help {
	/* Text of the report; malloc'd, NULL: there is none. */
	char *(*explain)(void *arg);
	/* Fills in the events of the report. */
	void (*events)(void *arg, struct dbg *d);
	void *arg;
};

/* Serves one client on the descriptor. Returns when it detaches, kills or disconnects. */
void stub_serve(struct dbg *d, int fd, const struct stub_help *help);

/* For the machine's progress callback: true when the client has sent ^C. */
bool stub_interrupted(void *arg, uint64_t insns, double part);

#endif
