/* Expressions of the Symbiosis format. All values are mathematical integers. */
#include "analyzer/symtrace/symbiosis.h"
#include "common/vec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NEST_LIMIT 200

struct parser {
	struct symbiosis_expr *x;
	const char *text, *at;
	int depth;
};

static expr_id fail(struct parser *p, const char *what)
{
	if (!p->x->error) {
		p->x->error = what;
		p->x->at = p->at - p->text;
	}
	return EXPR_NONE;
}

static void blanks(struct parser *p)
{
	while (isspace((unsigned char)*p->at))
		p->at++;
}

static bool ends_word(char c)
{
	return !c || isspace((unsigned char)c) || c == '(' || c == ')';
}

/* R-name-tid-n, CONST_5, 5 */
static expr_id leaf(struct parser *p)
{
	const char *start = p->at;
	char *end, *name;
	expr_id e;

	if (!strncmp(p->at, "CONST_", 6) || isdigit((unsigned char)*p->at) || *p->at == '-') {
		long long v = strtoll(p->at + (*p->at == 'C' ? 6 : 0), &end, 10);

		if (end == p->at || !ends_word(*end))
			return fail(p, "bad number");
		p->at = end;
		return expr_const(p->x->pool, EXPR_INT, v);
	}
	while (!ends_word(*p->at))
		p->at++;
	if (p->at == start || strncmp(start, "R-", 2))
		return fail(p, "value expected");
	name = xasprintf("%.*s", (int)(p->at - start), start);
	e = p->x->symbol(p->x->arg, name);
	free(name);
	return e ? e : fail(p, "no read of this name");
}

static const struct {
	const char *infix, *prefix;
	enum expr_op op;
	bool swap, negate, boolean;
	int level; /* binds: 1 weakest */
} operators[] = {
	{ "||", "Or", EX_BOR, false, false, true, 1 },
	{ "&&", "And", EX_BAND, false, false, true, 2 },
	{ "==", "Eq", EX_EQ, false, false, false, 3 },
	{ "!=", "Ne", EX_EQ, false, true, false, 3 },
	{ "<=", "Sle", EX_SLE, false, false, false, 4 },
	{ ">=", "Sge", EX_SLE, true, false, false, 4 },
	{ "<", "Slt", EX_SLT, false, false, false, 4 },
	{ ">", "Sgt", EX_SLT, true, false, false, 4 },
	{ NULL, "Ule", EX_SLE, false, false, false, 4 },
	{ NULL, "Uge", EX_SLE, true, false, false, 4 },
	{ NULL, "Ult", EX_SLT, false, false, false, 4 },
	{ NULL, "Ugt", EX_SLT, true, false, false, 4 },
	{ "+", "Add", EX_ADD, false, false, false, 5 },
	{ "-", "Sub", EX_SUB, false, false, false, 5 },
	{ "*", "Mul", EX_MUL, false, false, false, 6 },
	{ "/", "SDiv", EX_SDIV, false, false, false, 6 },
	{ "%", "SRem", EX_SREM, false, false, false, 6 },
};

#define NOPERATORS ((int)(sizeof operators / sizeof *operators))

/* A number used as a condition means "not zero", as in C. */
static expr_id as_sort(struct parser *p, expr_id e, bool boolean)
{
	struct expr_pool *pool = p->x->pool;
	bool is = expr_get(pool, e)->width == EXPR_BOOL;

	if (is == boolean)
		return e;
	if (boolean)
		return expr_unary(pool, EX_BNOT,
				  expr_binary(pool, EX_EQ, e, expr_const(pool, EXPR_INT, 0)));
	return expr_ite(pool, e, expr_const(pool, EXPR_INT, 1), expr_const(pool, EXPR_INT, 0));
}

static expr_id apply(struct parser *p, int o, expr_id a, expr_id b)
{
	struct expr_pool *pool = p->x->pool;
	expr_id e;

	if (!a || !b)
		return EXPR_NONE;
	a = as_sort(p, a, operators[o].boolean);
	b = as_sort(p, b, operators[o].boolean);
	e = operators[o].swap ? expr_binary(pool, operators[o].op, b, a) :
		expr_binary(pool, operators[o].op, a, b);
	return operators[o].negate ? expr_unary(pool, EX_BNOT, e) : e;
}

static expr_id infix(struct parser *p, int level);

static expr_id primary(struct parser *p)
{
	expr_id e;

	blanks(p);
	if (*p->at != '(')
		return leaf(p);
	if (p->depth++ > NEST_LIMIT)
		return fail(p, "nested too deeply");
	p->at++;
	e = infix(p, 1);
	blanks(p);
	if (e && *p->at != ')')
		return fail(p, "')' expected");
	p->at++;
	p->depth--;
	return e;
}

static int operator_at(struct parser *p, int level)
{
	blanks(p);
	for (int o = 0; o < NOPERATORS; o++)
		if (operators[o].infix && operators[o].level == level &&
		    !strncmp(p->at, operators[o].infix, strlen(operators[o].infix)))
			return o;
	return -1;
}

static expr_id infix(struct parser *p, int level)
{
	expr_id e = level > 6 ? primary(p) : infix(p, level + 1);
	int o;

	if (level > 6)
		return e;
	while (e && (o = operator_at(p, level)) >= 0) {
		p->at += strlen(operators[o].infix);
		e = apply(p, o, e, infix(p, level + 1));
	}
	return e;
}

static expr_id prefix(struct parser *p);

static void skip_width(struct parser *p)
{
	blanks(p);
	if (*p->at == 'w' && isdigit((unsigned char)p->at[1]))
		while (!ends_word(*p->at))
			p->at++;
}

static expr_id prefix_operation(struct parser *p)
{
	const char *start = p->at;
	size_t n;

	while (!ends_word(*p->at))
		p->at++;
	n = p->at - start;
	skip_width(p);
	if (n == 3 && !strncmp(start, "Not", 3)) {
		expr_id e = prefix(p);

		return e ? expr_unary(p->x->pool, EX_BNOT, as_sort(p, e, true)) : e;
	}
	for (int o = 0; o < NOPERATORS; o++) {
		if (strlen(operators[o].prefix) == n && !strncmp(start, operators[o].prefix, n)) {
			expr_id a = prefix(p);

			return apply(p, o, a, a ? prefix(p) : EXPR_NONE);
		}
	}
	p->at = start;
	return fail(p, "unknown operator");
}

static expr_id prefix(struct parser *p)
{
	expr_id e;

	blanks(p);
	if (*p->at != '(')
		return leaf(p);
	if (p->depth++ > NEST_LIMIT)
		return fail(p, "nested too deeply");
	p->at++;
	blanks(p);
	e = prefix_operation(p);
	blanks(p);
	if (e && *p->at != ')')
		return fail(p, "')' expected");
	p->at++;
	p->depth--;
	return e;
}

expr_id symbiosis_expr(struct symbiosis_expr *x, const char *text, bool is_prefix)
{
	struct parser p = { .x = x, .text = text, .at = text };
	expr_id e;

	x->error = NULL;
	e = is_prefix ? prefix(&p) : infix(&p, 1);
	blanks(&p);
	if (e && *p.at)
		return fail(&p, "end of expression expected");
	return e;
}
