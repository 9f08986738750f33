/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The wall between guest code and the processor: which instructions the host may execute itself.
 *
 * Guest code comes with a trace, and a trace from a stranger. So nothing is executed because it is
 * not forbidden: an instruction must be of a family that is listed, each of its operands of a kind
 * that the stub replaces or carries, its flags those that arithmetic has. What is then
 * executed is not the guest's bytes, but bytes that were encoded anew, without prefixes that mean
 * nothing; these are decoded again and must be the same instruction in all that matters, with the
 * registers and the memory operand of the stub.
 *
 * What faults is no business of the host's processor either: divisions are not listed (libVEX does
 * them), SSE runs with its exceptions masked, x87 instructions are not begun while an exception is
 * pending (pending_exception(), exec.c), operands are aligned.
 */
#include "analyzer/engine/native.h"

#include <string.h>

#ifndef MACHINE_TEST_NO_WALL

#define ARITHMETIC_FLAGS                                                              \
	(ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF |  \
	 ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF)

/* Vector and floating-point instructions by extension and category. What is in one of them and
 * not wanted names a register, or accesses memory, in a way that operand_allowed() refuses. */
#define VECTOR_CATEGORIES 8
static const struct {
	uint16_t ext;
	uint16_t category[VECTOR_CATEGORIES];
} vectors[] = {
#define C(name) ZYDIS_CATEGORY_##name
	{ ZYDIS_ISA_EXT_X87, { C(X87_ALU), C(FCMOV) } },
	{ ZYDIS_ISA_EXT_MMX, { C(MMX), C(DATAXFER), C(LOGICAL) } },
	{ ZYDIS_ISA_EXT_SSE, { C(SSE), C(CONVERT), C(DATAXFER), C(LOGICAL_FP) } },
	{ ZYDIS_ISA_EXT_SSE2,
	  { C(SSE), C(MMX), C(CONVERT), C(DATAXFER), C(LOGICAL), C(LOGICAL_FP) } },
	{ ZYDIS_ISA_EXT_SSE3, { C(SSE), C(DATAXFER), C(X87_ALU) } },
	{ ZYDIS_ISA_EXT_SSSE3, { C(SSE), C(MMX) } },
	{ ZYDIS_ISA_EXT_SSE4, { C(SSE), C(LOGICAL) } },
	{ ZYDIS_ISA_EXT_AES, { C(AES) } },
	{ ZYDIS_ISA_EXT_PCLMULQDQ, { C(PCLMULQDQ) } },
	{ ZYDIS_ISA_EXT_SHA, { C(SHA) } },
	{ ZYDIS_ISA_EXT_GFNI, { C(GFNI) } },
	{ ZYDIS_ISA_EXT_AVX,
	  { C(AVX), C(BROADCAST), C(CONVERT), C(DATAXFER), C(LOGICAL), C(LOGICAL_FP), C(STTNI) } },
	{ ZYDIS_ISA_EXT_AVX2, { C(AVX2), C(BROADCAST), C(LOGICAL), C(DATAXFER) } },
	{ ZYDIS_ISA_EXT_AVXAES, { C(AES) } },
	{ ZYDIS_ISA_EXT_AVX_VNNI, { C(VEX) } },
	{ ZYDIS_ISA_EXT_F16C, { C(CONVERT) } },
	{ ZYDIS_ISA_EXT_FMA, { C(VFMA) } },
	{ ZYDIS_ISA_EXT_VAES, { C(VAES) } },
	{ ZYDIS_ISA_EXT_VPCLMULQDQ, { C(VPCLMULQDQ) } },
	{ ZYDIS_ISA_EXT_AVX512EVEX,
	  { C(AVX512), C(BLEND), C(BROADCAST), C(COMPRESS), C(CONFLICT), C(CONVERT), C(DATAXFER),
	    C(EXPAND) } },
	{ ZYDIS_ISA_EXT_AVX512EVEX,
	  { C(AVX512_BITALG), C(AVX512_VBMI), C(AVX512_VP2INTERSECT), C(FP16), C(GFNI), C(IFMA),
	    C(LOGICAL), C(VBMI2) } },
	{ ZYDIS_ISA_EXT_AVX512EVEX,
	  { C(VFMA), C(VAES), C(VPCLMULQDQ), C(AES), C(LOGICAL_FP), C(SHIFT), C(PCLMULQDQ) } },
	{ ZYDIS_ISA_EXT_AVX512VEX, { C(KMASK) } },
#undef C
};

