/*
 * The pool: hash-consing and the simplifying constructors. Walks over
 * expressions (values, symbols) are in expr_walk.c, text in expr_text.c.
 */
#include "analyzer/expr/expr_pool.h"
#include "common/vec.h"

#include <assert.h>
#include <string.h>

struct expr_pool {
	struct expr *nodes; /* [0] is EXPR_NONE; operands have smaller ids than users */
	size_t n, cap;
	expr_id *table; /* open addressing; 0 is empty */
	size_t table_cap;
	char **names;
	size_t nsymbols, cap_symbols;
	struct expr_scratch *scratch;
};

const struct expr_op_info expr_ops[EX_OP_COUNT] = {
	[EX_CONST] = { "const", NULL, 0 },   [EX_SYMBOL] = { "symbol", NULL, 0 },
	[EX_ADD] = { "add", "+", 2 },        [EX_SUB] = { "sub", "-", 2 },
	[EX_MUL] = { "mul", "*", 2 },        [EX_NEG] = { "neg", "-", 1 },
	[EX_UDIV] = { "udiv", "/", 2 },      [EX_UREM] = { "urem", "%", 2 },
	[EX_SDIV] = { "sdiv", "/", 2 },      [EX_SREM] = { "srem", "%", 2 },
	[EX_AND] = { "and", "&", 2 },        [EX_OR] = { "or", "|", 2 },
	[EX_XOR] = { "xor", "^", 2 },        [EX_NOT] = { "not", "~", 1 },
	[EX_SHL] = { "shl", "<<", 2 },       [EX_LSHR] = { "lshr", ">>", 2 },
	[EX_ASHR] = { "ashr", ">>", 2 },     [EX_EXTRACT] = { "extract", NULL, 1 },
	[EX_CONCAT] = { "concat", NULL, 2 }, [EX_ZEXT] = { "zext", NULL, 1 },
	[EX_SEXT] = { "sext", NULL, 1 },     [EX_EQ] = { "eq", "==", 2 },
	[EX_ULT] = { "ult", "<", 2 },        [EX_ULE] = { "ule", "<=", 2 },
	[EX_SLT] = { "slt", "<", 2 },        [EX_SLE] = { "sle", "<=", 2 },
	[EX_BNOT] = { "bnot", "!", 1 },      [EX_BAND] = { "band", "&&", 2 },
	[EX_BOR] = { "bor", "||", 2 },       [EX_ITE] = { "ite", NULL, 3 },
};

uint64_t expr_mask(unsigned width, uint64_t value)
{
	if (width == EXPR_BOOL)
		return value & 1;
	return width >= 64 ? value : value & ((1ull << width) - 1);
}

struct expr_pool *expr_pool_new(void)
{
	struct expr_pool *p = xcalloc(1, sizeof *p);

	p->cap = 256;
	p->nodes = xcalloc(p->cap, sizeof *p->nodes);
	p->n = 1;
	p->table_cap = 1024;
	p->table = xcalloc(p->table_cap, sizeof *p->table);
	p->scratch = xcalloc(1, sizeof *p->scratch);
	return p;
}

void expr_pool_free(struct expr_pool *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->nsymbols; i++)
		free(p->names[i]);
	free(p->names);
	free(p->nodes);
	free(p->table);
	expr_scratch_free(p->scratch);
	free(p->scratch);
	free(p);
}

const struct expr *expr_get(const struct expr_pool *p, expr_id e)
{
	assert(e < p->n);
	return &p->nodes[e];
}

size_t expr_count(const struct expr_pool *p)
{
	return p->n;
}

void expr_scratch_next(struct expr_scratch *s, size_t n)
{
	if (s->cap < n) {
		size_t old = s->cap;

		s->cap = n + n / 2;
		s->stamp = xrealloc(s->stamp, s->cap * sizeof *s->stamp);
		s->value = xrealloc(s->value, s->cap * sizeof *s->value);
		memset(s->stamp + old, 0, (s->cap - old) * sizeof *s->stamp);
	}
	if (++s->epoch == 0) {
		memset(s->stamp, 0, s->cap * sizeof *s->stamp);
		s->epoch = 1;
	}
}

