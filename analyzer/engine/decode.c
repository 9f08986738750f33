/*
 * What has to be done with an instruction, from its bytes alone.
 *
 * Branches are classified here, never from libVEX's IR: that inverts
 * conditions, folds indirect calls to constants, and has exits that are no
 * branches.
 */
#include "analyzer/engine/code.h"

#include <stdio.h>

static ZydisDecoder decoder;
static bool decoder_ready;

static bool is_locked(const struct insn *in)
{
	if (in->i.attributes & ZYDIS_ATTRIB_HAS_LOCK)
		return true;
	return in->i.mnemonic == ZYDIS_MNEMONIC_XCHG &&
	       (in->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY ||
		in->op[1].type == ZYDIS_OPERAND_TYPE_MEMORY);
}

/* libVEX spills the operand of these below the stack pointer. */
static bool is_register_bit_test(const struct insn *in)
{
	switch (in->i.mnemonic) {
	case ZYDIS_MNEMONIC_BT:
	case ZYDIS_MNEMONIC_BTS:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTC:
		return in->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		       in->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
	default:
		return false;
	}
}

/* Uses a register libVEX's integer half does not know. */
static bool is_vector_or_float(const struct insn *in)
{
	if (in->i.meta.isa_ext == ZYDIS_ISA_EXT_X87 || in->i.meta.isa_ext == ZYDIS_ISA_EXT_MMX)
		return true;
	for (int k = 0; k < in->i.operand_count; k++) {
		if (in->op[k].type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		switch (ZydisRegisterGetClass(in->op[k].reg.value)) {
		case ZYDIS_REGCLASS_XMM:
		case ZYDIS_REGCLASS_YMM:
		case ZYDIS_REGCLASS_ZMM:
		case ZYDIS_REGCLASS_MMX:
		case ZYDIS_REGCLASS_X87:
		case ZYDIS_REGCLASS_MASK:
			return true;
		default:
			break;
		}
	}
	return false;
}

static enum insn_class class_by_mnemonic(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_SYSCALL:
		return INSN_SYSCALL;
	case ZYDIS_MNEMONIC_RDTSC:
	case ZYDIS_MNEMONIC_RDTSCP:
	case ZYDIS_MNEMONIC_CPUID:
	case ZYDIS_MNEMONIC_XGETBV:
	case ZYDIS_MNEMONIC_RDRAND:
	case ZYDIS_MNEMONIC_RDSEED:
	case ZYDIS_MNEMONIC_RDPID:
		return INSN_NONDET;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_CLI: /* the kernel's alone, or the kernel lets nobody: */
	case ZYDIS_MNEMONIC_STI:
	case ZYDIS_MNEMONIC_IN:
	case ZYDIS_MNEMONIC_OUT:
	case ZYDIS_MNEMONIC_INSB:
	case ZYDIS_MNEMONIC_INSW:
	case ZYDIS_MNEMONIC_INSD:
	case ZYDIS_MNEMONIC_OUTSB:
	case ZYDIS_MNEMONIC_OUTSW:
	case ZYDIS_MNEMONIC_OUTSD:
	case ZYDIS_MNEMONIC_RDPMC:
		return INSN_TRAP;
	case ZYDIS_MNEMONIC_LFENCE:
	case ZYDIS_MNEMONIC_SFENCE:
	case ZYDIS_MNEMONIC_MFENCE:
	case ZYDIS_MNEMONIC_PAUSE:
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_ENDBR64:
	case ZYDIS_MNEMONIC_ENDBR32:
	case ZYDIS_MNEMONIC_CLFLUSH:
	case ZYDIS_MNEMONIC_CLFLUSHOPT:
	case ZYDIS_MNEMONIC_CLWB:
	case ZYDIS_MNEMONIC_CLDEMOTE:
	case ZYDIS_MNEMONIC_PREFETCH:
	case ZYDIS_MNEMONIC_PREFETCHNTA:
	case ZYDIS_MNEMONIC_PREFETCHT0:
	case ZYDIS_MNEMONIC_PREFETCHT1:
	case ZYDIS_MNEMONIC_PREFETCHT2:
	case ZYDIS_MNEMONIC_PREFETCHW:
	case ZYDIS_MNEMONIC_PREFETCHWT1:
	case ZYDIS_MNEMONIC_RDSSPD: /* no shadow stack: these do nothing */
	case ZYDIS_MNEMONIC_RDSSPQ:
		return INSN_NOTHING;
	default:
		return INSN_PLAIN;
	}
}