/* Integer instructions one by one: those libVEX does not know in every form. */
static const uint16_t integers[] = {
#define M(name) ZYDIS_MNEMONIC_##name
	M(BT), M(BTS), M(BTR), M(BTC), M(ADCX), M(ADOX),
	M(ANDN), M(BEXTR), M(BLSI), M(BLSMSK), M(BLSR), M(TZCNT), M(LZCNT), M(POPCNT),
	M(BZHI), M(MULX), M(PDEP), M(PEXT), M(RORX), M(SARX), M(SHLX), M(SHRX),
	M(CRC32), M(MOVBE), M(MOVDIRI), M(MOVNTI), M(BSF), M(BSR), M(BSWAP),
	M(ADC), M(ADD), M(AND), M(CMP), M(DEC), M(IMUL), M(INC), M(MUL), M(NEG), M(NOT), M(OR),
	M(RCL), M(RCR), M(ROL), M(ROR), M(SAR), M(SBB), M(SHL), M(SHLD), M(SHR), M(SHRD), M(SUB),
	M(TEST), M(XOR), M(MOV), M(MOVSX), M(MOVSXD), M(MOVZX), M(LAHF), M(SAHF),
#undef M
};

static bool is_vector(const ZydisDecodedInstruction *i)
{
	for (size_t k = 0; k < sizeof vectors / sizeof vectors[0]; k++)
		for (size_t c = 0; vectors[k].ext == i->meta.isa_ext && c < VECTOR_CATEGORIES; c++)
			if (vectors[k].category[c] && vectors[k].category[c] == i->meta.category)
				return true;
	return false;
}

static bool is_integer(const ZydisDecodedInstruction *i)
{
	for (size_t k = 0; k < sizeof integers / sizeof integers[0]; k++)
		if (integers[k] == i->mnemonic)
			return true;
	return false;
}

static bool register_allowed(ZydisRegister reg)
{
	switch (ZydisRegisterGetClass(reg)) {
	case ZYDIS_REGCLASS_GPR8:
	case ZYDIS_REGCLASS_GPR16:
	case ZYDIS_REGCLASS_GPR32:
	case ZYDIS_REGCLASS_GPR64:
	case ZYDIS_REGCLASS_MMX:
	case ZYDIS_REGCLASS_X87:
	case ZYDIS_REGCLASS_XMM:
	case ZYDIS_REGCLASS_YMM:
	case ZYDIS_REGCLASS_ZMM:
	case ZYDIS_REGCLASS_MASK:
	case ZYDIS_REGCLASS_FLAGS: /* which of them: flags_allowed() */
		return true;
	default: /* segments, control and debug registers, tiles, mxcsr, the instruction pointer */
		return reg == ZYDIS_REGISTER_X87CONTROL || reg == ZYDIS_REGISTER_X87STATUS ||
		       reg == ZYDIS_REGISTER_X87TAG;
	}
}

/* The processor adds this register to the address: what the stub put there is not what it accesses. */
static bool shifts_address(const struct insn *in)
{
	switch (in->i.mnemonic) {
	case ZYDIS_MNEMONIC_BT:
	case ZYDIS_MNEMONIC_BTS:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTC:
		return in->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		       in->op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE;
	default:
		return false;
	}
}

