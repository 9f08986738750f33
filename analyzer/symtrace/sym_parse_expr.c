/*
 * Expressions of the .sym text: prefix form, sorts checked as they are built.
 *
 * A number may carry its width (5:32, 5:int) or take it from its surroundings:
 * the other operand, or the variable it is written to.
 */
#include "analyzer/expr/expr_pool.h"
#include "analyzer/symtrace/sym_parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Far above what the writer nests; keeps hostile input off our stack. */
#define NEST_LIMIT 200

/* An operand; `bare` is a number still without width. */
struct operand {
	expr_id e;
	bool bare;
	uint64_t value;
	struct sym_parser at; /* for error messages only */
};

static unsigned width_of(struct sym_parser *p, expr_id e)
{
	return expr_get(p->t->pool, e)->width;
}

static err_t settle(struct sym_parser *p, struct operand *o, int want)
{
	if (!o->bare)
		return NULL;
	if (want < 0 || want == EXPR_BOOL)
		return sym_parse_error(&o->at, "number of unknown width: write N:WIDTH");
	o->e = expr_const(p->t->pool, want, o->value);
	o->bare = false;
	return NULL;
}

static err_t take_literal(struct sym_parser *p, struct operand *o)
{
	uint64_t width;
	char *end;

	errno = 0;
	o->value = strtoull(p->word, &end, 0);
	if (errno || end == p->word || (*end && *end != ':'))
		return sym_parse_error(p, "bad number '%s'", p->word);
	o->bare = !*end;
	if (*end == ':' && !strcmp(end, ":int")) {
		o->e = expr_const(p->t->pool, EXPR_INT, o->value);
	} else if (*end == ':') {
		width = strtoull(end + 1, &end, 10);
		if (*end || width < 1 || width > 64)
			return sym_parse_error(p, "bad width in '%s'", p->word);
		o->e = expr_const(p->t->pool, width, o->value);
	}
	return sym_next(p);
}

static err_t take_word(struct sym_parser *p, struct operand *o)
{
	if (isdigit((unsigned char)p->word[0]) || p->word[0] == '-')
		return take_literal(p, o);
	if (!strcmp(p->word, "true") || !strcmp(p->word, "false"))
		o->e = expr_bool(p->t->pool, p->word[0] == 't');
	else if (!sym_name_find(p, NAME_LET, p->word, &o->e) &&
		 !sym_name_find(p, NAME_SYMBOL, p->word, &o->e))
		return sym_parse_error(p, "unknown value '%s'", p->word);
	return sym_next(p);
}

static err_t take_operand(struct sym_parser *p, int depth, struct operand *o);

static err_t take_bits(struct sym_parser *p, const char *what, unsigned *out)
{
	struct sym_parser at = *p;
	uint64_t v;

	TRY(sym_take_number(p, what, &v));
	if (v > 64)
		return sym_parse_error(&at, "%s: at most 64", what);
	*out = v;
	return NULL;
}

static err_t take_width_change(struct sym_parser *p, enum expr_op op, int depth, expr_id *out)
{
	unsigned low = 0, width, inner;
	struct operand a;

	if (op == EX_EXTRACT)
		TRY(take_bits(p, "lowest bit", &low));
	TRY(take_bits(p, "width", &width));
	TRY(take_operand(p, depth, &a));
	TRY(settle(p, &a, -1));
	inner = width_of(p, a.e);
	if (inner == EXPR_BOOL || inner == EXPR_INT || !width ||
	    (op == EX_EXTRACT ? low + width > inner : width < inner))
		return sym_parse_error(&a.at, "%s: impossible width", expr_ops[op].name);
	*out = expr_intern(p->t->pool, op, width, a.e, 0, 0, low);
	return NULL;
}

static bool sort_fits(enum expr_op op, unsigned w)
{
	switch (op) {
	case EX_EQ: return true;
	case EX_BNOT: case EX_BAND: case EX_BOR: return w == EXPR_BOOL;
	case EX_AND: case EX_OR: case EX_XOR: case EX_NOT: case EX_SHL: case EX_LSHR:
	case EX_ASHR: case EX_UDIV: case EX_UREM: case EX_ULT: case EX_ULE: case EX_CONCAT:
		return w != EXPR_BOOL && w != EXPR_INT;
	default: return w != EXPR_BOOL;
	}
}

