/* Failures; the functions others call are in shim.h and event.h. */
#ifndef CSCHED_PRELOAD_FAILURE_H
#define CSCHED_PRELOAD_FAILURE_H

#include "preload/shim.h"

/* Foreign symbols a failure is explained with; NULL where the program has none. */
struct failure_symbols {
	void **abort_msg;                      /* glibc's __abort_msg */
	const void *(*current_exception_type)(void); /* libstdc++'s */
};
void failure_start(const struct failure_symbols *s);

#endif
