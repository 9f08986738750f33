/*
 * What strlen() and its like really look at. They read whole blocks, from before the string's
 * beginning to behind its end: what lies there is none of their business, and when another
 * thread changes it that is no race of theirs.
 */
#ifndef CSCHED_SYMTRACE_EXTRACT_TEXT_H
#define CSCHED_SYMTRACE_EXTRACT_TEXT_H

#include "analyzer/follow/machine.h"
#include "analyzer/symtrace/extract_level.h"

/*
 * The part of the access that counts; its size may be 0. Behind level_is_program(), for every access
 * of the program's: inside one call the blocks come one after the other.
 */
struct mach_access text_part(struct level *l, struct mach_run *run, const struct mach_access *a);

#endif
