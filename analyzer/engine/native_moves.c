/*
 * Which vector instructions only move bytes: the shadow carries expressions
 * through these, and structures copied through vector registers stay symbolic.
 */
#include "analyzer/engine/code.h"

enum move_kind {
	MOVE_WHOLE, /* all of the operand; a register's rest is cleared if VEX-encoded */
	MOVE_LOW,   /* bytes; the rest of 16 is cleared when loaded from memory or a
		     * general register */
	MOVE_HIGH,  /* 8 bytes, to or from the upper half of 16 */
	MOVE_UPPER, /* unpack: the low 8 bytes of the source to the upper half */
	MOVE_INSERT, /* bytes, at the element an immediate names */
	MOVE_EXTRACT,
};

static const struct {
	uint16_t mnemonic;
	uint8_t kind, bytes;
} moves[] = {
	{ ZYDIS_MNEMONIC_MOVAPS, MOVE_WHOLE, 16 },  { ZYDIS_MNEMONIC_MOVAPD, MOVE_WHOLE, 16 },
	{ ZYDIS_MNEMONIC_MOVUPS, MOVE_WHOLE, 16 },  { ZYDIS_MNEMONIC_MOVUPD, MOVE_WHOLE, 16 },
	{ ZYDIS_MNEMONIC_MOVDQA, MOVE_WHOLE, 16 },  { ZYDIS_MNEMONIC_MOVDQU, MOVE_WHOLE, 16 },
	{ ZYDIS_MNEMONIC_LDDQU, MOVE_WHOLE, 16 },   { ZYDIS_MNEMONIC_MOVNTDQ, MOVE_WHOLE, 16 },
	{ ZYDIS_MNEMONIC_VMOVAPS, MOVE_WHOLE, 16 }, { ZYDIS_MNEMONIC_VMOVAPD, MOVE_WHOLE, 16 },
	{ ZYDIS_MNEMONIC_VMOVUPS, MOVE_WHOLE, 16 }, { ZYDIS_MNEMONIC_VMOVUPD, MOVE_WHOLE, 16 },
	{ ZYDIS_MNEMONIC_VMOVDQA, MOVE_WHOLE, 16 }, { ZYDIS_MNEMONIC_VMOVDQU, MOVE_WHOLE, 16 },
	{ ZYDIS_MNEMONIC_VLDDQU, MOVE_WHOLE, 16 },  { ZYDIS_MNEMONIC_VMOVNTDQ, MOVE_WHOLE, 16 },
	{ ZYDIS_MNEMONIC_VMOVDQA32, MOVE_WHOLE, 16 }, { ZYDIS_MNEMONIC_VMOVDQA64, MOVE_WHOLE, 16 },
	{ ZYDIS_MNEMONIC_VMOVDQU8, MOVE_WHOLE, 16 }, { ZYDIS_MNEMONIC_VMOVDQU16, MOVE_WHOLE, 16 },
	{ ZYDIS_MNEMONIC_VMOVDQU32, MOVE_WHOLE, 16 }, { ZYDIS_MNEMONIC_VMOVDQU64, MOVE_WHOLE, 16 },
	{ ZYDIS_MNEMONIC_MOVQ, MOVE_LOW, 8 },       { ZYDIS_MNEMONIC_VMOVQ, MOVE_LOW, 8 },
	{ ZYDIS_MNEMONIC_MOVD, MOVE_LOW, 4 },       { ZYDIS_MNEMONIC_VMOVD, MOVE_LOW, 4 },
	{ ZYDIS_MNEMONIC_MOVSD, MOVE_LOW, 8 },      { ZYDIS_MNEMONIC_VMOVSD, MOVE_LOW, 8 },
	{ ZYDIS_MNEMONIC_MOVSS, MOVE_LOW, 4 },      { ZYDIS_MNEMONIC_VMOVSS, MOVE_LOW, 4 },
	{ ZYDIS_MNEMONIC_MOVHPS, MOVE_HIGH, 8 },    { ZYDIS_MNEMONIC_MOVHPD, MOVE_HIGH, 8 },
	{ ZYDIS_MNEMONIC_PUNPCKLQDQ, MOVE_UPPER, 8 }, { ZYDIS_MNEMONIC_UNPCKLPD, MOVE_UPPER, 8 },
	{ ZYDIS_MNEMONIC_PINSRQ, MOVE_INSERT, 8 },  { ZYDIS_MNEMONIC_PINSRD, MOVE_INSERT, 4 },
	{ ZYDIS_MNEMONIC_PEXTRQ, MOVE_EXTRACT, 8 }, { ZYDIS_MNEMONIC_PEXTRD, MOVE_EXTRACT, 4 },
};

static bool is_memory(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY;
}

/* Frame offset of a register operand, 0 for memory; upper: that of its bits from 256 on.
 * False: neither. */
