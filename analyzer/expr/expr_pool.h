/*
 * Inside of the expression pool, for the files of this room only: the text
 * reader needs to build a node exactly as written, without simplification.
 */
#ifndef CSCHED_SYMTRACE_EXPR_POOL_H
#define CSCHED_SYMTRACE_EXPR_POOL_H

#include "analyzer/expr/expr.h"

/* The node for exactly these fields; no simplification, no checks. */
expr_id expr_intern(struct expr_pool *p, enum expr_op op, unsigned width, expr_id a, expr_id b,
		    expr_id c, uint64_t value);

/* What one operator computes; the arguments are masked to their widths. */
uint64_t expr_apply(const struct expr_pool *p, const struct expr *n, uint64_t a, uint64_t b,
		    uint64_t c);

uint64_t expr_mask(unsigned width, uint64_t value);

/*
 * Working memory of the walks over the pool, kept between calls so that a
 * walk costs only what it visits. Valid where stamp[id] == epoch.
 */
struct expr_scratch {
	uint32_t *stamp;
	uint64_t *value;
	expr_id *stack;
	size_t cap, stack_cap;
	uint32_t epoch;
};

struct expr_scratch *expr_scratch(const struct expr_pool *p);
/* A new epoch, with room for n nodes. */
void expr_scratch_next(struct expr_scratch *s, size_t n);
void expr_scratch_free(struct expr_scratch *s);

/* name, number of operands */
struct expr_op_info {
	const char *name;
	const char *infix;
	uint8_t arity;
};

extern const struct expr_op_info expr_ops[EX_OP_COUNT];

#endif
