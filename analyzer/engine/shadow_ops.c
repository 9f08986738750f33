/* The shadow of each operation of the bytecode, driven by ops.def. */
#include "analyzer/engine/shadow_ops.h"

#include <string.h>

/* How an operation is expressed when it is not one operator of expr.h. */
enum {
	SH_NONE = EX_OP_COUNT,
	SH_NE, SH_MULLU, SH_MULLS, SH_CONCAT, SH_AND1, SH_OR1, SH_NOT1, SH_TRUNC, SH_TO1, SH_ZEXT,
	SH_SEXT, SH_HIGH, SH_BIT, SH_SPREAD, SH_NEZ, SH_FILL, SH_LEFT, SH_SWAP,
};

static const struct {
	uint8_t a_bits, b_bits, r_bits, how;
} info[] = {
#define MACH_OP(name, kind, a, b, r, value, expr) { a, b, r, expr },
#include "analyzer/engine/ops.def"
#undef MACH_OP
};

static uint64_t pc_now(const struct mach *m, const struct mach_op *op)
{
	return m->now->insn_pc[op->insn];
}

static bool is_bool_op(unsigned how)
{
	return how == SH_AND1 || how == SH_OR1 || how == SH_NOT1;
}

static expr_id shift(struct expr_pool *p, enum expr_op op, expr_id a, expr_id amount, unsigned bits)
{
	amount = expr_binary(p, EX_AND, amount, expr_const(p, 8, bits - 1));
	if (bits > 8)
		amount = expr_extend(p, false, amount, bits);
	return expr_binary(p, op, a, amount);
}

void shadow_binary_slow(struct mach *m, const struct mach_op *op)
{
	struct expr_pool *p = m->shadow->pool;
	unsigned how = info[op->code].how, r = info[op->code].r_bits;
	unsigned ab = is_bool_op(how) ? 1 : info[op->code].a_bits;
	unsigned bb = is_bool_op(how) ? 1 : info[op->code].b_bits;
	expr_id a, b, e;

	if (!m->slots[op->a / 8] && !m->slots[op->b / 8]) {
		shadow_set(m, op->d, EXPR_NONE);
		return;
	}
	a = shadow_expr_or_const(m, op->a, ab);
	b = shadow_expr_or_const(m, op->b, bb);
	switch (how) {
	case EX_SHL:
	case EX_LSHR:
	case EX_ASHR:
		e = shift(p, how, a, b, ab);
		break;
	case SH_NE:
		e = expr_unary(p, EX_BNOT, expr_binary(p, EX_EQ, a, b));
		break;
	case SH_MULLU:
	case SH_MULLS:
		e = expr_binary(p, EX_MUL, expr_extend(p, how == SH_MULLS, a, r),
				expr_extend(p, how == SH_MULLS, b, r));
		break;
	case SH_CONCAT:
		e = expr_binary(p, EX_CONCAT, a, b);
		break;
	case SH_AND1:
		e = expr_binary(p, EX_BAND, a, b);
		break;
	case SH_OR1:
		e = expr_binary(p, EX_BOR, a, b);
		break;
	default:
		e = expr_binary(p, how, a, b);
	}
	shadow_set(m, op->d, e);
}

static expr_id swap_bytes(struct expr_pool *p, expr_id a, unsigned bits)
{
	expr_id e = expr_extract(p, a, 0, 8);

	for (unsigned i = 8; i < bits; i += 8)
		e = expr_binary(p, EX_CONCAT, e, expr_extract(p, a, i, 8));
	return e;
}

static expr_id all_or_nothing(struct expr_pool *p, expr_id cond, unsigned bits)
{
	return expr_ite(p, cond, expr_const(p, bits, UINT64_MAX), expr_const(p, bits, 0));
}

static expr_id not_zero(struct expr_pool *p, expr_id a, unsigned bits)
{
	return expr_unary(p, EX_BNOT, expr_binary(p, EX_EQ, a, expr_const(p, bits, 0)));
}

