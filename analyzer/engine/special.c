/*
 * Instructions with semantics of our own: neither libVEX nor a stub can do
 * them because they touch memory in ways of their own or the engine's state.
 */
#include "analyzer/engine/special.h"

#include <string.h>

enum shape {
	SHAPE_NONE, SHAPE_MEM, SHAPE_REG, SHAPE_GATHER, SHAPE_SCATTER, SHAPE_MASK, SHAPE_MASK_DQU,
};

static const struct special_row {
	uint16_t mnemonic;
	special_fn *fn;
	uint8_t shape;
	uint8_t how;
	uint8_t size, index_size; /* gathers and masked moves: bytes */
} rows[] = {
	{ ZYDIS_MNEMONIC_LDMXCSR, special_ldmxcsr, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_VLDMXCSR, special_ldmxcsr, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_STMXCSR, special_stmxcsr, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_VSTMXCSR, special_stmxcsr, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_FXSAVE, special_fxsave, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_FXSAVE64, special_fxsave, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_FXRSTOR, special_fxrstor, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_FXRSTOR64, special_fxrstor, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_XSAVE, special_xsave, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_XSAVE64, special_xsave, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_XSAVEC, special_xsave, SHAPE_MEM, 1, 0, 0 },
	{ ZYDIS_MNEMONIC_XSAVEC64, special_xsave, SHAPE_MEM, 1, 0, 0 },
	{ ZYDIS_MNEMONIC_XRSTOR, special_xrstor, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_XRSTOR64, special_xrstor, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_VZEROUPPER, special_vzero, SHAPE_NONE, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_VZEROALL, special_vzero, SHAPE_NONE, 1, 0, 0 },
	{ ZYDIS_MNEMONIC_RDFSBASE, special_segment_base, SHAPE_REG, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_RDGSBASE, special_segment_base, SHAPE_REG, 1, 0, 0 },
	{ ZYDIS_MNEMONIC_WRFSBASE, special_segment_base, SHAPE_REG, 2, 0, 0 },
	{ ZYDIS_MNEMONIC_WRGSBASE, special_segment_base, SHAPE_REG, 3, 0, 0 },
	{ ZYDIS_MNEMONIC_VPGATHERDD, special_gather, SHAPE_GATHER, 0, 4, 4 },
	{ ZYDIS_MNEMONIC_VPGATHERDQ, special_gather, SHAPE_GATHER, 0, 8, 4 },
	{ ZYDIS_MNEMONIC_VPGATHERQD, special_gather, SHAPE_GATHER, 0, 4, 8 },
	{ ZYDIS_MNEMONIC_VPGATHERQQ, special_gather, SHAPE_GATHER, 0, 8, 8 },
	{ ZYDIS_MNEMONIC_VGATHERDPS, special_gather, SHAPE_GATHER, 0, 4, 4 },
	{ ZYDIS_MNEMONIC_VGATHERDPD, special_gather, SHAPE_GATHER, 0, 8, 4 },
	{ ZYDIS_MNEMONIC_VGATHERQPS, special_gather, SHAPE_GATHER, 0, 4, 8 },
	{ ZYDIS_MNEMONIC_VGATHERQPD, special_gather, SHAPE_GATHER, 0, 8, 8 },
	{ ZYDIS_MNEMONIC_VPSCATTERDD, special_scatter, SHAPE_SCATTER, 0, 4, 4 },
	{ ZYDIS_MNEMONIC_VPSCATTERDQ, special_scatter, SHAPE_SCATTER, 0, 8, 4 },
	{ ZYDIS_MNEMONIC_VPSCATTERQD, special_scatter, SHAPE_SCATTER, 0, 4, 8 },
	{ ZYDIS_MNEMONIC_VPSCATTERQQ, special_scatter, SHAPE_SCATTER, 0, 8, 8 },
	{ ZYDIS_MNEMONIC_VSCATTERDPS, special_scatter, SHAPE_SCATTER, 0, 4, 4 },
	{ ZYDIS_MNEMONIC_VSCATTERDPD, special_scatter, SHAPE_SCATTER, 0, 8, 4 },
	{ ZYDIS_MNEMONIC_VSCATTERQPS, special_scatter, SHAPE_SCATTER, 0, 4, 8 },
	{ ZYDIS_MNEMONIC_VSCATTERQPD, special_scatter, SHAPE_SCATTER, 0, 8, 8 },
	{ ZYDIS_MNEMONIC_VMASKMOVPS, special_mask_move, SHAPE_MASK, 0, 4, 0 },
	{ ZYDIS_MNEMONIC_VMASKMOVPD, special_mask_move, SHAPE_MASK, 0, 8, 0 },
	{ ZYDIS_MNEMONIC_VPMASKMOVD, special_mask_move, SHAPE_MASK, 0, 4, 0 },
	{ ZYDIS_MNEMONIC_VPMASKMOVQ, special_mask_move, SHAPE_MASK, 0, 8, 0 },
	{ ZYDIS_MNEMONIC_MASKMOVDQU, special_mask_move, SHAPE_MASK_DQU, 0, 1, 0 },
	{ ZYDIS_MNEMONIC_VMASKMOVDQU, special_mask_move, SHAPE_MASK_DQU, 0, 1, 0 },
};

