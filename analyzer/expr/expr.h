/*
 * Expressions: what a value is, in terms of the values that were read.
 *
 * Hash-consed in a pool: equal expressions have equal ids, so comparing is
 * comparing integers and a shared sub-expression is stored once. The pool only
 * grows; ids stay valid for its lifetime. Constructors simplify (constants
 * fold, x+0 is x, extract of concat picks its part ...) so that a computation
 * whose inputs are all constants is again a constant.
 *
 * Sorts: bit-vectors of 1..64 bits (wider values are split by their users),
 * Booleans (width 0), and mathematical integers (width EXPR_INT), which only
 * traces from other tools use. Mixing sorts in one operator is a bug of the
 * caller and asserted.
 */
#ifndef CSCHED_SYMTRACE_EXPR_H
#define CSCHED_SYMTRACE_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t expr_id; /* 0 is "no expression" */

#define EXPR_NONE 0u
#define EXPR_BOOL 0
#define EXPR_INT 255

enum expr_op {
	EX_NONE,
	EX_CONST,  /* .value */
	EX_SYMBOL, /* .value is the symbol number; see expr_symbol_name() */
	/* bit-vector or integer -> same sort */
	EX_ADD, EX_SUB, EX_MUL, EX_NEG,
	EX_UDIV, EX_UREM, EX_SDIV, EX_SREM,
	EX_AND, EX_OR, EX_XOR, EX_NOT,
	EX_SHL, EX_LSHR, EX_ASHR, /* shift amount has the width of the operand */
	/* change of width */
	EX_EXTRACT, /* a, .value = lowest bit; width is the result's */
	EX_CONCAT,  /* a: high part, b: low part */
	EX_ZEXT, EX_SEXT,
	/* comparisons -> Boolean */
	EX_EQ, EX_ULT, EX_ULE, EX_SLT, EX_SLE, /* INT uses SLT/SLE */
	/* Boolean */
	EX_BNOT, EX_BAND, EX_BOR,
	/* a: Boolean, b, c: same sort */
	EX_ITE,
	EX_OP_COUNT
};

struct expr {
	uint8_t op;     /* enum expr_op */
	uint8_t width;  /* EXPR_BOOL, 1..64, or EXPR_INT */
	bool concrete;  /* no symbol below */
	expr_id a, b, c;
	uint64_t value; /* CONST (masked to width), SYMBOL number, EXTRACT bit */
};

struct expr_pool;

struct expr_pool *expr_pool_new(void);
void expr_pool_free(struct expr_pool *p);
const struct expr *expr_get(const struct expr_pool *p, expr_id e);
size_t expr_count(const struct expr_pool *p);

expr_id expr_const(struct expr_pool *p, unsigned width, uint64_t value);
expr_id expr_bool(struct expr_pool *p, bool value);
/* A fresh symbol; the name is copied and shown to people. */
expr_id expr_symbol(struct expr_pool *p, unsigned width, const char *name);
const char *expr_symbol_name(const struct expr_pool *p, uint64_t symbol);
size_t expr_symbol_count(const struct expr_pool *p);

expr_id expr_unary(struct expr_pool *p, enum expr_op op, expr_id a);
expr_id expr_binary(struct expr_pool *p, enum expr_op op, expr_id a, expr_id b);
expr_id expr_ite(struct expr_pool *p, expr_id cond, expr_id yes, expr_id no);
expr_id expr_extract(struct expr_pool *p, expr_id a, unsigned low, unsigned width);
expr_id expr_extend(struct expr_pool *p, bool sign, expr_id a, unsigned width);

/*
 * Value under an assignment of the symbols (indexed by symbol number).
 * Deterministic, total: division by zero follows SMT-LIB (all ones / dividend).
 * scratch memoises inside one call; linear in the number of distinct nodes.
 */
uint64_t expr_eval(const struct expr_pool *p, expr_id e, const uint64_t *symbols);

/*
 * The same for many expressions under one assignment that is filled in step
 * by step: a node is computed once between two resets, so its symbols must
 * have their values by the time it is first asked for.
 */
struct expr_memo;

struct expr_memo *expr_memo_new(const struct expr_pool *p);
void expr_memo_free(struct expr_memo *m);
void expr_memo_reset(struct expr_memo *m); /* constant time */
uint64_t expr_memo_eval(struct expr_memo *m, expr_id e, const uint64_t *symbols);

/* Every symbol number in e, each once; returns how many. cb may be NULL. */
size_t expr_symbols(const struct expr_pool *p, expr_id e,
		    void (*cb)(void *arg, uint64_t symbol), void *arg);

/* Infix text in C's notation for people and reports; malloc'd. */
char *expr_text(const struct expr_pool *p, expr_id e);

#endif
