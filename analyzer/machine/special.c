/*
 * Instructions with semantics of our own: neither libVEX nor a stub can do
 * them because they touch memory in ways of their own or the engine's state.
 */
#include "analyzer/machine/code.h"

#include "analyzer/machine/shadow_ops.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define MXCSR_MASKS 0x1f80u
#define XSAVE_LEGACY 512u
#define XSAVE_AVX 576u
#define X_X87 1u
#define X_SSE 2u
#define X_AVX 4u

static uint64_t *reg(struct mach *m, uint32_t offset)
{
	return mach_at(m, offset);
}

#define RAX_ (*reg(m, MACH_OFF(RAX)))
#define RCX_ (*reg(m, MACH_OFF(RCX)))
#define RDX_ (*reg(m, MACH_OFF(RDX)))
#define RSI_ (*reg(m, MACH_OFF(RSI)))
#define RDI_ (*reg(m, MACH_OFF(RDI)))

static enum mach_stop refuse(struct mach *m, const char *why)
{
	snprintf(m->why, sizeof m->why, "%s", why);
	return STOP_UNDECODED;
}

/* ---- rep-prefixed string instructions ---- */

enum { STR_MOVS, STR_STOS, STR_LODS, STR_CMPS, STR_SCAS };

static bool plain(const struct mach *m)
{
	return !m->access && !m->shadow;
}

/* Bytes that can be handled at once at address, in whole elements. */
static uint64_t within_page(uint64_t address, uint64_t want, unsigned size)
{
	uint64_t room = MEM_PAGE - address % MEM_PAGE;

	return (room < want ? room : want) / size * size;
}

static enum mach_stop rep_movs(struct mach *m, const struct special_insn *s)
{
	uint8_t chunk[MEM_PAGE];
	uint64_t step = m->frame->g.guest_DFLAG * s->size; /* DFLAG is 1 or -1 */

	while (RCX_) {
		uint64_t n = s->size;

		if (plain(m) && (int64_t)step > 0 && RCX_ < UINT64_MAX / 8) {
			n = within_page(RSI_, RCX_ * s->size, s->size);
			n = within_page(RDI_, n, s->size);
			/* A copy onto what it will read next repeats a pattern. */
			if (RDI_ > RSI_ && RDI_ - RSI_ < n)
				n = (RDI_ - RSI_) / s->size * s->size;
			if (n < s->size)
				n = s->size;
		}
		if (!mach_load(m, s->pc, RSI_, chunk, n))
			return mach_access_fault(m, false);
		if (!mach_store(m, s->pc, RDI_, chunk, n))
			return mach_access_fault(m, true);
		RSI_ += n == s->size ? step : n;
		RDI_ += n == s->size ? step : n;
		RCX_ -= n / s->size;
	}
	return STOP_NONE;
}

static enum mach_stop rep_stos(struct mach *m, const struct special_insn *s)
{
	uint8_t chunk[MEM_PAGE];
	uint64_t step = m->frame->g.guest_DFLAG * s->size;
	uint64_t value = RAX_;

	for (unsigned i = 0; i + s->size <= sizeof chunk; i += s->size)
		memcpy(chunk + i, &value, s->size);
	while (RCX_) {
		uint64_t n = s->size;

		if (plain(m) && (int64_t)step > 0 && RCX_ < UINT64_MAX / 8)
			n = within_page(RDI_, RCX_ * s->size, s->size);
		if (n < s->size)
			n = s->size;
		if (m->shadow)
			shadow_stage_register(m, MACH_OFF(RAX), s->size);
		if (!mach_store(m, s->pc, RDI_, chunk, n))
			return mach_access_fault(m, true);
		RDI_ += n == s->size ? step : n;
		RCX_ -= n / s->size;
	}
	return STOP_NONE;
}

static enum mach_stop rep_lods(struct mach *m, const struct special_insn *s)
{
	uint64_t step = m->frame->g.guest_DFLAG * s->size;

	for (; RCX_; RCX_--) {
		uint64_t value = s->size == 8 || s->size == 4 ? 0 : RAX_;

		if (!mach_load(m, s->pc, RSI_, &value, s->size))
			return mach_access_fault(m, false);
		if (m->slots)
			shadow_stage_concretize(m, s->pc, "string instruction");
		RAX_ = value;
		RSI_ += step;
	}
	return STOP_NONE;
}

