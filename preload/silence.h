/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of recording before the program forbids itself system calls. */
#ifndef CSCHED_PRELOAD_SILENCE_H
#define CSCHED_PRELOAD_SILENCE_H

#include <stdint.h>

const char *silence_environment(char **envp, const char *name); /* its value, or NULL */
/* The next program is to be run without us. */
void silence_environment_ours(char **envp);
/* Why this call with these arguments forbids the process system calls; NULL: it does not. */
const char *silence_reason(long nr, uint64_t a, uint64_t b, uint64_t c);
/* Sync mode, before the call: recording ends, if this one does so. */
void silence_sync(long nr, uint64_t a, uint64_t b, uint64_t c);
/* Threads that are in the middle of system calls of ours; and until there is none. */
extern uint32_t silence_busy;
void silence_wait(void);

static inline void silence_enter(void)
{
	__atomic_fetch_add(&silence_busy, 1, __ATOMIC_SEQ_CST);
}

static inline void silence_leave(void)
{
	__atomic_fetch_sub(&silence_busy, 1, __ATOMIC_SEQ_CST);
}

#endif
