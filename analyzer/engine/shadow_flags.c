/*
 * Condition codes as expressions.
 *
 * libVEX keeps flags as an operation and its operands, and computes them in
 * helper functions when it cannot do so while lifting. Here are the flags of
 * each operation, keyed on its concrete number; rotates and multiplications,
 * whose flags nobody branches on, are not in the table.
 */
#include "analyzer/engine/shadow_ops.h"

#include <string.h>

/* Families of libVEX's AMD64G_CC_OP_*: each has B, W, L, Q in this order. */
enum family {
	CC_COPY, CC_ADD, CC_SUB, CC_ADC, CC_SBB, CC_LOGIC, CC_INC, CC_DEC, CC_SHL, CC_SHR,
	CC_KNOWN
};

struct flags {
	struct expr_pool *p;
	enum family family;
	unsigned bits;
	expr_id l, r, res; /* operands and result, of `bits` */
	expr_id carry_in;  /* Boolean */
	expr_id copy;      /* CC_COPY: rflags */
};

static expr_id bin(struct flags *f, enum expr_op op, expr_id a, expr_id b)
{
	return expr_binary(f->p, op, a, b);
}

static expr_id not(struct flags *f, expr_id a)
{
	return expr_unary(f->p, EX_BNOT, a);
}

static expr_id bit_of(struct flags *f, expr_id e, unsigned bit)
{
	return bin(f, EX_EQ, expr_extract(f->p, e, bit, 1), expr_const(f->p, 1, 1));
}

static expr_id sign(struct flags *f, expr_id e)
{
	return bit_of(f, e, f->bits - 1);
}

static expr_id as_number(struct flags *f, expr_id cond, unsigned bits, uint64_t value)
{
	return expr_ite(f->p, cond, expr_const(f->p, bits, value), expr_const(f->p, bits, 0));
}

static bool load(struct mach *m, const uint32_t *arg, struct flags *f)
{
	uint64_t cc_op = *(uint64_t *)mach_at(m, arg[0]), ndep_bits;
	expr_id d1, d2, old;

	if (m->slots[arg[0] / 8] || cc_op > 4u * (CC_KNOWN - 1))
		return false;
	f->p = m->shadow->pool;
	f->family = cc_op ? (enum family)((cc_op - 1) / 4 + 1) : CC_COPY;
	f->bits = cc_op ? 8u << (cc_op - 1) % 4 : 64;
	d1 = shadow_expr_or_const(m, arg[1], 64);
	if (f->family == CC_COPY) {
		f->copy = d1;
		return true;
	}
	d1 = expr_extract(f->p, d1, 0, f->bits);
	d2 = expr_extract(f->p, shadow_expr_or_const(m, arg[2], 64), 0, f->bits);
	ndep_bits = f->bits;
	old = expr_extract(f->p, shadow_expr_or_const(m, arg[3], 64), 0, (unsigned)ndep_bits);
	old = bin(f, EX_AND, old, expr_const(f->p, f->bits, 1));
	f->carry_in = bin(f, EX_EQ, old, expr_const(f->p, f->bits, 1));
	f->l = d1;
	f->r = d2;
	switch (f->family) {
	case CC_ADD:
		f->res = bin(f, EX_ADD, d1, d2);
		break;
	case CC_SUB:
		f->res = bin(f, EX_SUB, d1, d2);
		break;
	case CC_ADC: /* the second operand is stored xor-ed with the carry */
		f->r = bin(f, EX_XOR, d2, old);
		f->res = bin(f, EX_ADD, bin(f, EX_ADD, d1, f->r), old);
		break;
	case CC_SBB:
		f->r = bin(f, EX_XOR, d2, old);
		f->res = bin(f, EX_SUB, bin(f, EX_SUB, d1, f->r), old);
		break;
	default: /* the result itself is the first operand */
		f->res = d1;
	}
	return true;
}

static expr_id carry(struct flags *f)
{
	struct expr_pool *p = f->p;

	switch (f->family) {
	case CC_COPY:
		return bit_of(f, f->copy, 0);
	case CC_ADD:
		return bin(f, EX_ULT, f->res, f->l);
	case CC_SUB:
		return bin(f, EX_ULT, f->l, f->r);
	case CC_ADC:
		return expr_ite(p, f->carry_in, bin(f, EX_ULE, f->res, f->l),
				bin(f, EX_ULT, f->res, f->l));
	case CC_SBB:
		return expr_ite(p, f->carry_in, bin(f, EX_ULE, f->l, f->r),
				bin(f, EX_ULT, f->l, f->r));
	case CC_INC:
	case CC_DEC:
		return f->carry_in; /* kept */
	case CC_SHL:
		return sign(f, f->r);
	case CC_SHR:
		return bit_of(f, f->r, 0);
	default:
		return expr_bool(p, false);
	}
}