static expr_id unary(struct mach *m, const struct mach_op *op, expr_id a)
{
	struct expr_pool *p = m->shadow->pool;
	unsigned ab = info[op->code].a_bits, r = info[op->code].r_bits;

	switch (info[op->code].how) {
	case EX_NOT:
		return expr_unary(p, EX_NOT, a);
	case SH_NOT1:
		return expr_unary(p, EX_BNOT, a);
	case SH_TRUNC:
	case SH_TO1:
		return a; /* already of the result's width */
	case SH_ZEXT:
		return expr_extend(p, false, a, 8 * op->size);
	case SH_SEXT:
		return expr_extend(p, true, a, r);
	case SH_HIGH:
		return expr_extract(p, a, ab - r, r);
	case SH_BIT:
		return expr_ite(p, a, expr_const(p, 8 * op->size, 1),
				expr_const(p, 8 * op->size, 0));
	case SH_SPREAD:
		return all_or_nothing(p, a, r);
	case SH_NEZ:
		return not_zero(p, a, ab);
	case SH_FILL:
		return all_or_nothing(p, not_zero(p, a, ab), r);
	case SH_LEFT:
		return expr_binary(p, EX_OR, a, expr_unary(p, EX_NEG, a));
	case SH_SWAP:
		return swap_bytes(p, a, ab);
	default:
		return EXPR_NONE;
	}
}

void shadow_unary_slow(struct mach *m, const struct mach_op *op)
{
	unsigned how = info[op->code].how;
	bool boolean = how == SH_NOT1 || how == SH_TO1 || how == SH_BIT || how == SH_SPREAD;
	expr_id a = shadow_expr(m, op->a, boolean ? 1 : info[op->code].a_bits), e = EXPR_NONE;

	if (a) {
		e = unary(m, op, a);
		if (!e)
			shadow_concretize_operand(m, pc_now(m, op), op->a, info[op->code].a_bits,
						  "bit count");
	}
	shadow_set(m, op->d, e);
}

/* ---- 128-bit values: two slots, low first ---- */

static void set_pair(struct mach *m, uint32_t offset, expr_id lo, expr_id hi)
{
	shadow_set(m, offset, lo);
	shadow_set(m, offset + 8, hi);
}

/* The high half of a 64 x 64 bit product, from 32-bit parts. */
static expr_id product_high(struct expr_pool *p, expr_id a, expr_id b, bool is_signed)
{
	expr_id half = expr_const(p, 64, 32), mask = expr_const(p, 64, UINT32_MAX);
	expr_id al = expr_binary(p, EX_AND, a, mask), ah = expr_binary(p, EX_LSHR, a, half);
	expr_id bl = expr_binary(p, EX_AND, b, mask), bh = expr_binary(p, EX_LSHR, b, half);
	expr_id ll = expr_binary(p, EX_MUL, al, bl), lh = expr_binary(p, EX_MUL, al, bh);
	expr_id hl = expr_binary(p, EX_MUL, ah, bl), hh = expr_binary(p, EX_MUL, ah, bh);
	expr_id mid = expr_binary(p, EX_ADD, expr_binary(p, EX_LSHR, ll, half),
				  expr_binary(p, EX_ADD, expr_binary(p, EX_AND, lh, mask),
					      expr_binary(p, EX_AND, hl, mask)));
	expr_id hi = expr_binary(p, EX_ADD, hh, expr_binary(p, EX_LSHR, mid, half)), zero;

	hi = expr_binary(p, EX_ADD, hi, expr_binary(p, EX_LSHR, lh, half));
	hi = expr_binary(p, EX_ADD, hi, expr_binary(p, EX_LSHR, hl, half));
	if (!is_signed)
		return hi;
	zero = expr_const(p, 64, 0);
	hi = expr_binary(p, EX_SUB, hi,
			 expr_ite(p, expr_binary(p, EX_SLT, a, zero), b, zero));
	return expr_binary(p, EX_SUB, hi,
			   expr_ite(p, expr_binary(p, EX_SLT, b, zero), a, zero));
}