static const struct special_row *row_of(ZydisMnemonic mnemonic)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].mnemonic == mnemonic)
			return &rows[i];
	return NULL;
}

#define ANY_REP                                                                        \
	(ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPZ |        \
	 ZYDIS_ATTRIB_HAS_REPNE | ZYDIS_ATTRIB_HAS_REPNZ)

static bool is_rep(const ZydisDecodedInstruction *i)
{
	return i->meta.category == ZYDIS_CATEGORY_STRINGOP && (i->attributes & ANY_REP);
}

bool special_known(ZydisMnemonic mnemonic, const ZydisDecodedInstruction *i)
{
	return is_rep(i) || row_of(mnemonic) != NULL;
}

static unsigned number_of(ZydisRegister reg)
{
	return (unsigned)ZydisRegisterGetId(reg);
}

static uint32_t vector_of(const ZydisDecodedOperand *op)
{
	return vec_offset(number_of(op->reg.value));
}

/* A vector of data, one of indices, and a mask: in a vector (AVX2) or a mask register. */
static bool shape_indexed(const struct insn *in, struct special_insn *s,
			  const ZydisDecodedOperand *data, const ZydisDecodedOperand *mask,
			  ZydisDecodedOperand mem)
{
	unsigned bytes = data->size / 8;
	unsigned index_bytes =
		ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, mem.mem.index) / 8;

	s->reg = vector_of(data);
	s->reg_upper = vec_upper(number_of(data->reg.value));
	if (ZydisRegisterGetClass(mask->reg.value) == ZYDIS_REGCLASS_MASK) {
		s->how = LANES_BY_BIT;
		s->mask_reg = MACH_WIDE(k) + 8 * number_of(mask->reg.value);
	} else {
		s->how = LANES_BY_SIGN;
		s->mask_reg = vector_of(mask);
	}
	s->index_reg = vec_offset(number_of(mem.mem.index));
	s->index_upper = vec_upper(number_of(mem.mem.index));
	s->scale = mem.mem.scale;
	s->lanes = (uint8_t)(bytes / s->size < index_bytes / s->index_size ?
				     bytes / s->size : index_bytes / s->index_size);
	mem.mem.index = ZYDIS_REGISTER_NONE;
	return operand_address(in, &mem, &s->address);
}

static bool shape_gather(const struct insn *in, struct special_insn *s)
{
	bool evex = in->i.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX;

	return shape_indexed(in, s, &in->op[0], &in->op[evex ? 1 : 2], in->op[evex ? 2 : 1]);
}

static bool shape_mask(const struct insn *in, struct special_insn *s)
{
	bool store = in->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY;
	const ZydisDecodedOperand *data = store ? &in->op[2] : &in->op[0];

	s->how = store ? MASK_STORE : MASK_LOAD;
	s->reg = vector_of(data);
	s->mask_reg = vector_of(&in->op[1]);
	s->lanes = (uint8_t)(data->size / 8 / s->size);
	return operand_address(in, store ? &in->op[0] : &in->op[2], &s->address);
}

static bool shape_mask_dqu(const struct insn *in, struct special_insn *s)
{
	int vectors = 0;

	s->how = MASK_STORE;
	s->lanes = 16;
	s->address.base = MACH_OFF(RDI);
	for (int k = 0; k < in->i.operand_count; k++)
		if (in->op[k].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    ZydisRegisterGetClass(in->op[k].reg.value) == ZYDIS_REGCLASS_XMM) {
			if (vectors++ == 0)
				s->reg = vector_of(&in->op[k]);
			else
				s->mask_reg = vector_of(&in->op[k]);
		}
	return vectors == 2;
}

