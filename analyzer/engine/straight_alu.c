/* See straight.h: operations that compute one word (or two) of the frame from others. */
#include "analyzer/engine/straight_ops.h"

static unsigned width_of(unsigned code, unsigned first)
{
	return 8u << (code - first);
}

/* add, sub, and, or, xor, mul */
static void do_alu(struct straight_run *r, const struct mach_op *op, unsigned bits, unsigned insn,
		   unsigned imm_form)
{
	struct straight_value a = val_operand(r, bits, op->a, R_NONE);
	struct straight_value b = val_operand(r, bits, op->b, a.constant ? R_NONE : a.reg);
	unsigned d = val_own(r, a, bits < 32 ? 32 : bits, b.constant ? R_NONE : b.reg);
	uint64_t imm = bits == 64 ? b.bits : (uint64_t)(int64_t)(int32_t)b.bits;

	if (!b.constant) {
		x_rr(&r->code, insn, bits == 64, d, b.reg);
	} else if (insn != I_MUL && val_fits(imm)) {
		x_ri(&r->code, imm_form, bits == 64, d, (uint32_t)imm);
	} else {
		x_constant(&r->code, R_AX, b.bits);
		x_rr(&r->code, insn, bits == 64, d, R_AX);
	}
	val_result(r, d, bits, op->d);
}

static void do_shift(struct straight_run *r, const struct mach_op *op, unsigned bits, unsigned form)
{
	struct straight_value a = val_operand(r, bits, op->a, R_NONE);
	struct straight_value b = val_operand(r, 8, op->b, a.constant ? R_NONE : a.reg);
	unsigned keep = b.constant ? R_NONE : b.reg;
	unsigned d = form == 7 ? val_own_signed(r, a, bits, keep) : val_own(r, a, bits, keep);
	/* What is shifted is extended already: 32 bits are enough for narrower ones. */
	bool wide = bits == 64;

	if (b.constant) {
		x_shift_imm(&r->code, form, wide, d, (unsigned)b.bits & (bits - 1));
	} else {
		x_rr(&r->code, I_MOV, false, R_CX, b.reg);
		if (bits < 32)
			x_ri(&r->code, 4, false, R_CX, bits - 1);
		x_shift_cl(&r->code, form, wide, d);
	}
	if (bits == 32) /* a shift by nothing leaves a sign extension's upper half */
		x_rr(&r->code, I_MOV, false, d, d);
	val_result(r, d, bits, op->d);
}

static void do_compare(struct straight_run *r, const struct mach_op *op, unsigned bits, unsigned cc)
{
	struct straight_value a = val_operand(r, bits, op->a, R_NONE);
	struct straight_value b = val_operand(r, bits, op->b, a.constant ? R_NONE : a.reg);
	uint64_t imm = bits == 64 ? b.bits : (uint64_t)(int64_t)(int32_t)b.bits;

	val_into(r, R_AX, a, bits);
	if (b.constant && val_fits(imm)) {
		x_ri(&r->code, 7, bits == 64, R_AX, (uint32_t)imm);
	} else {
		val_into(r, R_CX, b, bits);
		x_rr(&r->code, I_CMP, bits == 64, R_AX, R_CX);
	}
	unsigned d = val_fresh(r, R_NONE, R_NONE);

	x_setcc(&r->code, cc, d);
	val_result(r, d, 8, op->d);
}

/* The product of two halves, whole. */
static void do_long_product(struct straight_run *r, const struct mach_op *op, unsigned bits,
			    bool sign)
{
	struct straight_value a = val_operand(r, bits, op->a, R_NONE);
	struct straight_value b = val_operand(r, bits, op->b, a.constant ? R_NONE : a.reg);
	unsigned keep = b.constant ? R_NONE : b.reg;
	unsigned d = sign ? val_own_signed(r, a, bits, keep) : val_own(r, a, bits, keep);
	unsigned e = sign ? val_own_signed(r, b, bits, d) : val_own(r, b, bits, d);

	x_rr(&r->code, I_MUL, true, d, e);
	if (bits == 16)
		x_rr(&r->code, I_MOV, false, d, d);
	val_result(r, d, bits == 8 ? 16 : 64, op->d);
}