static void divisor_not_zero(struct mach *m, uint64_t pc, expr_id d, unsigned bits)
{
	struct shadow *s = m->shadow;
	expr_id cond = not_zero(s->pool, d, bits);

	if (s->hooks.concretized && !expr_get(s->pool, cond)->concrete)
		s->hooks.concretized(s->hooks.arg, m, pc, cond, "divisor");
}

/* By zero: that it is one. A quotient that is too large: that the operands are these. */
void shadow_bad_division(struct mach *m, const struct mach_op *op, uint64_t pc)
{
	bool wide = op->code == OP_DIVU128 || op->code == OP_DIVS128;
	uint64_t d = wide ? shadow_concrete(m, op->b) : (uint32_t)shadow_concrete(m, op->b);

	shadow_concretize(m, pc, shadow_expr(m, op->b, wide ? 64 : 32), d, "bad divisor");
	if (!d)
		return;
	shadow_concretize_operand(m, pc, op->a, 64, "bad dividend");
	if (wide)
		shadow_concretize_operand(m, pc, op->a + 8, 64, "bad dividend");
}

/* 128 / 64: only when the high half is the extension of the low one. */
static void divide_wide(struct mach *m, const struct mach_op *op, uint64_t pc)
{
	struct expr_pool *p = m->shadow->pool;
	bool is_signed = op->code == OP_DIVS128;
	expr_id lo = shadow_expr_or_const(m, op->a, 64), hi = shadow_expr_or_const(m, op->a + 8, 64);
	expr_id d = shadow_expr_or_const(m, op->b, 64);
	expr_id extension = is_signed ? expr_binary(p, EX_ASHR, lo, expr_const(p, 64, 63)) :
					expr_const(p, 64, 0);

	if (!m->slots[op->a / 8] && !m->slots[op->a / 8 + 1] && !m->slots[op->b / 8]) {
		set_pair(m, op->d, EXPR_NONE, EXPR_NONE);
		return;
	}
	if (hi != extension) {
		shadow_concretize_operand(m, pc, op->a + 8, 64, "wide division");
		if (shadow_concrete(m, op->a + 8) !=
		    (is_signed && (int64_t)shadow_concrete(m, op->a) < 0 ? UINT64_MAX : 0)) {
			shadow_concretize_operand(m, pc, op->a, 64, "wide division");
			shadow_concretize_operand(m, pc, op->b, 64, "wide division");
			set_pair(m, op->d, EXPR_NONE, EXPR_NONE);
			return;
		}
	}
	divisor_not_zero(m, pc, d, 64);
	set_pair(m, op->d, expr_binary(p, is_signed ? EX_SDIV : EX_UDIV, lo, d),
		 expr_binary(p, is_signed ? EX_SREM : EX_UREM, lo, d));
}

static void divide(struct mach *m, const struct mach_op *op, uint64_t pc)
{
	struct expr_pool *p = m->shadow->pool;
	bool is_signed = op->code == OP_DIVS64;
	expr_id n, d, q, r;

	if (!m->slots[op->a / 8] && !m->slots[op->b / 8]) {
		shadow_set(m, op->d, EXPR_NONE);
		return;
	}
	n = shadow_expr_or_const(m, op->a, 64);
	d = shadow_expr_or_const(m, op->b, 32);
	divisor_not_zero(m, pc, d, 32);
	d = expr_extend(p, is_signed, d, 64);
	q = expr_extract(p, expr_binary(p, is_signed ? EX_SDIV : EX_UDIV, n, d), 0, 32);
	r = expr_extract(p, expr_binary(p, is_signed ? EX_SREM : EX_UREM, n, d), 0, 32);
	shadow_set(m, op->d, expr_binary(p, EX_CONCAT, r, q));
}