static bool shape(const struct insn *in, enum shape shape, struct special_insn *s)
{
	switch (shape) {
	case SHAPE_MEM:
		return operand_address(in, &in->op[0], &s->address);
	case SHAPE_REG:
		s->reg = reg_offset(in->op[0].reg.value);
		s->wide = in->op[0].size == 64;
		return s->reg != 0;
	case SHAPE_GATHER:
		return shape_gather(in, s);
	case SHAPE_SCATTER:
		return shape_indexed(in, s, &in->op[2], &in->op[1], in->op[0]);
	case SHAPE_MASK:
		return shape_mask(in, s);
	case SHAPE_MASK_DQU:
		return shape_mask_dqu(in, s);
	default:
		return true;
	}
}

static const struct {
	uint16_t mnemonic;
	uint8_t how, size;
} strings[] = {
	{ ZYDIS_MNEMONIC_MOVSB, STR_MOVS, 1 }, { ZYDIS_MNEMONIC_MOVSW, STR_MOVS, 2 },
	{ ZYDIS_MNEMONIC_MOVSD, STR_MOVS, 4 }, { ZYDIS_MNEMONIC_MOVSQ, STR_MOVS, 8 },
	{ ZYDIS_MNEMONIC_STOSB, STR_STOS, 1 }, { ZYDIS_MNEMONIC_STOSW, STR_STOS, 2 },
	{ ZYDIS_MNEMONIC_STOSD, STR_STOS, 4 }, { ZYDIS_MNEMONIC_STOSQ, STR_STOS, 8 },
	{ ZYDIS_MNEMONIC_LODSB, STR_LODS, 1 }, { ZYDIS_MNEMONIC_LODSW, STR_LODS, 2 },
	{ ZYDIS_MNEMONIC_LODSD, STR_LODS, 4 }, { ZYDIS_MNEMONIC_LODSQ, STR_LODS, 8 },
	{ ZYDIS_MNEMONIC_CMPSB, STR_CMPS, 1 }, { ZYDIS_MNEMONIC_CMPSW, STR_CMPS, 2 },
	{ ZYDIS_MNEMONIC_CMPSD, STR_CMPS, 4 }, { ZYDIS_MNEMONIC_CMPSQ, STR_CMPS, 8 },
	{ ZYDIS_MNEMONIC_SCASB, STR_SCAS, 1 }, { ZYDIS_MNEMONIC_SCASW, STR_SCAS, 2 },
	{ ZYDIS_MNEMONIC_SCASD, STR_SCAS, 4 }, { ZYDIS_MNEMONIC_SCASQ, STR_SCAS, 8 },
};

static bool make_string(const struct insn *in, struct special_insn *s)
{
	static special_fn *const fns[] = {
		[STR_MOVS] = special_movs,    [STR_STOS] = special_stos,
		[STR_LODS] = special_lods,    [STR_CMPS] = special_compare,
		[STR_SCAS] = special_compare,
	};

	if (in->i.address_width != 64 ||
	    (in->i.attributes & (ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS)))
		return false;
	for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
		if (strings[i].mnemonic == in->i.mnemonic) {
			s->how = strings[i].how;
			s->size = strings[i].size;
			s->fn = fns[s->how];
			s->wide = in->i.attributes &
				  (ZYDIS_ATTRIB_HAS_REPNE | ZYDIS_ATTRIB_HAS_REPNZ);
			return true;
		}
	return false;
}

struct special_insn *special_make(struct mach *m, const struct insn *in)
{
	struct special_insn *s = mach_arena(m, sizeof *s);
	const struct special_row *row;

	if (insn_is_wide(in))
		mach_go_wide(m);
	memset(s, 0, sizeof *s);
	s->pc = in->pc;
	s->mnemonic = (uint16_t)in->i.mnemonic;
	if (is_rep(&in->i))
		return make_string(in, s) ? s : NULL;
	row = row_of(in->i.mnemonic);
	if (!row)
		return NULL;
	s->fn = row->fn;
	s->how = row->how;
	s->size = row->size;
	s->index_size = row->index_size;
	return shape(in, row->shape, s) ? s : NULL;
}
