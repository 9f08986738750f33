/* Expressions as Z3 terms; each node of the pool is translated once. */
#include "analyzer/schedule/encode.h"

struct smt_terms {
	struct encoding *c;
	Z3_ast *term; /* by expr_id */
};

struct smt_terms *smt_terms_new(struct encoding *c)
{
	struct smt_terms *x = xcalloc(1, sizeof *x);

	x->c = c;
	x->term = xcalloc(expr_count(c->v->t->pool), sizeof *x->term);
	return x;
}

void smt_terms_free(struct smt_terms *x)
{
	if (x)
		free(x->term);
	free(x);
}

static Z3_sort sort_of(Z3_context z, unsigned width)
{
	if (width == EXPR_BOOL)
		return Z3_mk_bool_sort(z);
	return width == EXPR_INT ? Z3_mk_int_sort(z) : Z3_mk_bv_sort(z, width);
}

Z3_ast smt_number(struct encoding *c, unsigned width, uint64_t value)
{
	Z3_context z = c->smt->z;

	if (width == EXPR_BOOL)
		return value ? c->yes : c->no;
	if (width == EXPR_INT)
		return Z3_mk_int64(z, (int64_t)value, Z3_mk_int_sort(z));
	return Z3_mk_unsigned_int64(z, value, Z3_mk_bv_sort(z, width));
}

/* Committed reads have their value; reads of the window and free symbols are unknowns. */
static Z3_ast symbol(struct smt_terms *x, const struct expr *n)
{
	struct encoding *c = x->c;
	uint32_t reader = c->v->reader[n->value];
	char name[32];

	if (reader != SYM_NONE && !order_window_has(c->w, reader))
		return smt_number(c, n->width, order_check_values(c->w->start)[n->value]);
	if (reader == SYM_NONE && !c->w->free_init)
		return smt_number(c, n->width, order_check_values(c->w->start)[n->value]);
	/* A branch on its exact value pins it: Z3 folds what depends on it. */
	if (c->is_known[n->value])
		return smt_number(c, n->width, c->known[n->value]);
	snprintf(name, sizeof name, "v%llu", (unsigned long long)n->value);
	return Z3_mk_const(c->smt->z, Z3_mk_string_symbol(c->smt->z, name),
			   sort_of(c->smt->z, n->width));
}

static Z3_ast int_term(Z3_context z, const struct expr *n, Z3_ast a, Z3_ast b)
{
	Z3_ast ab[2] = { a, b }, q, zero = Z3_mk_int(z, 0, Z3_mk_int_sort(z));

	switch ((enum expr_op)n->op) {
	case EX_ADD: return Z3_mk_add(z, 2, ab);
	case EX_SUB: return Z3_mk_sub(z, 2, ab);
	case EX_MUL: return Z3_mk_mul(z, 2, ab);
	case EX_NEG: return Z3_mk_unary_minus(z, a);
	case EX_SDIV: case EX_SREM:
		/* C's division truncates, Z3's rounds so that the rest is not negative. */
		q = Z3_mk_div(z, Z3_mk_ite(z, Z3_mk_lt(z, a, zero), Z3_mk_unary_minus(z, a), a), b);
		q = Z3_mk_ite(z, Z3_mk_lt(z, a, zero), Z3_mk_unary_minus(z, q), q);
		if (n->op == EX_SDIV)
			return q;
		return Z3_mk_sub(z, 2, (Z3_ast[]){ a, Z3_mk_mul(z, 2, (Z3_ast[]){ b, q }) });
	case EX_SLT: return Z3_mk_lt(z, a, b);
	case EX_SLE: return Z3_mk_le(z, a, b);
	default: return zero;
	}
}