void shadow_wide(struct mach *m, const struct mach_op *op, uint64_t pc)
{
	struct expr_pool *p = m->shadow->pool;
	expr_id a, b;

	switch (op->code) {
	case OP_MULLU64:
	case OP_MULLS64:
		if (!m->slots[op->a / 8] && !m->slots[op->b / 8]) {
			set_pair(m, op->d, EXPR_NONE, EXPR_NONE);
			break;
		}
		a = shadow_expr_or_const(m, op->a, 64);
		b = shadow_expr_or_const(m, op->b, 64);
		set_pair(m, op->d, expr_binary(p, EX_MUL, a, b),
			 product_high(p, a, b, op->code == OP_MULLS64));
		break;
	case OP_HL64:
		set_pair(m, op->d, shadow_expr(m, op->b, 64), shadow_expr(m, op->a, 64));
		break;
	case OP_LOW128:
		shadow_set(m, op->d, m->slots[op->a / 8]);
		break;
	case OP_HIGH128:
		shadow_set(m, op->d, m->slots[op->a / 8 + 1]);
		break;
	case OP_MOVE:
		set_pair(m, op->d, m->slots[op->a / 8], m->slots[op->a / 8 + 1]);
		break;
	case OP_DIVU128:
	case OP_DIVS128:
		divide_wide(m, op, pc);
		break;
	default:
		divide(m, op, pc);
	}
}

/* ---- moves, conditions, calls ---- */

void shadow_move(struct mach *m, const struct mach_op *op)
{
	expr_id e = m->slots[op->a / 8];

	/* A copy between temporaries keeps its sort: it may be a single bit. */
	if (e && op->a < MACH_STATE_SIZE)
		e = shadow_expr(m, op->a, 8 * op->size);
	shadow_set(m, op->d, e);
}

void shadow_put(struct mach *m, const struct mach_op *op)
{
	if (m->slots[op->a / 8] || m->slots[op->d / 8])
		shadow_set_register(m, op->d, op->size, shadow_expr(m, op->a, 8 * op->size),
				    shadow_concrete(m, op->a));
}

void shadow_ite(struct mach *m, const struct mach_op *op)
{
	struct expr_pool *p = m->shadow->pool;
	uint32_t no = (uint32_t)op->imm;
	expr_id cond = shadow_expr(m, op->a, 1), x = m->slots[op->b / 8], y = m->slots[no / 8];
	unsigned bits = 8 * op->size;

	if (!cond) {
		uint32_t from = *(uint8_t *)mach_at(m, op->a) & 1 ? op->b : no;

		shadow_set(m, op->d, m->slots[from / 8] ? shadow_expr(m, from, bits) : EXPR_NONE);
		return;
	}
	if ((x && expr_get(p, x)->width == EXPR_BOOL) || (y && expr_get(p, y)->width == EXPR_BOOL))
		bits = 1;
	shadow_set(m, op->d, expr_ite(p, cond, shadow_expr_or_const(m, op->b, bits),
				      shadow_expr_or_const(m, no, bits)));
}

void shadow_call(struct mach *m, const struct mach_op *op, uint64_t pc)
{
	const struct mach_call *c = (const struct mach_call *)op->imm;
	expr_id any = EXPR_NONE, e;

	for (unsigned i = 0; i < c->nargs; i++)
		any |= m->slots[c->arg[i] / 8];
	if (!any) {
		shadow_set(m, op->d, EXPR_NONE);
		return;
	}
	e = shadow_flags_call(m, c);
	if (!e)
		for (unsigned i = 0; i < c->nargs; i++)
			shadow_concretize_operand(m, pc, c->arg[i], 64, "odd instruction");
	shadow_set(m, op->d, e);
}

/* ---- branches ---- */

void shadow_block(struct mach *m)
{
	m->shadow->guard = EXPR_NONE;
}

void shadow_exit(struct mach *m, const struct mach_op *op)
{
	expr_id e;

	if (!m->slots[op->a / 8] || m->in_lock)
		return;
	e = shadow_expr(m, op->a, 1);
	m->shadow->guard = *(uint8_t *)mach_at(m, op->a) & 1 ?
				   e : expr_unary(m->shadow->pool, EX_BNOT, e);
}

void shadow_target(struct mach *m, const struct mach_op *op)
{
	expr_id e = shadow_expr(m, op->a, 64);

	if (e)
		m->shadow->guard = expr_binary(m->shadow->pool, EX_EQ, e,
					       expr_const(m->shadow->pool, 64,
							  shadow_concrete(m, op->a)));
}

