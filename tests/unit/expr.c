/* Expressions: simplification never changes a value. */
#include "analyzer/expr/expr.h"
#include "tests/lib/check.h"

#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252ull;

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 11;
}

#define SYMBOLS 4

static uint64_t mask(unsigned w, uint64_t v)
{
	return w == 0 ? v & 1 : w >= 64 ? v : v & ((1ull << w) - 1);
}

static int64_t sx(unsigned w, uint64_t v)
{
	return w >= 64 ? (int64_t)v : (int64_t)(v << (64 - w)) >> (64 - w);
}

/* An expression and, computed beside it without the pool, its value. */
struct both {
	expr_id e;
	uint64_t v;
	unsigned w;
};

static struct both leaf(struct expr_pool *p, const expr_id *sym, const uint64_t *val, unsigned w)
{
	unsigned s = rnd() % SYMBOLS;
	struct both b = { .w = w };

	if (rnd() % 3) {
		b.v = mask(w, rnd() % 4 ? rnd() % 5 : -(rnd() % 3));
		b.e = expr_const(p, w, b.v);
	} else if (expr_get(p, sym[s])->width >= w) {
		unsigned low = rnd() % (expr_get(p, sym[s])->width - w + 1);

		b.v = mask(w, val[s] >> low);
		b.e = expr_extract(p, sym[s], low, w);
	} else {
		bool sign = rnd() % 2;
		unsigned sw = expr_get(p, sym[s])->width;

		b.v = mask(w, sign ? (uint64_t)sx(sw, val[s]) : val[s]);
		b.e = expr_extend(p, sign, sym[s], w);
	}
	return b;
}

static uint64_t model(enum expr_op op, unsigned w, uint64_t a, uint64_t b)
{
	int64_t sa = sx(w, a), sb = sx(w, b);

	switch (op) {
	case EX_ADD: return a + b;
	case EX_SUB: return a - b;
	case EX_MUL: return a * b;
	case EX_UDIV: return b ? a / b : ~0ull;
	case EX_UREM: return b ? a % b : a;
	case EX_SDIV: return !b ? (sa < 0 ? 1 : ~0ull) : sb == -1 ? 0 - a : (uint64_t)(sa / sb);
	case EX_SREM: return !b ? a : sb == -1 ? 0 : (uint64_t)(sa % sb);
	case EX_AND: return a & b;
	case EX_OR: return a | b;
	case EX_XOR: return a ^ b;
	case EX_SHL: return b >= w ? 0 : a << b;
	case EX_LSHR: return b >= w ? 0 : a >> b;
	case EX_ASHR: return (uint64_t)(sa >> (b >= w ? 63 : b));
	case EX_EQ: return a == b;
	case EX_ULT: return a < b;
	case EX_ULE: return a <= b;
	case EX_SLT: return sa < sb;
	case EX_SLE: return sa <= sb;
	default: return 0;
	}
}

static struct both build(struct expr_pool *p, const expr_id *sym, const uint64_t *val,
			 unsigned w, int depth)
{
	static const enum expr_op ops[] = { EX_ADD, EX_SUB, EX_MUL, EX_UDIV, EX_UREM, EX_SDIV,
		EX_SREM, EX_AND, EX_OR, EX_XOR, EX_SHL, EX_LSHR, EX_ASHR };
	static const enum expr_op cmps[] = { EX_EQ, EX_ULT, EX_ULE, EX_SLT, EX_SLE };
	struct both a, b, c, r = { .w = w };

	if (depth == 0)
		return leaf(p, sym, val, w);
	a = build(p, sym, val, w, depth - 1);
	b = rnd() % 8 ? build(p, sym, val, w, depth - 1) : a;
	switch (rnd() % 6) {
	case 0: { /* ite over a comparison, its condition negated at times */
		enum expr_op op = cmps[rnd() % 5];
		expr_id cond = expr_binary(p, op, a.e, b.e);
		bool yes = model(op, w, a.v, b.v);

		if (rnd() % 2) {
			cond = expr_unary(p, EX_BNOT, cond);
			yes = !yes;
		}
		c = build(p, sym, val, w, depth - 1);
		r.e = expr_ite(p, cond, a.e, c.e);
		r.v = yes ? a.v : c.v;
		return r;
	}
	case 1:
		if (rnd() % 2) {
			r.e = expr_unary(p, EX_NOT, a.e);
			r.v = mask(w, ~a.v);
		} else {
			r.e = expr_unary(p, EX_NEG, a.e);
			r.v = mask(w, -a.v);
		}
		return r;
	case 2:
		if (w >= 2) {
			unsigned hi = 1 + rnd() % (w - 1), lo = w - hi;

			a = build(p, sym, val, hi, depth - 1);
			b = build(p, sym, val, lo, depth - 1);
			r.e = expr_binary(p, EX_CONCAT, a.e, b.e);
			r.v = mask(w, a.v << lo | b.v);
			return r;
		} /* fall through */
	case 3:
		if (w < 64) {
			unsigned big = w + 1 + rnd() % (64 - w), low = rnd() % (big - w + 1);

			a = build(p, sym, val, big, depth - 1);
			r.e = expr_extract(p, a.e, low, w);
			r.v = mask(w, a.v >> low);
			return r;
		} /* fall through */
	default: {
		enum expr_op op = ops[rnd() % (sizeof ops / sizeof *ops)];

		r.e = expr_binary(p, op, a.e, b.e);
		r.v = mask(w, model(op, w, a.v, b.v));
		return r;
	}
	}
}