static err_t take_same_sort(struct sym_parser *p, enum expr_op op, int depth, expr_id *out)
{
	struct operand o[2] = { 0 };
	int n = expr_ops[op].arity;
	unsigned w;

	for (int i = 0; i < n; i++)
		TRY(take_operand(p, depth, &o[i]));
	if (n == 2) {
		TRY(settle(p, &o[0], o[1].bare ? -1 : (int)width_of(p, o[1].e)));
		TRY(settle(p, &o[1], op == EX_CONCAT ? -1 : (int)width_of(p, o[0].e)));
	} else {
		TRY(settle(p, &o[0], -1));
	}
	w = width_of(p, o[0].e);
	if (!sort_fits(op, w) || (n == 2 && !sort_fits(op, width_of(p, o[1].e))))
		return sym_parse_error(&o[0].at, "%s: operand of the wrong sort",
				       expr_ops[op].name);
	if (op == EX_CONCAT) {
		w += width_of(p, o[1].e);
		if (w > 64)
			return sym_parse_error(&o[0].at, "concat: wider than 64 bits");
	} else if (n == 2 && w != width_of(p, o[1].e)) {
		return sym_parse_error(&o[1].at, "%s: operands differ in width",
				       expr_ops[op].name);
	}
	if (op >= EX_EQ && op <= EX_SLE)
		w = EXPR_BOOL;
	*out = expr_intern(p->t->pool, op, w, o[0].e, o[1].e, 0, 0);
	return NULL;
}

static err_t take_ite(struct sym_parser *p, int depth, expr_id *out)
{
	struct operand c, yes, no;

	TRY(take_operand(p, depth, &c));
	TRY(take_operand(p, depth, &yes));
	TRY(take_operand(p, depth, &no));
	TRY(settle(p, &c, -1));
	TRY(settle(p, &yes, no.bare ? -1 : (int)width_of(p, no.e)));
	TRY(settle(p, &no, width_of(p, yes.e)));
	if (width_of(p, c.e) != EXPR_BOOL)
		return sym_parse_error(&c.at, "ite: first operand is no condition");
	if (width_of(p, yes.e) != width_of(p, no.e))
		return sym_parse_error(&no.at, "ite: operands differ in width");
	*out = expr_intern(p->t->pool, EX_ITE, width_of(p, yes.e), c.e, yes.e, no.e, 0);
	return NULL;
}

static err_t take_application(struct sym_parser *p, int depth, expr_id *out)
{
	enum expr_op op = EX_ADD;

	TRY(sym_next(p));
	if (p->tok != TOK_WORD)
		return sym_parse_error(p, "operator expected");
	while (op < EX_OP_COUNT && strcmp(expr_ops[op].name, p->word))
		op++;
	if (op == EX_OP_COUNT)
		return sym_parse_error(p, "unknown operator '%s'", p->word);
	TRY(sym_next(p));
	if (op == EX_EXTRACT || op == EX_ZEXT || op == EX_SEXT)
		TRY(take_width_change(p, op, depth, out));
	else if (op == EX_ITE)
		TRY(take_ite(p, depth, out));
	else
		TRY(take_same_sort(p, op, depth, out));
	if (p->tok != TOK_CLOSE)
		return sym_parse_error(p, "')' expected");
	return sym_next(p);
}

static err_t take_operand(struct sym_parser *p, int depth, struct operand *o)
{
	*o = (struct operand){ .at = *p };
	if (depth > NEST_LIMIT)
		return sym_parse_error(p, "nested too deeply: use let");
	if (p->tok == TOK_OPEN)
		return take_application(p, depth + 1, &o->e);
	if (p->tok == TOK_WORD)
		return take_word(p, o);
	return sym_parse_error(p, "value expected");
}

err_t sym_take_expr(struct sym_parser *p, int want, expr_id *out)
{
	struct operand o;

	TRY(take_operand(p, 0, &o));
	TRY(settle(p, &o, want));
	if (want >= 0 && (int)width_of(p, o.e) != want)
		return sym_parse_error(&o.at, want == EXPR_BOOL ? "no condition" :
				       "value of another width");
	*out = o.e;
	return NULL;
}