static bool place(const ZydisDecodedOperand *op, uint32_t *out, uint32_t *upper, bool *general)
{
	*general = false;
	*out = *upper = 0;
	if (is_memory(op))
		return true;
	if (op->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	switch (ZydisRegisterGetClass(op->reg.value)) {
	case ZYDIS_REGCLASS_XMM:
	case ZYDIS_REGCLASS_YMM:
	case ZYDIS_REGCLASS_ZMM:
		*out = vec_offset((unsigned)ZydisRegisterGetId(op->reg.value));
		*upper = vec_upper((unsigned)ZydisRegisterGetId(op->reg.value));
		return true;
	default:
		*out = reg_offset(op->reg.value);
		*general = true;
		return *out != 0;
	}
}

static void set_low(const struct insn *in, struct native_insn *n, bool dst_general,
		    bool src_general)
{
	bool vex = in->i.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY;
	bool merges = n->move_dst && n->move_src && !dst_general && !src_general &&
		      (in->i.mnemonic == ZYDIS_MNEMONIC_MOVSD || in->i.mnemonic == ZYDIS_MNEMONIC_MOVSS);

	if (!n->move_dst || merges)
		return;
	n->clear_bytes = (uint8_t)((dst_general ? 8 : vex ? 32 : 16) - n->move_bytes);
}

static void set_shape(const struct insn *in, struct native_insn *n, unsigned kind, unsigned bytes,
		      bool dst_general, bool src_general)
{
	bool vex = in->i.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY;
	unsigned element;

	n->move_bytes = (uint8_t)bytes;
	switch (kind) {
	case MOVE_WHOLE:
		n->move_bytes = (uint8_t)(in->op[0].size / 8);
		if (vex && n->move_dst && n->move_bytes < 32)
			n->clear_bytes = (uint8_t)(32 - n->move_bytes);
		break;
	case MOVE_LOW:
		set_low(in, n, dst_general, src_general);
		break;
	case MOVE_HIGH:
		if (n->move_dst)
			n->move_dst += 8;
		else
			n->move_src += 8;
		break;
	case MOVE_UPPER:
		n->move_dst += 8;
		break;
	default:
		element = (unsigned)in->op[2].imm.value.u % (16 / bytes) * bytes;
		if (kind == MOVE_INSERT) {
			n->move_dst += element;
		} else {
			n->move_src += element;
			if (n->move_dst)
				n->clear_bytes = (uint8_t)(8 - bytes);
		}
	}
}

static bool same_register(const ZydisDecodedOperand *a, const ZydisDecodedOperand *b)
{
	return a->type == ZYDIS_OPERAND_TYPE_REGISTER && b->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       a->reg.value == b->reg.value;
}

static bool clears(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_PXOR:
	case ZYDIS_MNEMONIC_XORPS:
	case ZYDIS_MNEMONIC_XORPD:
	case ZYDIS_MNEMONIC_VPXOR:
	case ZYDIS_MNEMONIC_VPXORD:
	case ZYDIS_MNEMONIC_VPXORQ:
	case ZYDIS_MNEMONIC_VXORPS:
	case ZYDIS_MNEMONIC_VXORPD:
		return true;
	default:
		return false;
	}
}

/* Operands that are named in the source; the mask every EVEX instruction has is none when it is
 * k0, and with another one nothing is a plain move. */
static unsigned operands(const struct insn *in, const ZydisDecodedOperand **out)
{
	unsigned n = 0;

	for (int k = 0; k < in->i.operand_count_visible; k++) {
		if (in->op[k].encoding != ZYDIS_OPERAND_ENCODING_MASK)
			out[n++] = &in->op[k];
		else if (in->op[k].reg.value != ZYDIS_REGISTER_K0)
			return 0;
	}
	return n;
}

void native_find_move(const struct insn *in, struct native_insn *n)
{
	const ZydisDecodedOperand *op[ZYDIS_MAX_OPERAND_COUNT];
	unsigned nop = operands(in, op);
	bool dst_general, src_general;

	if (nop < 2)
		return;
	n->zeroes = clears(in->i.mnemonic) && same_register(op[nop - 2], op[nop - 1]);
	for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
		bool three = moves[i].kind >= MOVE_INSERT;

		if (moves[i].mnemonic != in->i.mnemonic)
			continue;
		if (nop != (three ? 3 : 2) || n->x87 ||
		    !place(op[0], &n->move_dst, &n->dst_upper, &dst_general) ||
		    !place(op[1], &n->move_src, &n->src_upper, &src_general))
			return;
		set_shape(in, n, moves[i].kind, moves[i].bytes, dst_general, src_general);
		n->clear_upper = n->dst_upper && n->move_bytes <= 32 &&
				 in->i.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY;
		return;
	}
}
