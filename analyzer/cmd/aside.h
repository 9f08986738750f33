/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Explaining in a child process: whatever happens there, and however long it would take, the search goes on. */
#ifndef CSCHED_CMD_ASIDE_H
#define CSCHED_CMD_ASIDE_H

#include <stdbool.h>
#include <stddef.h>

/* Can the machine follow this run into its failure? What could not be tried in that time is not refused. */
bool aside_can_follow(const char *trace, double seconds);
/* Explains it without a word: fingerprint and schedules are beside the trace then. False: no answer. */
bool aside_explain(const char *trace, double seconds);
/* The fingerprint that csched explain left beside the trace; "" when there is none. */
#define ASIDE_FINGERPRINT 33
void aside_fingerprint(const char *trace, char out[ASIDE_FINGERPRINT]);

#endif
