/*
 * One run of the program: in a session of its own, with a time limit, so that
 * the processes it leaves can be found and ended.
 */
#ifndef CSCHED_HUNT_CHILD_H
#define CSCHED_HUNT_CHILD_H

#include "common/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct child_spec {
	char **argv;
	const char *input;   /* file for standard input */
	const char *output;  /* file for standard output and error (truncated) */
	char **environment;  /* "NAME=VALUE" to add, NULL-terminated */
	char **more;         /* the same, added before those; or NULL */
	const char *directory; /* where it runs; NULL: here */
};

struct child {
	pid_t pid;   /* 0: none is running */
	int fd;      /* pidfd: readable when it ended */
	double started, limit; /* seconds, monotonic clock */
	bool timed_out;
};

double child_now(void);

/* limit: seconds until it is ended; 0 for none. */
err_t child_start(struct child *c, const struct child_spec *spec, double limit);

/* Waits until one of n children ends or passes its limit, or seconds pass. Index, or -1. */
int child_wait_any(struct child *c, size_t n, double seconds);

/* A child of ours that is no run (any more: !spare), and is not to be ended with what runs leave behind. */
void child_spare(pid_t pid, bool spare);

/* Orphans of whatever we start come to us instead of init: they can be ended. */
void child_adopt_orphans(void);
/* Ends those that came. */
void child_end_orphans(void);

/* Collects child c (ending it first if it still runs) and everything in its session. */
int child_finish(struct child *c);

#endif
