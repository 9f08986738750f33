/*
 * Memory operands under a mask (AVX-512). The processor accesses only the elements
 * that are chosen: the others are not read, not written, and do not fault.
 */
#include "analyzer/engine/code.h"

#include "analyzer/engine/shadow_ops.h"

/* Elements of the memory operand belong to other lanes than their own: it is read as a whole. */
static bool no_lanes(ZydisExceptionClass class)
{
	switch (class) {
	case ZYDIS_EXCEPTION_CLASS_E1NF:
	case ZYDIS_EXCEPTION_CLASS_E2NF:
	case ZYDIS_EXCEPTION_CLASS_E3NF:
	case ZYDIS_EXCEPTION_CLASS_E4NF:
	case ZYDIS_EXCEPTION_CLASS_E5NF:
	case ZYDIS_EXCEPTION_CLASS_E6NF:
	case ZYDIS_EXCEPTION_CLASS_E9NF:
	case ZYDIS_EXCEPTION_CLASS_E10NF:
	case ZYDIS_EXCEPTION_CLASS_E11NF:
		return true;
	default:
		return false;
	}
}

static bool is_packed(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_VPCOMPRESSB:
	case ZYDIS_MNEMONIC_VPCOMPRESSW:
	case ZYDIS_MNEMONIC_VPCOMPRESSD:
	case ZYDIS_MNEMONIC_VPCOMPRESSQ:
	case ZYDIS_MNEMONIC_VCOMPRESSPS:
	case ZYDIS_MNEMONIC_VCOMPRESSPD:
	case ZYDIS_MNEMONIC_VPEXPANDB:
	case ZYDIS_MNEMONIC_VPEXPANDW:
	case ZYDIS_MNEMONIC_VPEXPANDD:
	case ZYDIS_MNEMONIC_VPEXPANDQ:
	case ZYDIS_MNEMONIC_VEXPANDPS:
	case ZYDIS_MNEMONIC_VEXPANDPD:
		return true;
	default:
		return false;
	}
}

/* How many elements the instruction's vectors have; 1 when it has none of as many as n. */
static unsigned vector_elements(const struct insn *in, unsigned n)
{
	for (int k = 0; k < in->i.operand_count_visible; k++) {
		const ZydisDecodedOperand *op = &in->op[k];

		if (op->type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    ZydisRegisterGetClass(op->reg.value) == ZYDIS_REGCLASS_MASK)
			continue;
		if (op->element_count == n || n == 0)
			return op->element_count;
	}
	return 1;
}

void native_find_lanes(const struct insn *in, const ZydisDecodedOperand *memory,
		       struct native_insn *n)
{
	if (!n->size || in->i.encoding != ZYDIS_INSTRUCTION_ENCODING_EVEX ||
	    in->i.avx.mask.reg == ZYDIS_REGISTER_NONE ||
	    in->i.avx.mask.reg == ZYDIS_REGISTER_K0 || no_lanes(in->i.meta.exception_class))
		return;
	n->broadcast = in->i.avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID;
	n->packed = is_packed(in->i.mnemonic);
	n->lanes = (uint8_t)(n->broadcast ? vector_elements(in, 0) : memory->element_count);
	n->lane_bytes = (uint8_t)(memory->element_size / 8);
	if (!n->lane_bytes || n->lanes > 64 ||
	    (!n->broadcast && vector_elements(in, n->lanes) != n->lanes))
		return;
	n->mask = (uint8_t)ZydisRegisterGetId(in->i.avx.mask.reg);
}

/* Bit by bit: the elements that are accessed. */
static uint64_t chosen(const struct mach *m, const struct native_insn *n)
{
	uint64_t k = m->frame->wide.k[n->mask];

	if (n->lanes < 64)
		k &= (1ull << n->lanes) - 1;
	if (n->packed) {
		unsigned count = (unsigned)__builtin_popcountll(k);

		k = count == 64 ? UINT64_MAX : (1ull << count) - 1;
	}
	return k;
}

/* The next run of elements that are: its first, and one behind its last; false: no more. */
static bool next_run(uint64_t k, unsigned lanes, unsigned *from, unsigned *to)
{
	for (*from = *to; *from < lanes && !(k >> *from & 1); ++*from)
		;
	for (*to = *from; *to < lanes && (k >> *to & 1); ++*to)
		;
	return *from < lanes;
}

bool native_load_lanes(struct mach *m, const struct native_insn *n, uint64_t pc, uint64_t at)
{
	uint64_t k = chosen(m, n);
	unsigned from, to = 0;

	if (n->broadcast)
		return !k || mach_load(m, pc, at, m->frame->operand, n->size);
	while (next_run(k, n->lanes, &from, &to)) {
		unsigned first = from * n->lane_bytes, bytes = (to - from) * n->lane_bytes;

		if (!mach_load(m, pc, at + first, m->frame->operand + first, bytes))
			return false;
		if (m->slots) /* the stage holds one piece at a time */
			shadow_stage_concretize(m, pc, "vector instruction");
	}
	return true;
}

bool native_store_lanes(struct mach *m, const struct native_insn *n, uint64_t pc, uint64_t at)
{
	uint64_t k = chosen(m, n);
	unsigned from, to = 0;

	while (next_run(k, n->lanes, &from, &to)) {
		unsigned first = from * n->lane_bytes, bytes = (to - from) * n->lane_bytes;

		if (!mach_store(m, pc, at + first, m->frame->operand + first, bytes))
			return false;
	}
	return true;
}

bool native_may_store_lanes(struct mach *m, const struct native_insn *n, uint64_t at)
{
	uint64_t k = chosen(m, n);
	unsigned from, to = 0;

	while (next_run(k, n->lanes, &from, &to))
		if (!mem_writable(m->mem, at + from * n->lane_bytes, (to - from) * n->lane_bytes))
			return false;
	return true;
}
