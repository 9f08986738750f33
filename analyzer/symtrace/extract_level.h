/*
 * Whose code an instruction is.
 *
 * The C library keeps the locks, heap and streams it manages in memory that
 * all threads touch; showing that to a person would bury the bug. So accesses
 * count when they are made by the program's own code or by a library function
 * that works on the program's data on its behalf (memcpy, strlen ...). What
 * the rest of the runtime *writes* into locations the program shares (free()
 * scribbling over a block) still counts, with its concrete value.
 */
#ifndef CSCHED_SYMTRACE_EXTRACT_LEVEL_H
#define CSCHED_SYMTRACE_EXTRACT_LEVEL_H

#include "analyzer/image/image.h"

struct level;

struct level *level_new(struct img_set *images);
void level_free(struct level *l);

/* The module that holds pc is the C library, the loader or the shim. */
bool level_is_runtime(struct level *l, uint64_t pc);

/* A sanitizer is at work, and this is where it keeps what may be touched. */
bool level_is_shadow(const struct level *l, uint64_t address);

/* Code of the program itself, not of its language's library. */
bool level_is_own(struct level *l, uint64_t pc);

/*
 * Tells the level of the access at pc by this thread, keeping track of which
 * library function the thread called last. Must see every access.
 */
bool level_is_program(struct level *l, uint32_t thread, uint64_t pc);

/* The thread's last access was one of strlen() or its like, which read text in blocks; the first of a call. */
enum level_scan { LEVEL_NO_SCAN, LEVEL_SCAN_BEGINS, LEVEL_SCAN };
enum level_scan level_scan(struct level *l, uint32_t thread);

/* What extract_text.c remembers of such a call. */
struct level_text {
	uint64_t start[2]; /* of its strings */
	uint64_t insn;     /* the block being read ... */
	uint64_t block;    /* ... its address ... */
	bool ended;        /* ... and the text ended in it */
};
struct level_text *level_text(struct level *l, uint32_t thread);

/* The thread begins at pc: in the middle of memcpy, say. */
void level_begin(struct level *l, uint32_t thread, uint64_t pc);

/* Is this instruction part of a call that writes text for people (printf ...)? */
bool level_is_printing(struct level *l, uint32_t thread, uint64_t pc);

/* Where a function that hands out or takes back memory is called. */
enum level_memory {
	LEVEL_NO_MEMORY,
	LEVEL_MEMORY_STUB,    /* the program's PLT entry of it */
	LEVEL_MEMORY_RUNTIME, /* the C library's own, or the loader's */
	LEVEL_MEMORY_ENTRY,   /* its first instructions: whoever comes from a call comes without a PLT */
};
/* name: "malloc", "_Znwm" ... */
enum level_memory level_memory(struct level *l, uint64_t pc, const char **name);

/* The library function thread called last from program code ("memcpy"), or "". */
const char *level_callee(struct level *l, uint32_t thread);

#endif
