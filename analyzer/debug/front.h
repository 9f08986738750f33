/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * csched debug is two processes. One is confined (analyzer/sandbox/), follows the run and answers gdb's packets (stub.h). The other one,
 * the front, was forked before anything was read: it opens the socket, starts gdb and `csched explain`, and passes packets on
 * as far as filter.h lets them.
 *
 * On the control socket the confined process sends lines: "pid N", "file BIAS PATH" for each module, "frame N", then "ready".
 * From then on it asks with the line "explain" or "explain json"; the answer is a 32-bit length and the text.
 */
#ifndef CSCHED_DEBUG_FRONT_H
#define CSCHED_DEBUG_FRONT_H

#include "analyzer/debug/stub.h"

struct front {
	const char *trace;
	const char *listen; /* HOST:PORT, :PORT (this machine only) or the path of a socket; NULL: start gdb */
	char **gdb;         /* further arguments for it */
	int packets;        /* the front's end of the socket on which the stub answers */
	int others;         /* the confined process's end of it, to be closed */
};

/* In the front (struct front): until gdb leaves or the confined process is gone. The exit status of csched debug. */
int front_serve(int control, void *front);

/* In the confined process. False: the front is gone, and has said why. */
bool front_announce(int control, struct dbg *d);
/* For struct stub_help; arg: the control socket, an int *. */
char *front_explain(void *control);
void front_events(void *control, struct dbg *d);

#endif
