/*
 * Reading csched-sym(5): words, numbers, names and expressions. sym_read.c
 * has the statements. Every error names FILE:LINE:COLUMN.
 */
#ifndef CSCHED_SYMTRACE_SYM_PARSE_H
#define CSCHED_SYMTRACE_SYM_PARSE_H

#include "analyzer/symtrace/sym_names.h"

enum sym_token { TOK_END, TOK_LINE, TOK_WORD, TOK_STRING, TOK_OPEN, TOK_CLOSE };

/* Which table a name is looked up in. */
enum sym_space { NAME_SYMBOL, NAME_LET, NAME_VAR, NAME_OBJECT, NAME_STACK, NAME_THREAD };

struct sym_name {
	char *name;
	enum sym_space space;
	uint32_t value;
};

struct sym_parser {
	const char *file;
	const char *text, *at, *end;
	const char *line_start;
	unsigned line;
	/* The current token; text is unescaped and owned here. */
	enum sym_token tok;
	char *word;
	size_t word_cap;
	unsigned tok_line, tok_column;
	struct sym_name *names; /* open addressing; name NULL is empty */
	size_t nnames, cap_names;
	struct sym_trace *t;
};

err_t sym_parse_error(const struct sym_parser *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
err_t sym_next(struct sym_parser *p);

/* These take the current token and step on. */
err_t sym_take_text(struct sym_parser *p, const char *what, char **out); /* word or string */
err_t sym_take_number(struct sym_parser *p, const char *what, uint64_t *out);
err_t sym_take_index(struct sym_parser *p, const char *what, uint32_t *out);
err_t sym_take_width(struct sym_parser *p, uint8_t *out);
/* want: the width a bare number gets, or -1 when the place does not say. */
err_t sym_take_expr(struct sym_parser *p, int want, expr_id *out);
bool sym_at_word(const struct sym_parser *p, const char *word);

bool sym_name_find(const struct sym_parser *p, enum sym_space space, const char *name,
		   uint32_t *out);
err_t sym_name_define(struct sym_parser *p, enum sym_space space, const char *name,
		      uint32_t value);
err_t sym_take_name(struct sym_parser *p, enum sym_space space, uint32_t *out);

#endif
