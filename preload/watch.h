/*
 * The helper: a kernel thread of our own that exists only while it is needed,
 * either a few moments after all threads seemed blocked, or for the whole run
 * when hang= is given. It uses no TLS, no libc, and blocks all signals.
 */
#ifndef CSCHED_PRELOAD_WATCH_H
#define CSCHED_PRELOAD_WATCH_H

#include <stdbool.h>
#include <stdint.h>

void watch_start(void);        /* hang= */
void watch_suspect(void);      /* all threads may be blocked: look again soon */
bool watch_is_looking(void);   /* that has begun already, and what is suspected meanwhile is looked at, too */
void watch_after_fork(void);   /* helpers do not survive fork */
bool watch_is_helper(void);    /* is the caller one? It has no struct shim_thread. */
uint32_t watch_kernel_threads(void); /* tasks of this process, helpers included; 0: unknown */
bool watch_somebody_runs(void);      /* a task of this process other than the caller's */

#endif
