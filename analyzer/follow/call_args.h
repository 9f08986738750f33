#ifndef CSCHED_MACHINE_CALL_ARGS_H
#define CSCHED_MACHINE_CALL_ARGS_H

#include <stdint.h>

/* Arguments of system call nr; 6 when that is not known. */
unsigned mach_call_args(uint64_t nr);

#endif
