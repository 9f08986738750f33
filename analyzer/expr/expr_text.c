/* Expressions for people: C's notation, with signed comparison of constants. */
#include "analyzer/expr/expr_pool.h"
#include "common/strbuf.h"
#include "common/vec.h"

#include <inttypes.h>

/* Deeper or larger than this nobody reads; also bounds the recursion. */
#define TEXT_DEPTH 64
#define TEXT_LENGTH 2000

static void text_const(struct strbuf *b, const struct expr *n)
{
	if (n->width == EXPR_BOOL)
		strbuf_str(b, n->value ? "true" : "false");
	else if (n->width == EXPR_INT)
		strbuf_fmt(b, "%" PRId64, (int64_t)n->value);
	else if (n->value < 65536)
		strbuf_fmt(b, "%" PRIu64, n->value);
	else if (n->width >= 8 && n->value > expr_mask(n->width, UINT64_MAX) - 65536)
		strbuf_fmt(b, "-%" PRIu64, expr_mask(n->width, UINT64_MAX) - n->value + 1);
	else
		strbuf_fmt(b, "0x%" PRIx64, n->value);
}

static void text(struct strbuf *b, const struct expr_pool *p, expr_id e, int depth);

static const char *negated(enum expr_op op)
{
	switch (op) {
	case EX_EQ: return "!=";
	case EX_ULT: case EX_SLT: return ">=";
	case EX_ULE: case EX_SLE: return ">";
	default: return NULL;
	}
}

static void text_infix(struct strbuf *b, const struct expr_pool *p, const struct expr *n,
		       const char *op, int depth)
{
	strbuf_char(b, '(');
	text(b, p, n->a, depth + 1);
	strbuf_fmt(b, " %s ", op);
	text(b, p, n->b, depth + 1);
	strbuf_char(b, ')');
}

static void text(struct strbuf *b, const struct expr_pool *p, expr_id e, int depth)
{
	const struct expr *n = expr_get(p, e);

	if (depth > TEXT_DEPTH || b->n > TEXT_LENGTH) {
		strbuf_str(b, "...");
		return;
	}
	switch ((enum expr_op)n->op) {
	case EX_NONE: strbuf_str(b, "none"); return;
	case EX_CONST: text_const(b, n); return;
	case EX_SYMBOL: strbuf_str(b, expr_symbol_name(p, n->value)); return;
	case EX_EXTRACT:
		text(b, p, n->a, depth + 1);
		strbuf_fmt(b, "[%" PRIu64 ":%" PRIu64 "]", n->value + n->width - 1, n->value);
		return;
	case EX_CONCAT:
		strbuf_str(b, "concat(");
		text(b, p, n->a, depth + 1);
		strbuf_str(b, ", ");
		text(b, p, n->b, depth + 1);
		strbuf_char(b, ')');
		return;
	case EX_ZEXT: case EX_SEXT:
		if (n->op == EX_SEXT)
			strbuf_fmt(b, "(int%u_t)", n->width);
		text(b, p, n->a, depth + 1);
		return;
	case EX_ITE:
		strbuf_char(b, '(');
		text(b, p, n->a, depth + 1);
		strbuf_str(b, " ? ");
		text(b, p, n->b, depth + 1);
		strbuf_str(b, " : ");
		text(b, p, n->c, depth + 1);
		strbuf_char(b, ')');
		return;
	case EX_BNOT: {
		const struct expr *inner = expr_get(p, n->a);

		if (negated(inner->op)) {
			text_infix(b, p, inner, negated(inner->op), depth);
			return;
		}
		break;
	}
	default:
		break;
	}
	if (expr_ops[n->op].arity == 2) {
		text_infix(b, p, n, expr_ops[n->op].infix, depth);
	} else {
		strbuf_str(b, expr_ops[n->op].infix);
		text(b, p, n->a, depth + 1);
	}
}

char *expr_text(const struct expr_pool *p, expr_id e)
{
	struct strbuf b = { 0 };

	text(&b, p, e, 0);
	return strbuf_take(&b);
}
