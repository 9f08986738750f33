/* csched replay --native: the found order, enforced on the real program. */
#ifndef CSCHED_CMD_NATIVE_H
#define CSCHED_CMD_NATIVE_H

#include <stdbool.h>
#include <stdint.h>

struct native_request {
	const char *trace;
	char **argv;      /* the program and its arguments */
	uint64_t runs;    /* 0: 1 */
	bool alternate;   /* enforce the order that does not fail */
	bool gdb;         /* one run, under gdb, stopped at the failure */
	bool json;
	double time;           /* no further run after this many seconds; 0: no such limit */
	double limit;     /* seconds for one run; 0: from the recorded one */
};

/* The exit status of the command. */
int native_replay(const struct native_request *r);

#endif
