/* csched run --json: the program as a child, and an answer when it has ended. */
#ifndef CSCHED_ANALYZER_CMD_RUN_REPORT_H
#define CSCHED_ANALYZER_CMD_RUN_REPORT_H

#include "common/err.h"

/*
 * Runs command with the environment as it is, passes signals on to it, prints
 * one line of JSON on standard output, and ends as the program ended: *status
 * is its exit status, or the process dies by the same signal. obstacle: why it
 * cannot be recorded, or NULL.
 */
err_t run_and_report(char **command, const char *obstacle, int *status);

#endif