static void do_concat(struct straight_run *r, const struct mach_op *op, unsigned bits)
{
	struct straight_value a = val_operand(r, bits, op->a, R_NONE);
	struct straight_value b = val_operand(r, bits, op->b, a.constant ? R_NONE : a.reg);
	unsigned d = val_own(r, a, bits, b.constant ? R_NONE : b.reg);

	val_into(r, R_AX, b, bits);
	x_shift_imm(&r->code, 4, true, d, bits);
	x_rr(&r->code, I_OR, true, d, R_AX);
	val_result(r, d, 64, op->d);
}

/* 128 bits: rdx:rax = a * b, both stored */
static void do_product_128(struct straight_run *r, const struct mach_op *op, bool sign)
{
	struct straight_value a = val_operand(r, 64, op->a, R_NONE);
	struct straight_value b = val_operand(r, 64, op->b, a.constant ? R_NONE : a.reg);

	val_into(r, R_AX, a, 64);
	val_into(r, R_CX, b, 64);
	x_unary(&r->code, sign ? 5 : 4, true, R_CX);
	val_forget(r, op->d);
	val_forget(r, op->d + 8);
	x_frame(&r->code, I_STORE, true, R_AX, op->d);
	x_frame(&r->code, I_STORE, true, R_DX, op->d + 8);
}

static void do_concat_128(struct straight_run *r, const struct mach_op *op)
{
	struct straight_value hi = val_operand(r, 64, op->a, R_NONE);
	struct straight_value lo = val_operand(r, 64, op->b, hi.constant ? R_NONE : hi.reg);

	val_into(r, R_AX, hi, 64);
	val_into(r, R_CX, lo, 64);
	val_forget(r, op->d);
	val_forget(r, op->d + 8);
	x_frame(&r->code, I_STORE, true, R_CX, op->d);
	x_frame(&r->code, I_STORE, true, R_AX, op->d + 8);
}

static bool do_bits(struct straight_run *r, const struct mach_op *op)
{
	static const struct {
		uint16_t code;
		uint8_t bits;
		uint32_t insn; /* 0: bswap */
	} rows[] = {
		{ OP_CLZ32, 32, I_LZCNT },	 { OP_CLZ64, 64, I_LZCNT },
		{ OP_CTZ32, 32, I_TZCNT },	 { OP_CTZ64, 64, I_TZCNT },
		{ OP_POPCOUNT32, 32, I_POPCNT }, { OP_POPCOUNT64, 64, I_POPCNT },
		{ OP_SWAP32, 32, 0 },		 { OP_SWAP64, 64, 0 },
	};

	for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (rows[i].code != op->code)
			continue;
		struct straight_value a = val_operand(r, rows[i].bits, op->a, R_NONE);
		unsigned d = val_own(r, a, rows[i].bits, R_NONE);

		if (rows[i].insn)
			x_rr(&r->code, rows[i].insn, rows[i].bits == 64, d, d);
		else
			x_bswap(&r->code, rows[i].bits == 64, d);
		val_result(r, d, rows[i].bits, op->d);
		return true;
	}
	return false;
}

/* ---- one operand ---- */

static void do_extend(struct straight_run *r, const struct mach_op *op, unsigned from, unsigned to,
		      bool sign)
{
	struct straight_value a = val_operand(r, from, op->a, R_NONE);
	unsigned d = sign ? val_own_signed(r, a, from, R_NONE) : val_own(r, a, from, R_NONE);

	if (sign && to == 32)
		x_rr(&r->code, I_MOV, false, d, d);
	val_result(r, d, to, op->d);
}

static void do_high(struct straight_run *r, const struct mach_op *op, unsigned from)
{
	unsigned d = val_own(r, val_operand(r, from, op->a, R_NONE), from, R_NONE);

	x_shift_imm(&r->code, 5, from == 64, d, from / 2);
	val_result(r, d, 64, op->d);
}

/* The lowest bit, or its opposite, or so many copies of it. */
static void do_bit(struct straight_run *r, const struct mach_op *op, bool invert, unsigned spread)
{
	unsigned d = val_own(r, val_operand(r, 8, op->a, R_NONE), 8, R_NONE);

	x_ri(&r->code, 4, false, d, 1);
	if (invert)
		x_ri(&r->code, 6, false, d, 1);
	if (spread)
		x_unary(&r->code, 3, spread == 64, d);
	val_result(r, d, spread ? spread : 64, op->d);
}

