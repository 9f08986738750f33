/* Code that a program runs but nobody wants to be sent to: the C and C++ run-time. */
#ifndef CSCHED_COMMON_RUNTIME_NAMES_H
#define CSCHED_COMMON_RUNTIME_NAMES_H

#include <stdbool.h>

/* A module by its file name, without directories; allocators, OpenMP, sanitizers and the shim are among them. */
bool runtime_module(const char *name);
/* A header of a library: code that was compiled into the program, but written elsewhere. */
bool runtime_header(const char *file);

#endif