static expr_id overflow(struct flags *f)
{
	struct expr_pool *p = f->p;
	uint64_t lowest = 1ull << (f->bits - 1);

	switch (f->family) {
	case CC_COPY:
		return bit_of(f, f->copy, 11);
	case CC_ADD:
	case CC_ADC:
		return sign(f, bin(f, EX_AND, expr_unary(p, EX_NOT, bin(f, EX_XOR, f->l, f->r)),
				   bin(f, EX_XOR, f->l, f->res)));
	case CC_SUB:
	case CC_SBB:
		return sign(f, bin(f, EX_AND, bin(f, EX_XOR, f->l, f->r),
				   bin(f, EX_XOR, f->l, f->res)));
	case CC_INC:
		return bin(f, EX_EQ, f->res, expr_const(p, f->bits, lowest));
	case CC_DEC:
		return bin(f, EX_EQ, f->res, expr_const(p, f->bits, lowest - 1));
	case CC_SHL:
	case CC_SHR:
		return sign(f, bin(f, EX_XOR, f->r, f->res));
	default:
		return expr_bool(p, false);
	}
}

static expr_id zero(struct flags *f)
{
	if (f->family == CC_COPY)
		return bit_of(f, f->copy, 6);
	if (f->family == CC_SUB)
		return bin(f, EX_EQ, f->l, f->r);
	return bin(f, EX_EQ, f->res, expr_const(f->p, f->bits, 0));
}

static expr_id negative(struct flags *f)
{
	return f->family == CC_COPY ? bit_of(f, f->copy, 7) : sign(f, f->res);
}

static expr_id parity(struct flags *f)
{
	expr_id x;

	if (f->family == CC_COPY)
		return bit_of(f, f->copy, 2);
	x = expr_extract(f->p, f->res, 0, 1);
	for (unsigned i = 1; i < 8; i++)
		x = bin(f, EX_XOR, x, expr_extract(f->p, f->res, i, 1));
	return bin(f, EX_EQ, x, expr_const(f->p, 1, 0));
}

static expr_id less(struct flags *f)
{
	expr_id s, o;

	if (f->family == CC_SUB)
		return bin(f, EX_SLT, f->l, f->r);
	if (f->family == CC_LOGIC)
		return negative(f);
	s = negative(f);
	o = overflow(f);
	return bin(f, EX_BOR, bin(f, EX_BAND, s, not(f, o)), bin(f, EX_BAND, not(f, s), o));
}

/* x86 condition numbers; odd ones are the negations. */
static expr_id condition(struct flags *f, unsigned cond)
{
	expr_id e;

	switch (cond & ~1u) {
	case 0:
		e = overflow(f);
		break;
	case 2:
		e = carry(f);
		break;
	case 4:
		e = zero(f);
		break;
	case 6:
		e = f->family == CC_SUB ? bin(f, EX_ULE, f->l, f->r) :
					  bin(f, EX_BOR, carry(f), zero(f));
		break;
	case 8:
		e = negative(f);
		break;
	case 10:
		e = parity(f);
		break;
	case 12:
		e = less(f);
		break;
	default:
		e = f->family == CC_SUB ? bin(f, EX_SLE, f->l, f->r) :
					  bin(f, EX_BOR, less(f), zero(f));
	}
	return cond & 1 ? not(f, e) : e;
}

static expr_id all_flags(struct flags *f)
{
	expr_id e = as_number(f, carry(f), 64, 1);

	if (f->family == CC_COPY)
		return bin(f, EX_AND, f->copy, expr_const(f->p, 64, 0x8d5));
	e = bin(f, EX_OR, e, as_number(f, parity(f), 64, 4));
	e = bin(f, EX_OR, e, as_number(f, zero(f), 64, 0x40));
	e = bin(f, EX_OR, e, as_number(f, negative(f), 64, 0x80));
	/* The adjust flag is left out: only BCD arithmetic reads it. */
	return bin(f, EX_OR, e, as_number(f, overflow(f), 64, 0x800));
}

expr_id shadow_flags_call(struct mach *m, const struct mach_call *c)
{
	struct flags f = { 0 };
	bool is_condition = !strcmp(c->name, "amd64g_calculate_condition");

	if (is_condition) {
		uint64_t cond = *(uint64_t *)mach_at(m, c->arg[0]);

		if (!load(m, c->arg + 1, &f) || cond > 15)
			return EXPR_NONE;
		return as_number(&f, condition(&f, (unsigned)cond), 64, 1);
	}
	if (!strcmp(c->name, "amd64g_calculate_rflags_c"))
		return load(m, c->arg, &f) ? as_number(&f, carry(&f), 64, 1) : EXPR_NONE;
	if (!strcmp(c->name, "amd64g_calculate_rflags_all"))
		return load(m, c->arg, &f) ? all_flags(&f) : EXPR_NONE;
	return EXPR_NONE;
}