/* The flags of a - b, as libVEX keeps them: operation and operands. */
static void set_compare(struct mach *m, unsigned size, uint64_t a, uint64_t b)
{
	/* AMD64G_CC_OP_SUBB is 5, then W, L, Q */
	m->frame->g.guest_CC_OP = 5 + (size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3);
	m->frame->g.guest_CC_DEP1 = a;
	m->frame->g.guest_CC_DEP2 = b;
	m->frame->g.guest_CC_NDEP = 0;
}

static enum mach_stop rep_compare(struct mach *m, const struct special_insn *s)
{
	uint64_t step = m->frame->g.guest_DFLAG * s->size;
	bool scan = s->how == STR_SCAS, until_equal = s->wide;

	while (RCX_) {
		uint64_t a = 0, b = 0;

		if (scan)
			memcpy(&a, &RAX_, s->size);
		else if (!mach_load(m, s->pc, RSI_, &a, s->size))
			return mach_access_fault(m, false);
		if (m->slots)
			shadow_stage_concretize(m, s->pc, "string instruction");
		if (!mach_load(m, s->pc, RDI_, &b, s->size))
			return mach_access_fault(m, false);
		if (m->slots)
			shadow_stage_concretize(m, s->pc, "string instruction");
		RCX_--;
		RDI_ += step;
		if (!scan)
			RSI_ += step;
		set_compare(m, s->size, a, b);
		if ((a == b) == until_equal)
			break;
	}
	return STOP_NONE;
}

/* ---- state instructions ---- */

static uint32_t guest_mxcsr(const struct mach *m)
{
	return (__builtin_ia32_stmxcsr() & ~MXCSR_MASKS) | m->mxcsr_masks;
}

static enum mach_stop set_mxcsr(struct mach *m, uint32_t value)
{
	if ((value & MXCSR_MASKS) != MXCSR_MASKS)
		return refuse(m, "the program unmasks floating-point exceptions");
	if (value & 0xffff0000u)
		return refuse(m, "reserved bits of mxcsr");
	m->mxcsr_masks = value & MXCSR_MASKS;
	__builtin_ia32_ldmxcsr(value | MXCSR_MASKS);
	return STOP_NONE;
}

static enum mach_stop do_ldmxcsr(struct mach *m, const struct special_insn *s)
{
	uint32_t value;

	if (!mach_load(m, s->pc, operand_compute(m, &s->address), &value, 4))
		return mach_access_fault(m, false);
	return set_mxcsr(m, value);
}

static enum mach_stop do_stmxcsr(struct mach *m, const struct special_insn *s)
{
	uint32_t value = guest_mxcsr(m);

	if (!mach_store(m, s->pc, operand_compute(m, &s->address), &value, 4))
		return mach_access_fault(m, true);
	return STOP_NONE;
}

static void put_legacy(struct mach *m, uint8_t *area, unsigned parts)
{
	uint32_t mxcsr = guest_mxcsr(m), mask;
	uint8_t host[512] __attribute__((aligned(16)));

	if (parts & X_X87) {
		memcpy(area, m->frame->fx, 24);
		memcpy(area + 32, m->frame->fx + 32, 128);
	}
	if (parts & (X_SSE | X_AVX)) {
		__asm__ volatile("fxsave64 %0" : "=m"(host));
		memcpy(&mask, host + 28, 4);
		memcpy(area + 24, &mxcsr, 4);
		memcpy(area + 28, &mask, 4);
	}
	if (parts & X_SSE)
		for (unsigned i = 0; i < 16; i++)
			memcpy(area + 160 + 16 * i, mach_at(m, vec_offset(i)), 16);
}

static void get_legacy(struct mach *m, const uint8_t *area, unsigned parts, unsigned present)
{
	if (parts & X_X87) {
		if (present & X_X87) {
			memcpy(m->frame->fx, area, 24);
			memcpy(m->frame->fx + 32, area + 32, 128);
		} else {
			static const uint8_t control[2] = { 0x7f, 0x03 };

			memset(m->frame->fx, 0, 160);
			memcpy(m->frame->fx, control, 2);
		}
	}
	if (parts & X_SSE)
		for (unsigned i = 0; i < 16; i++) {
			if (present & X_SSE)
				memcpy(mach_at(m, vec_offset(i)), area + 160 + 16 * i, 16);
			else
				memset(mach_at(m, vec_offset(i)), 0, 16);
		}
}

static enum mach_stop do_fxsave(struct mach *m, const struct special_insn *s)
{
	uint64_t at = operand_compute(m, &s->address);
	uint8_t area[512];

