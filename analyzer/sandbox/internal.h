/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of this room share. */
#ifndef CSCHED_SANDBOX_INTERNAL_H
#define CSCHED_SANDBOX_INTERNAL_H

#include "analyzer/sandbox/sandbox.h"
#include "common/door.h"

#include <linux/limits.h>
#include <stddef.h>
#include <stdint.h>

/* A question to the process outside, and its answer; a descriptor comes along with a good one. */
struct sandbox_question {
	uint32_t kind;      /* enum door_kind */
	char name[PATH_MAX]; /* as much of it as was sent, NUL included */
};

struct sandbox_answer {
	int32_t error; /* errno; 0: good */
	int32_t has_fd;
};

/* ask.c, inside: the door through the socket. Safe in a signal handler. */
void sandbox_ask_through(int sock);
int sandbox_ask(enum door_kind kind, const char *name);

/* serve.c, outside: answers until the other side is gone. *late: it was ended because its time was over. */
void sandbox_serve(int sock, int child, double seconds, bool *late);

/* filter.c. sock: the only descriptor that may send and receive messages; NULL or what went wrong. */
err_t sandbox_filter(int sock);

/* landlock.c: the version in force, 0: the kernel has none. */
int sandbox_landlock(void);

#endif
