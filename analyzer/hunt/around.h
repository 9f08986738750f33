/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a run does to its surroundings: files in the current directory; and the oracle that is asked after it. */
#ifndef CSCHED_HUNT_AROUND_H
#define CSCHED_HUNT_AROUND_H

#include "common/err.h"

#include <stdint.h>

/* A sum over names, sizes and times in the directory (NULL: the current one) and those below it; our own output is left out. */
uint64_t around_directory(const char *path);

/*
 * Runs `sh -c command` as the oracle of a run that ended with this wait status and printed the file `output`
 * (CSCHED_RUN_OUTPUT, CSCHED_RUN_STATUS). *status: its exit status; it is ended, with 124, after `limit` seconds.
 */
err_t around_check(const char *command, const char *output, int wait_status, double limit, int *status);

#endif
