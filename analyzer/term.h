/*
 * The terminal: colour, width, characters, and a progress line.
 *
 * Colour follows --color, then NO_COLOR, then whether the stream is a
 * terminal. Text that comes from a trace goes through term_text(): a traced
 * program's strings must not steer the reader's terminal.
 */
#ifndef CSCHED_ANALYZER_TERM_H
#define CSCHED_ANALYZER_TERM_H

#include "common/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum term_when { TERM_AUTO, TERM_ALWAYS, TERM_NEVER };

struct term {
	FILE *f;
	bool tty;
	bool color;
	bool unicode;   /* the locale's characters are UTF-8 */
	unsigned width; /* columns; 80 when unknown */
};

enum term_style {
	TERM_PLAIN,
	TERM_BOLD,
	TERM_DIM,
	TERM_RED,
	TERM_GREEN,
	TERM_YELLOW,
	TERM_BLUE,
	TERM_MAGENTA,
	TERM_CYAN,
};

/* "auto", "always", "never"; false: none of them. */
bool term_when_parse(const char *s, enum term_when *when);
void term_init(struct term *t, FILE *f, enum term_when when);

/* The escape sequence that starts a style (TERM_PLAIN ends it), "" without colour. */
const char *term_style(const struct term *t, enum term_style style);

/* Prints formatted text in a style. */
void term_print(const struct term *t, enum term_style style, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds n hostile bytes: what is not to be shown (common/utf8.h) becomes \n, \t, \xNN. */
void term_text(struct strbuf *b, const char *s, size_t n);
/* The same as a malloc'd string. */
char *term_text_of(const char *s, size_t n);

/*
 * One line on standard error that overwrites itself, at most ten times a
 * second, only when standard error is a terminal.
 *
 *   struct progress p = { "machine" };
 *   while (...) progress_at(&p, done, total);     total 0: unknown
 *   progress_end(&p);
 */
struct progress {
	const char *what;
	uint64_t last_ns;
	int state; /* 0 not asked yet, 1 no terminal, 2 on */
	bool shown;
};

void progress_at(struct progress *p, uint64_t done, uint64_t total);
/* In words instead of a share, when one number does not say how far the work is. */
void progress_words(struct progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void progress_end(struct progress *p);

#endif