void expr_scratch_free(struct expr_scratch *s)
{
	free(s->stamp);
	free(s->value);
	free(s->stack);
}

struct expr_scratch *expr_scratch(const struct expr_pool *p)
{
	expr_scratch_next(p->scratch, p->n);
	return p->scratch;
}

static size_t node_hash(const struct expr *n)
{
	uint64_t h = n->op * 0x9e3779b97f4a7c15ull + n->width;

	h = (h ^ n->a) * 0xbf58476d1ce4e5b9ull;
	h = (h ^ (h >> 29) ^ n->b) * 0x94d049bb133111ebull;
	h = (h ^ (h >> 31) ^ n->c) * 0xbf58476d1ce4e5b9ull;
	h = (h ^ (h >> 27) ^ n->value) * 0x94d049bb133111ebull;
	return h ^ (h >> 32);
}

static bool node_same(const struct expr *x, const struct expr *y)
{
	return x->op == y->op && x->width == y->width && x->a == y->a && x->b == y->b &&
	       x->c == y->c && x->value == y->value;
}

static void table_grow(struct expr_pool *p)
{
	size_t cap = p->table_cap * 2;
	expr_id *table = xcalloc(cap, sizeof *table);

	for (expr_id e = 1; e < p->n; e++) {
		size_t h = node_hash(&p->nodes[e]) & (cap - 1);

		while (table[h])
			h = (h + 1) & (cap - 1);
		table[h] = e;
	}
	free(p->table);
	p->table = table;
	p->table_cap = cap;
}

expr_id expr_intern(struct expr_pool *p, enum expr_op op, unsigned width, expr_id a, expr_id b,
		    expr_id c, uint64_t value)
{
	struct expr n = { .op = op, .width = width, .a = a, .b = b, .c = c, .value = value };
	size_t h = node_hash(&n) & (p->table_cap - 1);

	for (; p->table[h]; h = (h + 1) & (p->table_cap - 1))
		if (node_same(&p->nodes[p->table[h]], &n))
			return p->table[h];
	n.concrete = op != EX_SYMBOL && (!a || p->nodes[a].concrete) &&
		     (!b || p->nodes[b].concrete) && (!c || p->nodes[c].concrete);
	if (p->n == p->cap)
		p->nodes = vec_grow(p->nodes, &p->cap, sizeof *p->nodes, p->n + 1);
	p->nodes[p->n] = n;
	p->table[h] = p->n;
	if (++p->n * 2 > p->table_cap)
		table_grow(p);
	return p->n - 1;
}

expr_id expr_const(struct expr_pool *p, unsigned width, uint64_t value)
{
	return expr_intern(p, EX_CONST, width, 0, 0, 0, expr_mask(width, value));
}

expr_id expr_bool(struct expr_pool *p, bool value)
{
	return expr_const(p, EXPR_BOOL, value);
}

expr_id expr_symbol(struct expr_pool *p, unsigned width, const char *name)
{
	if (p->nsymbols == p->cap_symbols)
		p->names = vec_grow(p->names, &p->cap_symbols, sizeof *p->names, p->nsymbols + 1);
	p->names[p->nsymbols] = xstrdup(name);
	return expr_intern(p, EX_SYMBOL, width, 0, 0, 0, p->nsymbols++);
}

const char *expr_symbol_name(const struct expr_pool *p, uint64_t symbol)
{
	return symbol < p->nsymbols ? p->names[symbol] : NULL;
}

size_t expr_symbol_count(const struct expr_pool *p)
{
	return p->nsymbols;
}

static bool is_const(const struct expr_pool *p, expr_id e, uint64_t *v)
{
	const struct expr *n = expr_get(p, e);

	*v = n->value;
	return n->op == EX_CONST;
}

