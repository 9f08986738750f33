/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks with a page behind each that nobody may touch, and that nobody may touch once they were freed. */
#ifndef CSCHED_TESTGEN_HEAP_GUARD_H
#define CSCHED_TESTGEN_HEAP_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the process of a job, before anything is allocated. False: there is no room for it. */
bool heap_guard_begin(void);
bool heap_guard_on(void);
/* NULL: no guarded block is left; the caller takes one of another kind. */
void *heap_guard_alloc(size_t size);
/* Is it the address of a guarded block, or inside one? */
bool heap_guard_has(const void *p);
/* Of the block that begins here; 0: none does, or it was freed. */
size_t heap_guard_size(const void *p);
/* False: it is no block that could be freed. */
bool heap_guard_free(void *p);

enum heap_misuse { HEAP_FINE, HEAP_FREED, HEAP_OVERRUN };
/* What is wrong about an access to this address. */
enum heap_misuse heap_guard_misuse(uint64_t address);

/* The same for a C program: free(), malloc() and so on, with <sys/mman.h>. */
extern const char heap_guard_as_text[];

#endif