	if (!mach_load(m, s->pc, at, area, sizeof area))
		return mach_access_fault(m, false);
	put_legacy(m, area, X_X87 | X_SSE);
	if (m->slots)
		shadow_stage_concretize(m, s->pc, "saved state");
	if (!mach_store(m, s->pc, at, area, sizeof area))
		return mach_access_fault(m, true);
	return STOP_NONE;
}

static enum mach_stop do_fxrstor(struct mach *m, const struct special_insn *s)
{
	uint8_t area[512];
	uint32_t mxcsr;

	if (!mach_load(m, s->pc, operand_compute(m, &s->address), area, sizeof area))
		return mach_access_fault(m, false);
	get_legacy(m, area, X_X87 | X_SSE, X_X87 | X_SSE);
	memcpy(&mxcsr, area + 24, 4);
	return set_mxcsr(m, mxcsr);
}

/* Which components the processor calls in use: those that are not in their initial state. */
static unsigned in_use(const struct mach *m)
{
	static const uint8_t zero[16];
	unsigned parts = 0;

	for (unsigned i = 0; i < 16; i++) {
		if (memcmp(mach_at(m, vec_offset(i)), zero, 16))
			parts |= X_SSE;
		if (memcmp(mach_at(m, vec_offset(i) + 16), zero, 16))
			parts |= X_AVX;
	}
	for (unsigned i = 2; i < 160; i++)
		if (m->frame->fx[i] && (i < 24 || i >= 32))
			parts |= X_X87;
	return parts;
}

static enum mach_stop do_xsave(struct mach *m, const struct special_insn *s)
{
	uint64_t at = operand_compute(m, &s->address);
	unsigned parts = (unsigned)RAX_ & 7, write = parts;
	uint8_t area[XSAVE_AVX + 256];
	uint64_t header[8];

	if (at % 64) {
		m->fault = (struct mach_fault){ SIGSEGV, SI_KERNEL, 0 };
		return STOP_FAULT;
	}
	if (!mach_load(m, s->pc, at, area, parts & X_AVX ? sizeof area : XSAVE_AVX))
		return mach_access_fault(m, false);
	memcpy(header, area + XSAVE_LEGACY, sizeof header);
	if (s->how) { /* xsavec */
		write = parts & (in_use(m) | (guest_mxcsr(m) != MXCSR_MASKS ? X_SSE : 0));
		memset(header, 0, sizeof header);
		header[0] = write;
		header[1] = 1ull << 63 | parts;
	} else {
		header[0] = (header[0] & ~(uint64_t)parts) | (parts & in_use(m));
	}
	put_legacy(m, area, write);
	if (m->slots)
		shadow_stage_concretize(m, s->pc, "saved state");
	memcpy(area + XSAVE_LEGACY, header, sizeof header);
	if (write & X_AVX)
		for (unsigned i = 0; i < 16; i++)
			memcpy(area + XSAVE_AVX + 16 * i, mach_at(m, vec_offset(i) + 16), 16);
	if (!mach_store(m, s->pc, at, area, write & X_AVX ? sizeof area : XSAVE_AVX))
		return mach_access_fault(m, true);
	return STOP_NONE;
}

static enum mach_stop do_xrstor(struct mach *m, const struct special_insn *s)
{
	uint64_t at = operand_compute(m, &s->address);
	unsigned parts = (unsigned)RAX_ & 7, present;
	uint8_t area[XSAVE_AVX + 256];
	uint64_t bv, compact;
	uint32_t mxcsr = MXCSR_MASKS;

	memset(area, 0, sizeof area);
	if (!mach_load(m, s->pc, at, area, XSAVE_AVX))
		return mach_access_fault(m, false);
	memcpy(&bv, area + XSAVE_LEGACY, 8);
	memcpy(&compact, area + XSAVE_LEGACY + 8, 8);
	present = (unsigned)bv & 7;
	if ((parts & present & X_AVX) && !mach_load(m, s->pc, at + XSAVE_AVX, area + XSAVE_AVX, 256))
		return mach_access_fault(m, false);
	get_legacy(m, area, parts, present);
	if (parts & X_AVX)
		for (unsigned i = 0; i < 16; i++) {
			if (present & X_AVX)
				memcpy(mach_at(m, vec_offset(i) + 16), area + XSAVE_AVX + 16 * i, 16);
			else
				memset(mach_at(m, vec_offset(i) + 16), 0, 16);
		}
	if (!(parts & (X_SSE | X_AVX)))
		return STOP_NONE;
	/* The compacted form has no mxcsr without the SSE component: it is reset. */
	if (!(compact >> 63) || (present & X_SSE))
		memcpy(&mxcsr, area + 24, 4);
	return set_mxcsr(m, mxcsr);
}