expr_id expr_unary(struct expr_pool *p, enum expr_op op, expr_id a)
{
	struct expr n = *expr_get(p, a);

	assert(op == EX_NEG || op == EX_NOT || op == EX_BNOT);
	assert((op == EX_BNOT) == (n.width == EXPR_BOOL));
	if (n.op == op)
		return n.a;
	if (n.op == EX_CONST) {
		struct expr self = { .op = op, .width = n.width, .a = a };

		return expr_const(p, n.width, expr_apply(p, &self, n.value, 0, 0));
	}
	return expr_intern(p, op, n.width, a, 0, 0, 0);
}

static bool op_compares(enum expr_op op)
{
	return op >= EX_EQ && op <= EX_SLE;
}

static bool op_commutes(enum expr_op op)
{
	return op == EX_ADD || op == EX_MUL || op == EX_AND || op == EX_OR || op == EX_XOR ||
	       op == EX_EQ || op == EX_BAND || op == EX_BOR;
}

/* x OP constant; EXPR_NONE when nothing is simpler. */
static expr_id simplify_const_right(struct expr_pool *p, enum expr_op op, expr_id a, uint64_t v)
{
	unsigned w = expr_get(p, a)->width;
	bool ones = w != EXPR_INT && v == expr_mask(w, UINT64_MAX);

	switch (op) {
	case EX_ADD: case EX_SUB: case EX_XOR: case EX_SHL: case EX_LSHR: case EX_ASHR:
		return v == 0 ? a : EXPR_NONE;
	case EX_OR:
		return v == 0 ? a : ones ? expr_const(p, w, v) : EXPR_NONE;
	case EX_AND:
		return v == 0 ? expr_const(p, w, 0) : ones ? a : EXPR_NONE;
	case EX_MUL:
		return v == 0 ? expr_const(p, w, 0) : v == 1 ? a : EXPR_NONE;
	case EX_UDIV:
		return v == 1 ? a : EXPR_NONE;
	case EX_SDIV: /* one bit: the constant 1 is -1 */
		return v == 1 && w > 1 ? a : EXPR_NONE;
	case EX_BAND:
		return v ? a : expr_bool(p, false);
	case EX_BOR:
		return v ? expr_bool(p, true) : a;
	case EX_EQ:
		if (w == EXPR_BOOL)
			return v ? a : expr_unary(p, EX_BNOT, a);
		return EXPR_NONE;
	case EX_ULT:
		return v == 0 ? expr_bool(p, false) : EXPR_NONE;
	case EX_ULE:
		return ones ? expr_bool(p, true) : EXPR_NONE;
	default:
		return EXPR_NONE;
	}
}

/* x OP x */
static expr_id simplify_same(struct expr_pool *p, enum expr_op op, expr_id a)
{
	unsigned w = expr_get(p, a)->width;

	switch (op) {
	case EX_SUB: case EX_XOR: return expr_const(p, w, 0);
	case EX_AND: case EX_OR: case EX_BAND: case EX_BOR: return a;
	case EX_EQ: case EX_ULE: case EX_SLE: return expr_bool(p, true);
	case EX_ULT: case EX_SLT: return expr_bool(p, false);
	default: return EXPR_NONE;
	}
}

/* One step back from OP(x, ...) == *v to x == *v; false: there is none. *never: it cannot be. */
static bool undo_step(const struct expr_pool *p, expr_id *a, uint64_t *v, bool *never)
{
	struct expr n = *expr_get(p, *a);
	unsigned inner = n.a ? expr_get(p, n.a)->width : 0;
	uint64_t k;

	switch (n.op) {
	case EX_ADD:
		if (!is_const(p, n.b, &k))
			return false;
		*v = expr_mask(n.width, *v - k);
		break;
	case EX_XOR:
		if (!is_const(p, n.b, &k))
			return false;
		*v ^= k;
		break;
	case EX_NOT:
		*v = expr_mask(n.width, ~*v);
		break;
	case EX_NEG:
		*v = expr_mask(n.width, -*v);
		break;
	case EX_ZEXT:
		*never = *v != expr_mask(inner, *v);
		break;
	case EX_SEXT:
		k = expr_mask(inner, *v);
		if (k >> (inner - 1) & 1)
			k |= expr_mask(n.width, ~0ull) & ~expr_mask(inner, ~0ull);
		*never = k != *v;
		*v = expr_mask(inner, *v);
		break;
	default:
		return false;
	}
	*a = n.a;
	return true;
}

