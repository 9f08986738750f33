/* Walks over expressions: values and symbols. Iterative: chains grow deep. */
#include "analyzer/expr/expr_pool.h"
#include "common/vec.h"

static int64_t to_signed(unsigned width, uint64_t v)
{
	if (width >= 64)
		return (int64_t)v;
	return (int64_t)(v << (64 - width)) >> (64 - width);
}

static uint64_t divide(enum expr_op op, unsigned w, uint64_t a, uint64_t b)
{
	int64_t sa = to_signed(w, a), sb = to_signed(w, b);

	switch (op) {
	case EX_UDIV: return b ? a / b : UINT64_MAX;
	case EX_UREM: return b ? a % b : a;
	case EX_SDIV:
		if (!b)
			return sa < 0 ? 1 : UINT64_MAX;
		return sb == -1 ? -(uint64_t)sa : (uint64_t)(sa / sb);
	default:
		if (!b)
			return a;
		return sb == -1 ? 0 : (uint64_t)(sa % sb);
	}
}

static uint64_t shift(enum expr_op op, unsigned w, uint64_t a, uint64_t by)
{
	unsigned bits = w > 64 ? 64 : w;

	if (by >= bits)
		return op == EX_ASHR && to_signed(w, a) < 0 ? UINT64_MAX : 0;
	switch (op) {
	case EX_SHL: return a << by;
	case EX_LSHR: return a >> by;
	default: return (uint64_t)(to_signed(w, a) >> by);
	}
}

uint64_t expr_apply(const struct expr_pool *p, const struct expr *n, uint64_t a, uint64_t b,
		    uint64_t c)
{
	unsigned wa = n->a ? expr_get(p, n->a)->width : 0;
	uint64_t v;

	switch ((enum expr_op)n->op) {
	case EX_ADD: v = a + b; break;
	case EX_SUB: v = a - b; break;
	case EX_MUL: v = a * b; break;
	case EX_NEG: v = -a; break;
	case EX_UDIV: case EX_UREM: case EX_SDIV: case EX_SREM: v = divide(n->op, wa, a, b); break;
	case EX_AND: case EX_BAND: v = a & b; break;
	case EX_OR: case EX_BOR: v = a | b; break;
	case EX_XOR: v = a ^ b; break;
	case EX_NOT: v = ~a; break;
	case EX_SHL: case EX_LSHR: case EX_ASHR: v = shift(n->op, wa, a, b); break;
	case EX_EXTRACT: v = a >> n->value; break;
	case EX_CONCAT: v = a << expr_get(p, n->b)->width | b; break;
	case EX_ZEXT: v = a; break;
	case EX_SEXT: v = (uint64_t)to_signed(wa, a); break;
	case EX_EQ: v = a == b; break;
	case EX_ULT: v = a < b; break;
	case EX_ULE: v = a <= b; break;
	case EX_SLT: v = to_signed(wa, a) < to_signed(wa, b); break;
	case EX_SLE: v = to_signed(wa, a) <= to_signed(wa, b); break;
	case EX_BNOT: v = !a; break;
	case EX_ITE: v = a ? b : c; break;
	default: v = n->value; break;
	}
	return expr_mask(n->width, v);
}

static void push(struct expr_scratch *s, size_t *n, expr_id e)
{
	if (*n == s->stack_cap)
		s->stack = vec_grow(s->stack, &s->stack_cap, sizeof *s->stack, *n + 1);
	s->stack[(*n)++] = e;
}

/* Fills in what is not yet stamped with the current epoch. */
static uint64_t eval(const struct expr_pool *p, struct expr_scratch *s, expr_id e,
		     const uint64_t *symbols)
{
	size_t depth = 0;

	push(s, &depth, e);
	while (depth) {
		expr_id id = s->stack[depth - 1];
		const struct expr *n = expr_get(p, id);
		size_t before = depth;

		if (s->stamp[id] == s->epoch) {
			depth--;
			continue;
		}
		const expr_id kids[3] = { n->a, n->b, n->c };
		for (int k = 0; k < 3; k++)
			if (kids[k] && s->stamp[kids[k]] != s->epoch)
				push(s, &depth, kids[k]);
		if (depth > before)
			continue;
		s->value[id] = n->op == EX_SYMBOL ? expr_mask(n->width, symbols[n->value]) :
			expr_apply(p, n, n->a ? s->value[n->a] : 0, n->b ? s->value[n->b] : 0,
				   n->c ? s->value[n->c] : 0);
		s->stamp[id] = s->epoch;
		depth--;
	}
	return s->value[e];
}

/* Most values in a trace are constants or plain copies. */
static bool eval_leaf(const struct expr_pool *p, expr_id e, const uint64_t *symbols, uint64_t *v)
{
	const struct expr *n = expr_get(p, e);

	if (n->op == EX_CONST)
		*v = n->value;
	else if (n->op == EX_SYMBOL)
		*v = expr_mask(n->width, symbols[n->value]);
	else
		return false;
	return true;
}

uint64_t expr_eval(const struct expr_pool *p, expr_id e, const uint64_t *symbols)
{
	uint64_t v;

	return eval_leaf(p, e, symbols, &v) ? v : eval(p, expr_scratch(p), e, symbols);
}

struct expr_memo {
	const struct expr_pool *pool;
	struct expr_scratch s;
};

struct expr_memo *expr_memo_new(const struct expr_pool *p)
{
	struct expr_memo *m = xcalloc(1, sizeof *m);

	m->pool = p;
	expr_memo_reset(m);
	return m;
}

void expr_memo_free(struct expr_memo *m)
{
	if (m)
		expr_scratch_free(&m->s);
	free(m);
}

void expr_memo_reset(struct expr_memo *m)
{
	expr_scratch_next(&m->s, expr_count(m->pool));
}

uint64_t expr_memo_eval(struct expr_memo *m, expr_id e, const uint64_t *symbols)
{
	uint64_t v;

	if (e >= m->s.cap)
		expr_memo_reset(m);
	return eval_leaf(m->pool, e, symbols, &v) ? v : eval(m->pool, &m->s, e, symbols);
}

size_t expr_symbols(const struct expr_pool *p, expr_id e,
		    void (*cb)(void *arg, uint64_t symbol), void *arg)
{
	struct expr_scratch *s = expr_scratch(p);
	size_t depth = 0, count = 0;
	VEC(uint64_t) found = { 0 };

	push(s, &depth, e);
	while (depth) {
		expr_id id = s->stack[--depth];
		const struct expr *n = expr_get(p, id);

		if (s->stamp[id] == s->epoch || n->concrete)
			continue;
		s->stamp[id] = s->epoch;
		if (n->op == EX_SYMBOL) {
			vec_push(&found, n->value);
			continue;
		}
		const expr_id kids[3] = { n->a, n->b, n->c };
		for (int k = 0; k < 3; k++)
			if (kids[k])
				push(s, &depth, kids[k]);
	}
	count = found.n;
	/* After the walk: the callback may itself evaluate with this pool. */
	for (size_t i = 0; cb && i < count; i++)
		cb(arg, found.v[i]);
	vec_free(&found);
	return count;
}