static enum insn_class class_of_branch(struct insn *in)
{
	const ZydisDecodedOperand *op = &in->op[0];
	uint64_t behind = in->pc + in->i.length;

	switch (in->i.meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		if (in->i.mnemonic == ZYDIS_MNEMONIC_XBEGIN ||
		    in->i.mnemonic == ZYDIS_MNEMONIC_XEND ||
		    in->i.mnemonic == ZYDIS_MNEMONIC_XABORT)
			return INSN_BAD;
		in->target = behind + (uint64_t)op->imm.value.s;
		return INSN_COND;
	case ZYDIS_CATEGORY_RET:
		in->ret = true;
		return in->i.mnemonic == ZYDIS_MNEMONIC_RET ? INSN_INDIRECT : INSN_BAD;
	case ZYDIS_CATEGORY_CALL:
		in->call = true;
		break;
	default:
		break;
	}
	if (in->i.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return INSN_BAD;
	return op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? INSN_DIRECT : INSN_INDIRECT;
}

/* State of its own that the machine does not have: tiles. */
static bool is_foreign(const struct insn *in)
{
	return in->i.meta.isa_ext == ZYDIS_ISA_EXT_AMX_TILE ||
	       in->i.meta.isa_ext == ZYDIS_ISA_EXT_AMX_INT8 ||
	       in->i.meta.isa_ext == ZYDIS_ISA_EXT_AMX_BF16;
}

static enum insn_class classify(struct insn *in)
{
	enum insn_class class;

	switch (in->i.meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
		return class_of_branch(in);
	default:
		break;
	}
	class = class_by_mnemonic(in->i.mnemonic);
	if (class != INSN_PLAIN)
		return class;
	if (in->i.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED)
		return INSN_TRAP;
	if (is_foreign(in))
		return INSN_BAD;
	if (is_locked(in))
		return INSN_LOCKED;
	if (special_known(in->i.mnemonic, &in->i))
		return INSN_SPECIAL;
	if (is_vector_or_float(in) || is_register_bit_test(in))
		return INSN_NATIVE;
	return INSN_PLAIN;
}

bool insn_decode(const uint8_t *bytes, size_t n, uint64_t pc, struct insn *out)
{
	if (!decoder_ready) {
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
		decoder_ready = true;
	}
	out->pc = pc;
	out->call = out->ret = false;
	out->target = 0;
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, bytes, n, &out->i, out->op)))
		return false;
	out->class = classify(out);
	return true;
}

bool insn_is_wide(const struct insn *in)
{
	for (int k = 0; k < in->i.operand_count; k++) {
		const ZydisDecodedOperand *op = &in->op[k];
		ZydisRegister reg = op->type == ZYDIS_OPERAND_TYPE_REGISTER ? op->reg.value :
				    op->type == ZYDIS_OPERAND_TYPE_MEMORY ? op->mem.index :
									    ZYDIS_REGISTER_NONE;

		if (ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_ZMM)
			return true;
	}
	return false;
}

void insn_text(const struct insn *in, char *buf, size_t n)
{
	ZydisFormatter formatter;

	ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_ATT);
	if (ZYAN_FAILED(ZydisFormatterFormatInstruction(&formatter, &in->i, in->op,
							in->i.operand_count_visible, buf, n,
							in->pc, NULL)))
		snprintf(buf, n, "?");
}