/* Operations that can be undone stand on the constant's side: less to solve, and x == 7 says more. */
static expr_id simplify_equal(struct expr_pool *p, expr_id a, uint64_t v)
{
	expr_id x = a;
	uint64_t yes, no;
	bool never = false;
	struct expr n;

	while (!never && undo_step(p, &x, &v, &never))
		;
	if (never)
		return expr_bool(p, false);
	n = *expr_get(p, x);
	if (n.op == EX_ITE && is_const(p, n.b, &yes) && is_const(p, n.c, &no)) {
		if (yes == no)
			return expr_bool(p, yes == v);
		if (yes == v)
			return n.a;
		return no == v ? expr_unary(p, EX_BNOT, n.a) : expr_bool(p, false);
	}
	return x == a ? EXPR_NONE : expr_intern(p, EX_EQ, EXPR_BOOL, x, expr_const(p, n.width, v), 0, 0);
}

/* (x + c1) + c2 and the like. */
static expr_id simplify_nested(struct expr_pool *p, enum expr_op op, expr_id a, uint64_t v)
{
	struct expr n = *expr_get(p, a);
	uint64_t k;

	if ((op == EX_ADD || op == EX_AND || op == EX_OR || op == EX_XOR) && n.op == op &&
	    is_const(p, n.b, &k))
		return expr_binary(p, op, n.a, expr_binary(p, op, n.b, expr_const(p, n.width, v)));
	return op == EX_EQ ? simplify_equal(p, a, v) : EXPR_NONE;
}

/* Two neighbouring parts of one value are a part of it again. */
static expr_id simplify_concat(struct expr_pool *p, expr_id a, expr_id b)
{
	struct expr hi = *expr_get(p, a), lo = *expr_get(p, b);
	unsigned width = hi.width + lo.width;

	if (hi.op == EX_CONST && lo.op == EX_CONST)
		return expr_const(p, width, hi.value << lo.width | lo.value);
	if (hi.op == EX_CONST && hi.value == 0)
		return expr_extend(p, false, b, width);
	if (hi.op == EX_EXTRACT && lo.op == EX_EXTRACT && hi.a == lo.a &&
	    hi.value == lo.value + lo.width)
		return expr_extract(p, hi.a, lo.value, width);
	return expr_intern(p, EX_CONCAT, width, a, b, 0, 0);
}

expr_id expr_binary(struct expr_pool *p, enum expr_op op, expr_id a, expr_id b)
{
	unsigned wa = expr_get(p, a)->width, wb = expr_get(p, b)->width;
	unsigned width = op_compares(op) ? EXPR_BOOL : wa;
	uint64_t va, vb;
	expr_id e;

	assert(expr_ops[op].arity == 2);
	if (op == EX_CONCAT) {
		assert(wa && wb && wa != EXPR_INT && wb != EXPR_INT && wa + wb <= 64);
		return simplify_concat(p, a, b);
	}
	assert(wa == wb);
	assert(op == EX_EQ || (op == EX_BAND || op == EX_BOR) == (wa == EXPR_BOOL));
	if (is_const(p, a, &va) && is_const(p, b, &vb)) {
		struct expr self = { .op = op, .width = width, .a = a, .b = b };

		return expr_const(p, width, expr_apply(p, &self, va, vb, 0));
	}
	if (op_commutes(op) && is_const(p, a, &va)) {
		expr_id t = a;

		a = b;
		b = t;
	}
	if (op == EX_SUB && is_const(p, b, &vb))
		return expr_binary(p, EX_ADD, a, expr_const(p, wa, -vb));
	if (a == b && (e = simplify_same(p, op, a)))
		return e;
	if (is_const(p, b, &vb) && ((e = simplify_const_right(p, op, a, vb)) ||
				    (e = simplify_nested(p, op, a, vb))))
		return e;
	/* One canonical order, so that a+b and b+a are one node. */
	if (op_commutes(op) && !is_const(p, b, &vb) && a > b)
		return expr_intern(p, op, width, b, a, 0, 0);
	return expr_intern(p, op, width, a, b, 0, 0);
}

