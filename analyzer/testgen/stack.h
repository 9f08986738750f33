/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Crash stacks as people have them: text of debuggers, sanitizers and run-time libraries. */
#ifndef CSCHED_TESTGEN_STACK_H
#define CSCHED_TESTGEN_STACK_H

#include "common/err.h"
#include "common/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define STACK_FRAMES 256   /* of one thread that are kept */
#define STACK_THREADS 64
#define STACK_LINE 4096    /* bytes of a line; the rest of a longer one is ignored */

struct stack_frame {
	char *function;  /* without parameters; NULL: not known */
	char *file;      /* or NULL */
	unsigned line;   /* 0: not known */
	char *module;    /* path or file name, or NULL */
	uint64_t offset; /* in the module, when has_offset */
	bool has_offset;
	unsigned text_line; /* where it stands */
};

struct stack_thread {
	VEC(struct stack_frame) frames; /* innermost first */
	bool fails;     /* the text says that it is the one */
	bool stopped;   /* it got the signal by which somebody stopped a program that hung */
	unsigned number; /* gdb's; 0: it has none */
	bool secondary; /* of a report: where memory was freed or allocated, a thread made */
};

enum stack_kind { STACK_UNKNOWN, STACK_CRASH, STACK_ABORT, STACK_ARITHMETIC, STACK_DEADLOCK,
		  STACK_FREED,   /* a sanitizer or valgrind: memory was used that had been freed ... */
		  STACK_OVERRUN, /* ... or that lies behind a block */
		  STACK_RACE,    /* ThreadSanitizer */
		  STACK_KINDS };

struct stack {
	VEC(struct stack_thread) threads;
	enum stack_kind kind;
	const char *format;  /* "gdb", ...: of its first frame */
	unsigned odd_line;   /* the first one that begins as a frame does and is none; 0: there is none */
	char odd[48];        /* how it begins, printable */
};

/* Text or a core file; path for messages. */
err_t stack_read(FILE *f, const char *path, struct stack *out);
/* Is it a recorded run (a directory, a pack), whose stack only the machine knows? */
bool stack_is_trace(const char *path);
/* stack_core.c: of a core file. */
err_t stack_read_core(const char *path, int fd, struct stack *out);
/* Text. */
err_t stack_parse(FILE *f, const char *path, struct stack *out);
/* "; line 3 ('#1') ...", malloc'd: what could not be read, and what was expected; "" when there is no such line. */
char *stack_odd_text(const struct stack *s);
void stack_free(struct stack *s);
const char *stack_kind_name(enum stack_kind k);

#endif