static enum mach_stop do_vzero(struct mach *m, const struct special_insn *s)
{
	for (unsigned i = 0; i < 16; i++) {
		unsigned keep = s->how ? 0 : 16;

		memset(mach_at(m, vec_offset(i) + keep), 0, 32 - keep);
		if (m->shadow)
			shadow_forget(m, vec_offset(i) + keep, 32 - keep);
	}
	return STOP_NONE;
}

static enum mach_stop do_segment_base(struct mach *m, const struct special_insn *s)
{
	uint64_t *base = reg(m, s->how & 1 ? MACH_OFF(GS_CONST) : MACH_OFF(FS_CONST));

	if (s->how & 2) /* write */
		*base = s->wide ? *reg(m, s->reg) : (uint32_t)*reg(m, s->reg);
	else
		*reg(m, s->reg) = s->wide ? *base : (uint32_t)*base;
	return STOP_NONE;
}

/* ---- gathers and masked moves ---- */

static bool lane_chosen(struct mach *m, const struct special_insn *s, unsigned lane)
{
	const uint8_t *mask = mach_at(m, s->mask_reg);

	return mask[lane * s->size + s->size - 1] & 0x80;
}

static enum mach_stop do_gather(struct mach *m, const struct special_insn *s)
{
	uint64_t base = operand_compute(m, &s->address);
	uint8_t *dst = mach_at(m, s->reg), *mask = mach_at(m, s->mask_reg);

	for (unsigned lane = 0; lane < s->lanes; lane++) {
		const uint8_t *index = (uint8_t *)mach_at(m, s->index_reg) + lane * s->index_size;
		int64_t i64;
		int32_t i32;

		if (!lane_chosen(m, s, lane))
			continue;
		memcpy(&i32, index, 4);
		i64 = i32;
		if (s->index_size == 8)
			memcpy(&i64, index, 8);
		if (!mach_load(m, s->pc, base + (uint64_t)i64 * s->scale, dst + lane * s->size,
			       s->size))
			return mach_access_fault(m, false);
		memset(mask + lane * s->size, 0, s->size);
	}
	memset(mask, 0, 32);
	memset(dst + s->lanes * s->size, 0, 32 - (size_t)s->lanes * s->size);
	if (m->shadow) {
		shadow_forget(m, s->reg, 32);
		shadow_forget(m, s->mask_reg, 32);
	}
	return STOP_NONE;
}

enum { MASK_LOAD, MASK_STORE };

static enum mach_stop do_mask_move(struct mach *m, const struct special_insn *s)
{
	uint64_t base = operand_compute(m, &s->address);
	uint8_t *data = mach_at(m, s->reg), result[32] = { 0 };

	for (unsigned lane = 0; lane < s->lanes; lane++) {
		unsigned at = lane * s->size;

		if (!lane_chosen(m, s, lane))
			continue;
		if (s->how == MASK_STORE) {
			if (!mach_store(m, s->pc, base + at, data + at, s->size))
				return mach_access_fault(m, true);
		} else if (!mach_load(m, s->pc, base + at, result + at, s->size)) {
			return mach_access_fault(m, false);
		}
	}
	if (s->how == MASK_LOAD) {
		memcpy(data, result, 32);
		if (m->shadow)
			shadow_forget(m, s->reg, 32);
	}
	return STOP_NONE;
}

/* ---- the table ---- */

enum shape { SHAPE_NONE, SHAPE_MEM, SHAPE_REG, SHAPE_GATHER, SHAPE_MASK, SHAPE_MASK_DQU };