expr_id expr_ite(struct expr_pool *p, expr_id cond, expr_id yes, expr_id no)
{
	unsigned w = expr_get(p, yes)->width;
	struct expr c = *expr_get(p, cond);
	uint64_t v, vn;

	assert(c.width == EXPR_BOOL && expr_get(p, no)->width == w);
	if (c.op == EX_CONST)
		return c.value ? yes : no;
	if (yes == no)
		return yes;
	if (c.op == EX_BNOT)
		return expr_ite(p, c.a, no, yes);
	if (w == EXPR_BOOL && is_const(p, yes, &v) && is_const(p, no, &vn))
		return v ? cond : expr_unary(p, EX_BNOT, cond);
	return expr_intern(p, EX_ITE, w, cond, yes, no, 0);
}

expr_id expr_extract(struct expr_pool *p, expr_id a, unsigned low, unsigned width)
{
	struct expr n = *expr_get(p, a);

	assert(n.width && n.width != EXPR_INT && width && low + width <= n.width);
	if (width == n.width)
		return a;
	switch (n.op) {
	case EX_CONST:
		return expr_const(p, width, n.value >> low);
	case EX_EXTRACT:
		return expr_extract(p, n.a, n.value + low, width);
	case EX_CONCAT: {
		unsigned split = expr_get(p, n.b)->width;

		if (low + width <= split)
			return expr_extract(p, n.b, low, width);
		if (low >= split)
			return expr_extract(p, n.a, low - split, width);
		break;
	}
	case EX_ZEXT: case EX_SEXT: {
		unsigned inner = expr_get(p, n.a)->width;

		if (low + width <= inner)
			return expr_extract(p, n.a, low, width);
		if (low >= inner && n.op == EX_ZEXT)
			return expr_const(p, width, 0);
		if (low == 0)
			return expr_extend(p, n.op == EX_SEXT, n.a, width);
		break;
	}
	case EX_ITE: /* flags: ite(c, 1, 0) */
		if (expr_get(p, n.b)->op == EX_CONST && expr_get(p, n.c)->op == EX_CONST)
			return expr_ite(p, n.a, expr_extract(p, n.b, low, width),
					expr_extract(p, n.c, low, width));
		break;
	case EX_AND: case EX_OR: case EX_XOR:
		if (expr_get(p, n.b)->op == EX_CONST)
			return expr_binary(p, n.op, expr_extract(p, n.a, low, width),
					   expr_extract(p, n.b, low, width));
		break;
	case EX_ADD: case EX_SUB: case EX_MUL:
		/* The low bits of a sum depend on low bits only. */
		if (low == 0 && expr_get(p, n.b)->op == EX_CONST)
			return expr_binary(p, n.op, expr_extract(p, n.a, 0, width),
					   expr_extract(p, n.b, 0, width));
		break;
	}
	return expr_intern(p, EX_EXTRACT, width, a, 0, 0, low);
}

expr_id expr_extend(struct expr_pool *p, bool sign, expr_id a, unsigned width)
{
	struct expr n = *expr_get(p, a);

	assert(n.width && n.width <= width && width <= 64);
	if (width == n.width)
		return a;
	if (n.op == EX_CONST) {
		struct expr self = { .op = sign ? EX_SEXT : EX_ZEXT, .width = width, .a = a };

		return expr_const(p, width, expr_apply(p, &self, n.value, 0, 0));
	}
	if (n.op == EX_ITE && expr_get(p, n.b)->op == EX_CONST && expr_get(p, n.c)->op == EX_CONST)
		return expr_ite(p, n.a, expr_extend(p, sign, n.b, width),
				expr_extend(p, sign, n.c, width));
	if (n.op == EX_ZEXT || (n.op == EX_SEXT && sign))
		return expr_intern(p, n.op, width, n.a, 0, 0, 0);
	return expr_intern(p, sign ? EX_SEXT : EX_ZEXT, width, a, 0, 0, 0);
}