expr_id shadow_branch_condition(struct mach *m)
{
	return m->slots ? m->shadow->guard : EXPR_NONE;
}

/* ---- memory ---- */

void shadow_load(struct mach *m, uint64_t pc, const struct mach_op *op, uint64_t address,
		 uint64_t value)
{
	struct shadow *s = m->shadow;
	expr_id e = shadow_memory(m, address, op->size, value), fresh = EXPR_NONE;

	if (s->hooks.access)
		fresh = s->hooks.access(s->hooks.arg, m, pc, address, op->size,
					ACCESS_READ | (m->in_lock ? ACCESS_LOCKED : 0), value, e);
	if (m->slots)
		shadow_set(m, op->d, fresh ? fresh : e);
}

void shadow_store(struct mach *m, uint64_t pc, const struct mach_op *op, uint64_t address)
{
	struct shadow *s = m->shadow;
	expr_id e = m->slots && m->slots[op->b / 8] ? shadow_expr(m, op->b, 8 * op->size) : EXPR_NONE;
	uint64_t value = shadow_concrete(m, op->b);

	if (op->size < 8)
		value &= (1ull << 8 * op->size) - 1;
	if (s->hooks.access)
		s->hooks.access(s->hooks.arg, m, pc, address, op->size,
				ACCESS_WRITE | (m->in_lock ? ACCESS_LOCKED : 0), value, e);
	shadow_set_memory(m, address, op->size, e, &value);
}

/* The operand of a locked compare-exchange was read into c->old. */
void shadow_cas_read(struct mach *m, const struct mach_cas *c, uint64_t pc, uint64_t address,
		     bool equal)
{
	struct shadow *s = m->shadow;
	unsigned bits = 8 * c->size;

	for (unsigned i = 0; i < (c->two ? 2u : 1u); i++) {
		uint64_t at = address + i * c->size, old = shadow_concrete(m, c->old[i]);
		expr_id e = EXPR_NONE, same;

		if (m->access && !m->lock_loaded)
			m->access(m->access_arg, m, pc, at, c->size, ACCESS_READ | ACCESS_LOCKED, old);
		if (!s)
			continue;
		if (m->lock_loaded) { /* the load before gave the expected value */
			if (m->slots)
				shadow_set(m, c->old[i], m->slots[c->expected[i] / 8] ?
					   shadow_expr(m, c->expected[i], bits) : EXPR_NONE);
			continue;
		}
		e = shadow_memory(m, at, c->size, old);
		if (s->hooks.access) {
			expr_id fresh = s->hooks.access(s->hooks.arg, m, pc, at, c->size,
							ACCESS_READ | ACCESS_LOCKED, old, e);

			e = fresh ? fresh : e;
		}
		if (!m->slots)
			continue;
		shadow_set(m, c->old[i], e);
		if (!e && !m->slots[c->expected[i] / 8])
			continue;
		same = expr_binary(s->pool, EX_EQ, e ? e : expr_const(s->pool, bits, old),
				   shadow_expr_or_const(m, c->expected[i], bits));
		if (!c->two || equal)
			shadow_concretize(m, pc, same, equal, "compare-exchange");
	}
}

void shadow_cas_write(struct mach *m, const struct mach_cas *c, unsigned half, uint64_t pc,
		      uint64_t address, uint64_t data)
{
	struct shadow *s = m->shadow;
	expr_id e = EXPR_NONE;

	if (m->access)
		m->access(m->access_arg, m, pc, address, c->size, ACCESS_WRITE | ACCESS_LOCKED, data);
	if (!s)
		return;
	if (m->slots)
		e = shadow_expr(m, c->data[half], 8 * c->size);
	if (s->hooks.access)
		s->hooks.access(s->hooks.arg, m, pc, address, c->size,
				ACCESS_WRITE | ACCESS_LOCKED, data, e);
	/* The concrete store follows; only whole words ask memory for the rest. */
	mem_store(m->mem, address, &data, c->size);
	shadow_set_memory(m, address, c->size, e, &data);
}