static bool operand_allowed(const ZydisDecodedOperand *op)
{
	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		return register_allowed(op->reg.value);
	case ZYDIS_OPERAND_TYPE_MEMORY: /* no vector of addresses, none that is not written down */
		return op->mem.type == ZYDIS_MEMOP_TYPE_MEM &&
		       op->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT && op->size &&
		       op->size % 8 == 0 && op->size <= 8 * NATIVE_OPERAND_MAX;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		return !op->imm.is_relative;
	default:
		return false;
	}
}

static bool flags_allowed(const ZydisAccessedFlags *f)
{
	return !f || !((f->modified | f->set_0 | f->set_1 | f->undefined | f->tested) &
		       ~(uint32_t)ARITHMETIC_FLAGS);
}

bool native_allows(const struct insn *in)
{
	unsigned memory = 0;

	/* Those with functions of their own touch what no operand names. */
	if (special_known(in->i.mnemonic, &in->i) || (!is_vector(&in->i) && !is_integer(&in->i)))
		return false;
	if ((in->i.attributes & (ZYDIS_ATTRIB_IS_PRIVILEGED | ZYDIS_ATTRIB_HAS_LOCK)) ||
	    in->i.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE || shifts_address(in) ||
	    !flags_allowed(in->i.cpu_flags))
		return false;
	for (int k = 0; k < in->i.operand_count; k++) {
		if (!operand_allowed(&in->op[k]))
			return false;
		memory += in->op[k].type == ZYDIS_OPERAND_TYPE_MEMORY;
	}
	return memory <= 1;
}

/* ---- what was made of it ---- */

#define MEANINGLESS                                                                           \
	(ZYDIS_ATTRIB_HAS_LOCK | ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |               \
	 ZYDIS_ATTRIB_HAS_REPNE | ZYDIS_ATTRIB_HAS_BND | ZYDIS_ATTRIB_HAS_XACQUIRE |          \
	 ZYDIS_ATTRIB_HAS_XRELEASE | ZYDIS_ATTRIB_HAS_NOTRACK | ZYDIS_ATTRIB_HAS_SEGMENT |    \
	 ZYDIS_ATTRIB_HAS_ADDRESSSIZE)

static bool same_flags(const ZydisAccessedFlags *a, const ZydisAccessedFlags *b)
{
	return a == b || (a && b && !memcmp(a, b, sizeof *a));
}

/* Width and length of vectors may be written down where they mean nothing: the operands have them. */
static bool same_family(const ZydisDecodedInstruction *a, const ZydisDecodedInstruction *b)
{
	return a->mnemonic == b->mnemonic && a->encoding == b->encoding &&
	       a->operand_count == b->operand_count &&
	       a->operand_count_visible == b->operand_count_visible &&
	       a->avx.mask.mode == b->avx.mask.mode && a->avx.mask.reg == b->avx.mask.reg &&
	       a->avx.broadcast.mode == b->avx.broadcast.mode &&
	       a->avx.rounding.mode == b->avx.rounding.mode && a->avx.has_sae == b->avx.has_sae &&
	       same_flags(a->cpu_flags, b->cpu_flags);
}

static bool same_register(ZydisRegister guest, ZydisRegister made, const struct native_made *as)
{
	if (guest == made)
		return reg_offset(guest) != MACH_OFF(RSP);
	return reg_offset(guest) == MACH_OFF(RSP) && as->spare != ZYDIS_REGISTER_NONE &&
	       reg_offset(made) == reg_offset(as->spare) &&
	       ZydisRegisterGetClass(guest) == ZydisRegisterGetClass(made);
}

/* Of the others some instructions have two encodings: one names what the other implies. */
static bool is_hidden(const ZydisDecodedOperand *op)
{
	return op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
}