static Z3_ast bv_term(Z3_context z, const struct expr *n, unsigned wa, Z3_ast a, Z3_ast b)
{
	switch ((enum expr_op)n->op) {
	case EX_ADD: return Z3_mk_bvadd(z, a, b);
	case EX_SUB: return Z3_mk_bvsub(z, a, b);
	case EX_MUL: return Z3_mk_bvmul(z, a, b);
	case EX_NEG: return Z3_mk_bvneg(z, a);
	case EX_UDIV: return Z3_mk_bvudiv(z, a, b);
	case EX_UREM: return Z3_mk_bvurem(z, a, b);
	case EX_SDIV: return Z3_mk_bvsdiv(z, a, b);
	case EX_SREM: return Z3_mk_bvsrem(z, a, b);
	case EX_AND: return Z3_mk_bvand(z, a, b);
	case EX_OR: return Z3_mk_bvor(z, a, b);
	case EX_XOR: return Z3_mk_bvxor(z, a, b);
	case EX_NOT: return Z3_mk_bvnot(z, a);
	case EX_SHL: return Z3_mk_bvshl(z, a, b);
	case EX_LSHR: return Z3_mk_bvlshr(z, a, b);
	case EX_ASHR: return Z3_mk_bvashr(z, a, b);
	case EX_EXTRACT: return Z3_mk_extract(z, n->value + n->width - 1, n->value, a);
	case EX_CONCAT: return Z3_mk_concat(z, a, b);
	case EX_ZEXT: return Z3_mk_zero_ext(z, n->width - wa, a);
	case EX_SEXT: return Z3_mk_sign_ext(z, n->width - wa, a);
	case EX_ULT: return Z3_mk_bvult(z, a, b);
	case EX_ULE: return Z3_mk_bvule(z, a, b);
	case EX_SLT: return Z3_mk_bvslt(z, a, b);
	case EX_SLE: return Z3_mk_bvsle(z, a, b);
	default: return a;
	}
}

static Z3_ast make(struct smt_terms *x, const struct expr *n)
{
	Z3_context z = x->c->smt->z;
	Z3_ast a = n->a ? x->term[n->a] : NULL, b = n->b ? x->term[n->b] : NULL;
	unsigned wa = n->a ? expr_get(x->c->v->t->pool, n->a)->width : 0;

	switch ((enum expr_op)n->op) {
	case EX_CONST: return smt_number(x->c, n->width, n->value);
	case EX_SYMBOL: return symbol(x, n);
	case EX_EQ: return Z3_mk_eq(z, a, b);
	case EX_BNOT: return Z3_mk_not(z, a);
	case EX_BAND: return Z3_mk_and(z, 2, (Z3_ast[]){ a, b });
	case EX_BOR: return Z3_mk_or(z, 2, (Z3_ast[]){ a, b });
	case EX_ITE: return Z3_mk_ite(z, a, b, x->term[n->c]);
	default: return wa == EXPR_INT ? int_term(z, n, a, b) : bv_term(z, n, wa, a, b);
	}
}

Z3_ast smt_term(struct smt_terms *x, expr_id e)
{
	const struct expr_pool *p = x->c->v->t->pool;
	VEC(expr_id) stack = { 0 };

	vec_push(&stack, e);
	while (stack.n) {
		expr_id id = stack.v[stack.n - 1];
		const struct expr *n = expr_get(p, id);
		size_t before = stack.n;

		if (!x->term[id]) {
			const expr_id kids[3] = { n->a, n->b, n->c };

			for (int k = 0; k < 3; k++)
				if (kids[k] && !x->term[kids[k]])
					vec_push(&stack, kids[k]);
			/* Printing a number divides it again and again: no work for Z3. */
			if (x->c->is_pinned[id] && n->op != EX_SYMBOL) {
				stack.n = before - 1;
				x->term[id] = smt_number(x->c, n->width, x->c->pin[id]);
				continue;
			}
			if (stack.n > before)
				continue;
			x->term[id] = make(x, n);
		}
		stack.n--;
	}
	vec_free(&stack);
	return x->term[e];
}

Z3_ast smt_term_raw(struct smt_terms *x, expr_id e)
{
	const struct expr *n = expr_get(x->c->v->t->pool, e);
	const expr_id kids[3] = { n->a, n->b, n->c };

	for (int k = 0; k < 3; k++)
		if (kids[k])
			smt_term(x, kids[k]);
	return make(x, n);
}