static void do_not_zero(struct straight_run *r, const struct mach_op *op, unsigned bits, bool fill)
{
	val_into(r, R_AX, val_operand(r, bits, op->a, R_NONE), bits);
	x_rr(&r->code, I_TEST, true, R_AX, R_AX);
	unsigned d = val_fresh(r, R_NONE, R_NONE);

	x_setcc(&r->code, CC_NE, d);
	x_rr(&r->code, I_ZX8, false, d, d);
	if (fill)
		x_unary(&r->code, 3, bits == 64, d);
	val_result(r, d, 64, op->d);
}

/* All bits from the lowest that is set upwards: a | -a */
static void do_left(struct straight_run *r, const struct mach_op *op, unsigned bits)
{
	unsigned d = val_own(r, val_operand(r, bits, op->a, R_NONE), bits, R_NONE);

	x_rr(&r->code, I_MOV, true, R_AX, d);
	x_unary(&r->code, 3, bits == 64, R_AX);
	x_rr(&r->code, I_OR, bits == 64, d, R_AX);
	val_result(r, d, bits, op->d);
}

static void do_not(struct straight_run *r, const struct mach_op *op, unsigned bits)
{
	unsigned d = val_own(r, val_operand(r, bits, op->a, R_NONE), bits, R_NONE);

	x_unary(&r->code, 2, bits == 64, d);
	val_result(r, d, bits, op->d);
}

static void do_and_or_bit(struct straight_run *r, const struct mach_op *op, unsigned insn)
{
	struct straight_value a = val_operand(r, 8, op->a, R_NONE);
	struct straight_value b = val_operand(r, 8, op->b, a.constant ? R_NONE : a.reg);
	unsigned d = val_own(r, a, 8, b.constant ? R_NONE : b.reg);

	val_into(r, R_AX, b, 8);
	x_rr(&r->code, insn, false, d, R_AX);
	x_ri(&r->code, 4, false, d, 1);
	val_result(r, d, 64, op->d);
}

static void do_choose(struct straight_run *r, const struct mach_op *op)
{
	unsigned bits = op->size == 1 || op->size == 2 || op->size == 4 ? 8u * op->size : 64;

	val_into(r, R_AX, val_operand(r, bits, (uint32_t)op->imm, R_NONE), bits);
	val_into(r, R_CX, val_operand(r, bits, op->b, R_NONE), bits);
	val_into(r, R_DX, val_operand(r, 8, op->a, R_NONE), 8);
	unsigned d = val_fresh(r, R_NONE, R_NONE);

	x_rr(&r->code, I_MOV, true, d, R_AX);
	x_ri(&r->code, 4, false, R_DX, 1);
	x_rr(&r->code, I_CMOVNE, true, d, R_CX);
	val_result(r, d, 64, op->d);
}

/* ---- which is which ---- */

static bool do_family(struct straight_run *r, const struct mach_op *op)
{
	static const struct {
		uint16_t first;
		uint16_t insn;
		uint8_t imm_form;
	} alus[] = {
		{ OP_ADD8, I_ADD, 0 }, { OP_SUB8, I_SUB, 5 }, { OP_MUL8, I_MUL, 0 },
		{ OP_AND8, I_AND, 4 }, { OP_OR8, I_OR, 1 },   { OP_XOR8, I_XOR, 6 },
	};

	for (unsigned i = 0; i < sizeof alus / sizeof alus[0]; i++)
		if (op->code >= alus[i].first && op->code < alus[i].first + 4) {
			do_alu(r, op, width_of(op->code, alus[i].first), alus[i].insn, alus[i].imm_form);
			return true;
		}
	if (IS_ONE_OF(op->code, SHL))
		do_shift(r, op, width_of(op->code, OP_SHL8), 4);
	else if (IS_ONE_OF(op->code, SHR))
		do_shift(r, op, width_of(op->code, OP_SHR8), 5);
	else if (IS_ONE_OF(op->code, SAR))
		do_shift(r, op, width_of(op->code, OP_SAR8), 7);
	else if (IS_ONE_OF(op->code, EQ))
		do_compare(r, op, width_of(op->code, OP_EQ8), CC_E);
	else if (IS_ONE_OF(op->code, NE))
		do_compare(r, op, width_of(op->code, OP_NE8), CC_NE);
	else if (IS_ONE_OF(op->code, NOT))
		do_not(r, op, width_of(op->code, OP_NOT8));
	else if (IS_ONE_OF(op->code, LEFT))
		do_left(r, op, width_of(op->code, OP_LEFT8));
	else
		return do_bits(r, op);
	return true;
}