static void random_values(void)
{
	unsigned wrong = 0, total = 0;

	for (int round = 0; round < 300; round++) {
		struct expr_pool *p = expr_pool_new();
		expr_id sym[SYMBOLS];
		uint64_t val[SYMBOLS];

		for (int i = 0; i < SYMBOLS; i++) {
			static const unsigned widths[] = { 1, 8, 32, 64 };

			sym[i] = expr_symbol(p, widths[i], "s");
			val[i] = mask(widths[i], rnd() % 3 ? rnd() : rnd() % 3);
		}
		for (int i = 0; i < 200; i++) {
			struct both b = build(p, sym, val, 1 + rnd() % 64, rnd() % 5);

			total++;
			if (expr_eval(p, b.e, val) != b.v || expr_get(p, b.e)->width != b.w)
				wrong++;
		}
		expr_pool_free(p);
	}
	CHECK(!wrong, "%u random expressions keep their value (%u wrong)", total, wrong);
}

static void counts(void *arg, uint64_t s)
{
	(void)s;
	++*(int *)arg;
}

static void facts(void)
{
	struct expr_pool *p = expr_pool_new();
	expr_id x = expr_symbol(p, 32, "x"), y = expr_symbol(p, 32, "y"), e;
	expr_id one = expr_const(p, 32, 1);
	int n = 0;
	char *s;

	CHECK(expr_binary(p, EX_ADD, x, y) == expr_binary(p, EX_ADD, y, x), "x+y is y+x");
	CHECK(expr_binary(p, EX_SUB, x, x) == expr_const(p, 32, 0), "x-x is 0");
	e = expr_binary(p, EX_ADD, expr_binary(p, EX_ADD, x, one), expr_const(p, 32, -1));
	CHECK(e == x, "x+1-1 is x");
	e = expr_extract(p, expr_binary(p, EX_CONCAT, y, x), 32, 32);
	CHECK(e == y, "extract of concat picks its part");
	e = expr_ite(p, expr_binary(p, EX_ULT, x, y), expr_const(p, 64, 1), expr_const(p, 64, 0));
	e = expr_binary(p, EX_EQ, expr_extract(p, e, 0, 1), expr_const(p, 1, 1));
	CHECK(e == expr_binary(p, EX_ULT, x, y), "a flag tested is its condition");
	e = expr_extend(p, true, expr_unary(p, EX_NOT, expr_binary(p, EX_ADD, x, one)), 64);
	CHECK(expr_binary(p, EX_EQ, e, expr_const(p, 64, -9ull)) ==
	      expr_binary(p, EX_EQ, x, expr_const(p, 32, 7)), "what can be undone is undone");
	CHECK(expr_binary(p, EX_EQ, e, expr_const(p, 64, 1ull << 40)) == expr_bool(p, false),
	      "out of the narrow operand's range");
	e = expr_binary(p, EX_EQ, expr_binary(p, EX_ADD, x, one), y);
	CHECK(expr_symbols(p, e, counts, &n) == 2 && n == 2, "each symbol once");
	s = expr_text(p, expr_unary(p, EX_BNOT, e));
	CHECK(strstr(s, "!=") && strstr(s, "x + 1"), "text: %s", s);
	free(s);
	for (int i = 0; i < 300000; i++)
		e = expr_binary(p, EX_XOR, expr_binary(p, EX_MUL, i ? e : x, y), one);
	CHECK(expr_eval(p, e, (uint64_t[]){ 1, 3 }) < 1ull << 32, "deep chains do not recurse");
	expr_pool_free(p);
}

int main(void)
{
	random_values();
	facts();
	CHECK_END();
}
