/* A string that grows. Always NUL-terminated once something was added. */
#ifndef CSCHED_COMMON_STRBUF_H
#define CSCHED_COMMON_STRBUF_H

#include <stdarg.h>
#include <stddef.h>

struct strbuf {
	char *s;
	size_t n;
	size_t cap;
};

void strbuf_add(struct strbuf *b, const void *data, size_t n);
void strbuf_str(struct strbuf *b, const char *s);
void strbuf_char(struct strbuf *b, char c);
void strbuf_fmt(struct strbuf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A word of a command line, quoted for a shell where it must be, and harmless on a terminal. */
void strbuf_word(struct strbuf *b, const char *word, size_t n);
/* The string (never NULL), handed to the caller; the buffer is empty again. */
char *strbuf_take(struct strbuf *b);
void strbuf_free(struct strbuf *b);

#endif