static const struct special_row {
	uint16_t mnemonic;
	special_fn *fn;
	uint8_t shape;
	uint8_t how;
	uint8_t size, index_size; /* gathers and masked moves: bytes */
} rows[] = {
	{ ZYDIS_MNEMONIC_LDMXCSR, do_ldmxcsr, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_VLDMXCSR, do_ldmxcsr, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_STMXCSR, do_stmxcsr, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_VSTMXCSR, do_stmxcsr, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_FXSAVE, do_fxsave, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_FXSAVE64, do_fxsave, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_FXRSTOR, do_fxrstor, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_FXRSTOR64, do_fxrstor, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_XSAVE, do_xsave, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_XSAVE64, do_xsave, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_XSAVEC, do_xsave, SHAPE_MEM, 1, 0, 0 },
	{ ZYDIS_MNEMONIC_XSAVEC64, do_xsave, SHAPE_MEM, 1, 0, 0 },
	{ ZYDIS_MNEMONIC_XRSTOR, do_xrstor, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_XRSTOR64, do_xrstor, SHAPE_MEM, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_VZEROUPPER, do_vzero, SHAPE_NONE, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_VZEROALL, do_vzero, SHAPE_NONE, 1, 0, 0 },
	{ ZYDIS_MNEMONIC_RDFSBASE, do_segment_base, SHAPE_REG, 0, 0, 0 },
	{ ZYDIS_MNEMONIC_RDGSBASE, do_segment_base, SHAPE_REG, 1, 0, 0 },
	{ ZYDIS_MNEMONIC_WRFSBASE, do_segment_base, SHAPE_REG, 2, 0, 0 },
	{ ZYDIS_MNEMONIC_WRGSBASE, do_segment_base, SHAPE_REG, 3, 0, 0 },
	{ ZYDIS_MNEMONIC_VPGATHERDD, do_gather, SHAPE_GATHER, 0, 4, 4 },
	{ ZYDIS_MNEMONIC_VPGATHERDQ, do_gather, SHAPE_GATHER, 0, 8, 4 },
	{ ZYDIS_MNEMONIC_VPGATHERQD, do_gather, SHAPE_GATHER, 0, 4, 8 },
	{ ZYDIS_MNEMONIC_VPGATHERQQ, do_gather, SHAPE_GATHER, 0, 8, 8 },
	{ ZYDIS_MNEMONIC_VGATHERDPS, do_gather, SHAPE_GATHER, 0, 4, 4 },
	{ ZYDIS_MNEMONIC_VGATHERDPD, do_gather, SHAPE_GATHER, 0, 8, 4 },
	{ ZYDIS_MNEMONIC_VGATHERQPS, do_gather, SHAPE_GATHER, 0, 4, 8 },
	{ ZYDIS_MNEMONIC_VGATHERQPD, do_gather, SHAPE_GATHER, 0, 8, 8 },
	{ ZYDIS_MNEMONIC_VMASKMOVPS, do_mask_move, SHAPE_MASK, 0, 4, 0 },
	{ ZYDIS_MNEMONIC_VMASKMOVPD, do_mask_move, SHAPE_MASK, 0, 8, 0 },
	{ ZYDIS_MNEMONIC_VPMASKMOVD, do_mask_move, SHAPE_MASK, 0, 4, 0 },
	{ ZYDIS_MNEMONIC_VPMASKMOVQ, do_mask_move, SHAPE_MASK, 0, 8, 0 },
	{ ZYDIS_MNEMONIC_MASKMOVDQU, do_mask_move, SHAPE_MASK_DQU, 0, 1, 0 },
	{ ZYDIS_MNEMONIC_VMASKMOVDQU, do_mask_move, SHAPE_MASK_DQU, 0, 1, 0 },
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

static uint32_t vector_of(const ZydisDecodedOperand *op)
{
	return vec_offset((unsigned)ZydisRegisterGetId(op->reg.value) & 15);
}

static bool shape_gather(const struct insn *in, struct special_insn *s)
{
	ZydisDecodedOperand mem = in->op[1];
	unsigned bytes = in->op[0].size / 8;
	unsigned index_bytes =
		ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, mem.mem.index) / 8;

	if (in->i.encoding != ZYDIS_INSTRUCTION_ENCODING_VEX)
		return false;
	s->reg = vector_of(&in->op[0]);
	s->mask_reg = vector_of(&in->op[2]);
	s->index_reg = vec_offset((unsigned)ZydisRegisterGetId(mem.mem.index) & 15);
	s->scale = mem.mem.scale;
	s->lanes = (uint8_t)(bytes / s->size < index_bytes / s->index_size ?
				     bytes / s->size : index_bytes / s->index_size);
	mem.mem.index = ZYDIS_REGISTER_NONE;
	return operand_address(in, &mem, &s->address);
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
	static special_fn *const fns[] = { rep_movs, rep_stos, rep_lods, rep_compare, rep_compare };

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
