/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The environment with which another program can run with the shim in it. */
#ifndef CSCHED_PRELOAD_SUIT_H
#define CSCHED_PRELOAD_SUIT_H

#include <stddef.h>

struct suit {
	void *at; /* NULL: nothing was needed */
	size_t len;
};

/* env itself, or another one in mem's memory, which the caller gives back should the exec fail. */
char *const *suit_environment(int dir, const char *path, char *const *env, struct suit *mem);
void suit_end(struct suit *mem);

#endif
