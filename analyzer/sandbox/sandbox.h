/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The second wall: whatever reads a trace does so in a process that can reach nothing worth having.
 *
 * sandbox_run() forks. The child confines itself before it reads the first byte: no new privileges, Landlock, a list of system
 * calls (filter.c), limits. The parent stays outside and is the child's door (common/door.h): it opens, by rule, the files
 * that turn out to be needed on the way, hands over the descriptors, and gives the files that were written their names. Should the
 * guest's code ever run as the analyzer, it has the trace, its ELF files, sources that might be shown, and the files it was
 * told to write; it cannot open, connect, start or signal anything.
 */
#ifndef CSCHED_SANDBOX_H
#define CSCHED_SANDBOX_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sandbox_limits {
	uint64_t memory;    /* bytes of memory; 0: sandbox_memory_default() */
	uint64_t file_size; /* bytes of each file written; 0: SANDBOX_FILE_SIZE */
	uint64_t cpu;       /* seconds of computing; 0: SANDBOX_CPU */
	double seconds;     /* of time after which the child is ended; 0: never */
};

/* Limits, their units and reasons. */
#define SANDBOX_FILE_SIZE (16ull << 30)    /* four times what a recorder writes unasked */
#define SANDBOX_CPU (24ull * 60 * 60)      /* a forgotten analysis ends within the day */
#define SANDBOX_MEMORY (8ull << 30)        /* twice the largest trace recorded unasked */
#define SANDBOX_MEMORY_LEAST (1ull << 30)  /* on small machines three quarters of their memory, but at least this */
#define SANDBOX_ADDRESS_SPACE (1ull << 40) /* mapped files included: traces and ELF files are mapped whole */

uint64_t sandbox_memory_default(void);

#define SANDBOX_KEEP 2

/* What the child keeps open besides the standard streams; /dev/null replaces standard input that it does not need. */
struct sandbox_options {
	const char *command; /* for messages */
	struct sandbox_limits limits;
	bool needs_input;    /* standard input is what it reads */
	int keep[SANDBOX_KEEP]; /* further descriptors that stay open: ends of a helper's sockets; 0: none */
};

/*
 * The exit status of work(arg), which runs confined; how the child ended otherwise is said on standard error, and the status is
 * ERR_INTERNAL, or ERR_NOANSWER when it was out of time. An end by SIGINT or SIGPIPE is ours, too.
 */
int sandbox_run(const struct sandbox_options *o, int (*work)(void *), void *arg);

/*
 * A process outside that does for the confined one what only the command knows: start gdb, run the user's program. It is forked
 * before anything is read, serves one end of a stream socket until the other is closed, and believes nothing that arrives there.
 */
struct sandbox_helper {
	int sock; /* the confined process's end; 0: there is no helper */
	int pid;
};

/* serve() runs in the new process and gives its exit status. */
err_t sandbox_helper_start(int (*serve)(int sock, void *arg), void *arg, struct sandbox_helper *out);
/* Closes our end; the exit status of serve(), or ERR_INTERNAL. */
int sandbox_helper_end(struct sandbox_helper *h);

/* Blocks until all of it was transferred; false: the other side is gone. For either end. */
bool sandbox_send(int sock, const void *data, size_t n);
bool sandbox_receive(int sock, void *data, size_t n);

/* This process, now and for good. sock: where door.h asks, or -1: nowhere. */
err_t sandbox_confine(const struct sandbox_limits *l, int sock);

/* What is in force here, tried in a child: malloc'd words; *good: everything that must be. */
char *sandbox_probe(bool *good);

#endif
