/* What is mapped in this process, as the kernel tells it. */
#ifndef CSCHED_PRELOAD_MAPS_H
#define CSCHED_PRELOAD_MAPS_H

#include <stdbool.h>
#include <stddef.h>

/* A path may have 4096 bytes, and before it stand less than a hundred. */
#define MAPS_BUFFER 8192

/*
 * Gives each line of /proc/thread-self/maps to `line`, without its end (/proc/self has none once
 * the main thread has ended). buf is room for MAPS_BUFFER bytes, the caller's: who reads holds
 * different locks. A line that does not fit is passed over. False: it cannot be read.
 */
bool maps_read(char *buf, void (*line)(char *line, void *arg), void *arg);

#endif
