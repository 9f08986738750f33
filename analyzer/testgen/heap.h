/* SPDX-License-Identifier: GPL-2.0-or-later */
/* free() and realloc() that show the use of freed memory every time, for the libraries of this process. */
#ifndef CSCHED_TESTGEN_HEAP_H
#define CSCHED_TESTGEN_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* From here on what this process has loaded calls these; not the C library itself, and not this program. */
void heap_install(void);
void heap_free(void *p);
void *heap_realloc(void *p, size_t size);

/* The same as C text, for a test: malloc_usable_size() and the functions of <string.h> are declared. */
extern const char heap_as_text[];

/* What stands in the place of this function of the C library, or 0. */
uint64_t heap_ours(const char *name);
/* Of a block: bytes that belong to it; 0: nothing is known. */
size_t heap_size(const void *p);
void *heap_malloc(size_t size);
void *heap_calloc(size_t n, size_t size);
char *heap_strdup(const char *s);
char *heap_strndup(const char *s, size_t most);

#endif
