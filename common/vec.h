/*
 * Typed growing arrays.
 *
 *   VEC(uint32_t) ids = { 0 };
 *   vec_push(&ids, 7);
 *   for (size_t i = 0; i < ids.n; i++) use(ids.v[i]);
 *   vec_free(&ids);
 *
 * Running out of memory ends the process with status 4: the analyzer cannot
 * give a partial answer without memory. Not for the shim.
 */
#ifndef CSCHED_COMMON_VEC_H
#define CSCHED_COMMON_VEC_H

#include <stddef.h>
#include <stdlib.h>

#define VEC(type)           \
	struct {            \
		type *v;    \
		size_t n;   \
		size_t cap; \
	}

#define vec_push(vec, ...)                                                     \
	do {                                                                   \
		if ((vec)->n == (vec)->cap)                                    \
			(vec)->v = vec_grow((vec)->v, &(vec)->cap,             \
					    sizeof *(vec)->v, (vec)->n + 1);   \
		(vec)->v[(vec)->n++] = (__VA_ARGS__);                          \
	} while (0)

#define vec_reserve(vec, want)                                              \
	do {                                                                \
		if ((vec)->cap < (want))                                    \
			(vec)->v = vec_grow((vec)->v, &(vec)->cap,          \
					    sizeof *(vec)->v, (want));      \
	} while (0)

#define vec_free(vec)                 \
	do {                          \
		free((vec)->v);       \
		(vec)->v = NULL;      \
		(vec)->n = 0;         \
		(vec)->cap = 0;       \
	} while (0)

void *vec_grow(void *v, size_t *cap, size_t size, size_t want);

/* malloc family that never returns NULL (same rule as above). */
void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