bool straight_alu(struct straight_run *r, const struct mach_op *op)
{
	if (do_family(r, op))
		return true;
	switch (op->code) {
	case OP_LTU32: do_compare(r, op, 32, CC_B); break;
	case OP_LTU64: do_compare(r, op, 64, CC_B); break;
	case OP_LEU32: do_compare(r, op, 32, CC_BE); break;
	case OP_LEU64: do_compare(r, op, 64, CC_BE); break;
	case OP_LTS32: do_compare(r, op, 32, CC_L); break;
	case OP_LTS64: do_compare(r, op, 64, CC_L); break;
	case OP_LES32: do_compare(r, op, 32, CC_LE); break;
	case OP_LES64: do_compare(r, op, 64, CC_LE); break;
	case OP_MULLU8: do_long_product(r, op, 8, false); break;
	case OP_MULLU16: do_long_product(r, op, 16, false); break;
	case OP_MULLU32: do_long_product(r, op, 32, false); break;
	case OP_MULLS8: do_long_product(r, op, 8, true); break;
	case OP_MULLS16: do_long_product(r, op, 16, true); break;
	case OP_MULLS32: do_long_product(r, op, 32, true); break;
	case OP_MULLU64: do_product_128(r, op, false); break;
	case OP_MULLS64: do_product_128(r, op, true); break;
	case OP_HL8: do_concat(r, op, 8); break;
	case OP_HL16: do_concat(r, op, 16); break;
	case OP_HL32: do_concat(r, op, 32); break;
	case OP_HL64: do_concat_128(r, op); break;
	case OP_AND1: do_and_or_bit(r, op, I_AND); break;
	case OP_OR1: do_and_or_bit(r, op, I_OR); break;
	case OP_NOT1: do_bit(r, op, true, 0); break;
	case OP_TO1: do_bit(r, op, false, 0); break;
	case OP_BIT: do_bit(r, op, false, 0); break;
	case OP_SPREAD8: do_bit(r, op, false, 8); break;
	case OP_SPREAD16: do_bit(r, op, false, 16); break;
	case OP_SPREAD32: do_bit(r, op, false, 32); break;
	case OP_SPREAD64: do_bit(r, op, false, 64); break;
	case OP_TO8: case OP_ZX8: case OP_GET8: do_extend(r, op, 8, 64, false); break;
	case OP_TO16: case OP_ZX16: case OP_GET16: do_extend(r, op, 16, 64, false); break;
	case OP_TO32: case OP_ZX32: case OP_GET32: do_extend(r, op, 32, 64, false); break;
	case OP_SX8TO16: do_extend(r, op, 8, 16, true); break;
	case OP_SX8TO32: do_extend(r, op, 8, 32, true); break;
	case OP_SX8TO64: do_extend(r, op, 8, 64, true); break;
	case OP_SX16TO32: do_extend(r, op, 16, 32, true); break;
	case OP_SX16TO64: do_extend(r, op, 16, 64, true); break;
	case OP_SX32TO64: do_extend(r, op, 32, 64, true); break;
	case OP_HI16: do_high(r, op, 16); break;
	case OP_HI32: do_high(r, op, 32); break;
	case OP_HI64: do_high(r, op, 64); break;
	case OP_NEZ8: do_not_zero(r, op, 8, false); break;
	case OP_NEZ16: do_not_zero(r, op, 16, false); break;
	case OP_NEZ32: do_not_zero(r, op, 32, false); break;
	case OP_NEZ64: do_not_zero(r, op, 64, false); break;
	case OP_FILL32: do_not_zero(r, op, 32, true); break;
	case OP_FILL64: do_not_zero(r, op, 64, true); break;
	case OP_ITE: do_choose(r, op); break;
	default: return false;
	}
	return true;
}
