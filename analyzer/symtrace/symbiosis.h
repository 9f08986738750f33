/*
 * Traces of the Symbiosis research prototype, read into our model so that both
 * can be measured on the same data. A directory with one file T<tid> per
 * thread; csched-sym(5) describes the lines.
 */
#ifndef CSCHED_SYMTRACE_SYMBIOSIS_H
#define CSCHED_SYMTRACE_SYMBIOSIS_H

#include "analyzer/symtrace/symtrace.h"

err_t symbiosis_read(const char *dir, struct sym_trace **out);

/* An expression of theirs, infix or KQuery prefix; used by the reader. */
struct symbiosis_expr {
	struct expr_pool *pool;
	/* The symbol of this name; it may belong to a read further down. */
	expr_id (*symbol)(void *arg, const char *name);
	void *arg;
	const char *error; /* what was wrong, after EXPR_NONE ... */
	size_t at;         /* ... and where in the text */
};

expr_id symbiosis_expr(struct symbiosis_expr *x, const char *text, bool prefix);

#endif