static bool same_operand(const ZydisDecodedOperand *guest, const ZydisDecodedOperand *made,
			 const struct native_made *as)
{
	if (guest->type != made->type || is_hidden(guest) != is_hidden(made) ||
	    guest->actions != made->actions || guest->size != made->size)
		return false;
	switch (guest->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		return same_register(guest->reg.value, made->reg.value, as);
	case ZYDIS_OPERAND_TYPE_MEMORY:
		return made->mem.type == ZYDIS_MEMOP_TYPE_MEM && made->mem.base == as->pointer &&
		       as->pointer != ZYDIS_REGISTER_NONE &&
		       made->mem.index == ZYDIS_REGISTER_NONE && !made->mem.disp.value &&
		       made->mem.segment != ZYDIS_REGISTER_FS && made->mem.segment != ZYDIS_REGISTER_GS;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		return guest->imm.value.u == made->imm.value.u && !made->imm.is_relative;
	default:
		return false;
	}
}

bool native_made_right(const struct insn *in, const uint8_t *bytes, size_t n,
		       const struct native_made *as)
{
	struct insn made;

	if (!insn_decode(bytes, n, in->pc, &made) || made.i.length != n || !native_allows(&made) ||
	    !host_can(&made.i) || (made.i.attributes & MEANINGLESS) || !same_family(&in->i, &made.i))
		return false;
	for (int k = 0; k < in->i.operand_count; k++)
		if (!same_operand(&in->op[k], &made.op[k], as))
			return false;
	return true;
}

/* ---- the same instruction without what means nothing, for libVEX ---- */

static bool same_meaning(const struct insn *a, const struct insn *b)
{
	if (!same_family(&a->i, &b->i) || a->i.address_width != b->i.address_width)
		return false;
	for (int k = 0; k < a->i.operand_count; k++) {
		const ZydisDecodedOperand *x = &a->op[k], *y = &b->op[k];

		if (x->type != y->type || x->visibility != y->visibility || x->actions != y->actions ||
		    x->size != y->size)
			return false;
		if (x->type == ZYDIS_OPERAND_TYPE_REGISTER ? x->reg.value != y->reg.value :
		    x->type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? x->imm.value.u != y->imm.value.u :
		    x->type != ZYDIS_OPERAND_TYPE_MEMORY ||
			    x->mem.type != y->mem.type || x->mem.base != y->mem.base ||
			    x->mem.index != y->mem.index || x->mem.scale != y->mem.scale ||
			    x->mem.disp.value != y->mem.disp.value ||
			    (x->mem.segment != y->mem.segment &&
			     (x->mem.segment == ZYDIS_REGISTER_FS ||
			      x->mem.segment == ZYDIS_REGISTER_GS ||
			      y->mem.segment == ZYDIS_REGISTER_FS ||
			      y->mem.segment == ZYDIS_REGISTER_GS)))
			return false;
	}
	return true;
}

bool native_canonical(const struct insn *in, uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH],
		      struct insn *out)
{
	ZydisEncoderRequest req;
	ZyanUSize n = ZYDIS_MAX_INSTRUCTION_LENGTH;

	if (ZYAN_FAILED(ZydisEncoderDecodedInstructionToEncoderRequest(
		    &in->i, in->op, in->i.operand_count_visible, &req)))
		return false;
	req.prefixes &= ZYDIS_ATTRIB_HAS_LOCK | ZYDIS_ATTRIB_HAS_SEGMENT_FS |
			ZYDIS_ATTRIB_HAS_SEGMENT_GS;
	if (ZYAN_FAILED(ZydisEncoderEncodeInstruction(&req, bytes, &n)) || n >= in->i.length)
		return false;
	/* It ends where the guest's ends: distances from there are the same. */
	return insn_decode(bytes, n, in->pc + in->i.length - n, out) && out->i.length == n &&
	       out->class == in->class && same_meaning(in, out);
}

#else /* the wall is down, for a test of the one behind it: as it once was */

bool native_allows(const struct insn *in)
{
	(void)in;
	return true;
}

bool native_made_right(const struct insn *in, const uint8_t *bytes, size_t n,
		       const struct native_made *as)
{
	(void)in, (void)bytes, (void)n, (void)as;
	return true;
}

bool native_canonical(const struct insn *in, uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH],
		      struct insn *out)
{
	(void)in, (void)bytes, (void)out;
	return false;
}

#endif
