#ifndef CSCHED_PRELOAD_PROCESS_H
#define CSCHED_PRELOAD_PROCESS_H

/* Before anything else: who we are, and how a fork will be noticed. */
void process_start(const char *options);

#endif
