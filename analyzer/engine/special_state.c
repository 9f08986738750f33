/* Instructions that load and store the processor's state. */
#include "analyzer/engine/special.h"

#include "analyzer/engine/shadow_ops.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define MXCSR_MASKS 0x1f80u
#define RAX_ (*special_reg(m, MACH_OFF(RAX)))

static enum mach_stop refuse(struct mach *m, const char *why)
{
	snprintf(m->why, sizeof m->why, "%s", why);
	return STOP_UNDECODED;
}

static uint32_t guest_mxcsr(struct mach *m)
{
	mach_mxcsr_back(m);
	return (__builtin_ia32_stmxcsr() & ~MXCSR_MASKS) | m->mxcsr_masks;
}

static enum mach_stop set_mxcsr(struct mach *m, uint32_t value)
{
	if (value & 0xffff0000u)
		return refuse(m, "reserved bits of mxcsr");
	m->mxcsr_kept = false;
	m->mxcsr_masks = value & MXCSR_MASKS;
	__builtin_ia32_ldmxcsr(value | MXCSR_MASKS);
	return STOP_NONE;
}

enum mach_stop special_ldmxcsr(struct mach *m, const struct special_insn *s)
{
	uint32_t value;

	if (!mach_load(m, s->pc, operand_compute(m, &s->address), &value, 4))
		return mach_access_fault(m, false);
	if (m->slots)
		shadow_stage_concretize(m, s->pc, "saved state");
	return set_mxcsr(m, value);
}

enum mach_stop special_stmxcsr(struct mach *m, const struct special_insn *s)
{
	uint32_t value = guest_mxcsr(m);

	if (!mach_store(m, s->pc, operand_compute(m, &s->address), &value, 4))
		return mach_access_fault(m, true);
	return STOP_NONE;
}

/* The register whose 8 bytes stand at `at` of a part; 0: one that never has an expression. */
static uint32_t part_register(enum xstate_part part, unsigned at)
{
	switch (part) {
	case X_SSE:
		return vec_offset(at / 16) + at % 16;
	case X_AVX:
		return vec_offset(at / 16) + 16 + at % 16;
	case X_UPPER:
		return vec_upper(at / 32) + at % 32;
	case X_HIGH:
		return at % 64 < 32 ? vec_offset(16 + at / 64) + at % 64 :
				      vec_upper(16 + at / 64) + at % 64 - 32;
	default:
		return 0;
	}
}

/* Registers to the stage, from `to` on, before they are stored ... */
static void stage_part(struct mach *m, enum xstate_part part, unsigned size, unsigned to)
{
	for (unsigned at = 0; at < size; at += 8)
		shadow_stage_put(m, to + at, part_register(part, at));
}

/* ... and back, after they were loaded. */
static void unstage_part(struct mach *m, enum xstate_part part, unsigned size, unsigned from)
{
	for (unsigned at = 0; at < size; at += 8)
		if (part_register(part, at))
			shadow_stage_take(m, from + at, part_register(part, at), 8);
}

/* What the stage has of the area's first part was memory's: where registers go, it is theirs. */
static void stage_legacy(struct mach *m, uint64_t parts)
{
	for (unsigned at = 0; at < 160; at += 8)
		if (parts & X_BIT(X_X87) || at == 24)
			shadow_stage_put(m, at, 0);
	if (parts & X_BIT(X_SSE))
		stage_part(m, X_SSE, 256, 160);
}

static void unstage_legacy(struct mach *m, uint64_t pc, uint64_t parts, uint64_t present)
{
	for (unsigned at = 0; at < 160; at += 8)
		if (parts & X_BIT(X_X87) || at == 24)
			shadow_stage_concretize_at(m, pc, at, "saved state");
	if (parts & ~present & X_BIT(X_SSE))
		shadow_stage_begin(m, 0);
	if (parts & X_BIT(X_SSE))
		unstage_part(m, X_SSE, 256, 160);
}

static void put_legacy(struct mach *m, uint8_t *area, uint64_t parts)
{
	uint32_t mxcsr = guest_mxcsr(m), mask;
	uint8_t host[512] __attribute__((aligned(16)));

	if (parts & X_BIT(X_X87)) {
		memcpy(area, m->frame->fx, 24);
		memcpy(area + 32, m->frame->fx + 32, 128);
	}
	if (parts & (X_BIT(X_SSE) | X_BIT(X_AVX))) {
		__asm__ volatile("fxsave64 %0" : "=m"(host));
		memcpy(&mask, host + 28, 4);
		memcpy(area + 24, &mxcsr, 4);
		memcpy(area + 28, &mask, 4);
	}
	if (parts & X_BIT(X_SSE))
		for (unsigned i = 0; i < 16; i++)
			memcpy(area + 160 + 16 * i, mach_at(m, vec_offset(i)), 16);
}

static void get_legacy(struct mach *m, const uint8_t *area, uint64_t parts, uint64_t present)
{
	if (parts & X_BIT(X_X87)) {
		if (present & X_BIT(X_X87)) {
			memcpy(m->frame->fx, area, 24);
			memcpy(m->frame->fx + 32, area + 32, 128);
		} else {
			static const uint8_t control[2] = { 0x7f, 0x03 };

			memset(m->frame->fx, 0, 160);
			memcpy(m->frame->fx, control, 2);
		}
	}
	if (parts & X_BIT(X_SSE))
		for (unsigned i = 0; i < 16; i++) {
			if (present & X_BIT(X_SSE))
				memcpy(mach_at(m, vec_offset(i)), area + 160 + 16 * i, 16);
			else
				memset(mach_at(m, vec_offset(i)), 0, 16);
		}
}

enum mach_stop special_fxsave(struct mach *m, const struct special_insn *s)
{
	uint64_t at = operand_compute(m, &s->address);
	uint8_t area[512];

	if (!mach_load(m, s->pc, at, area, sizeof area))
		return mach_access_fault(m, false);
	put_legacy(m, area, X_BIT(X_X87) | X_BIT(X_SSE));
	if (m->slots)
		stage_legacy(m, X_BIT(X_X87) | X_BIT(X_SSE));
	if (!mach_store(m, s->pc, at, area, sizeof area))
		return mach_access_fault(m, true);
	return STOP_NONE;
}

enum mach_stop special_fxrstor(struct mach *m, const struct special_insn *s)
{
	uint8_t area[512];
	uint32_t mxcsr;

	if (!mach_load(m, s->pc, operand_compute(m, &s->address), area, sizeof area))
		return mach_access_fault(m, false);
	get_legacy(m, area, X_BIT(X_X87) | X_BIT(X_SSE), X_BIT(X_X87) | X_BIT(X_SSE));
	if (m->slots)
		unstage_legacy(m, s->pc, X_BIT(X_X87) | X_BIT(X_SSE), X_BIT(X_SSE));
	memcpy(&mxcsr, area + 24, 4);
	return set_mxcsr(m, mxcsr);
}

static void *ymm0(const struct mach *m)
{
	return mach_at(m, MACH_OFF(YMM0));
}

/* Which components the processor calls in use: those that are not in their initial state. */
static uint64_t in_use(const struct mach *m)
{
	static const uint8_t zero[16];
	uint64_t parts = 0;

	for (unsigned i = 0; i < 16; i++)
		if (memcmp(mach_at(m, vec_offset(i)), zero, 16))
			parts |= X_BIT(X_SSE);
	for (unsigned i = X_AVX; i < X_PARTS; i++)
		if (xstate_size(i) && xstate_used(i, ymm0(m), &m->frame->wide))
			parts |= X_BIT(i);
	for (unsigned i = 2; i < 160; i++)
		if (m->frame->fx[i] && (i < 24 || i >= 32))
			parts |= X_BIT(X_X87);
	return parts;
}

/* Each component is stored by itself: what lies between and what is not in use stays as it is. */
static bool store_parts(struct mach *m, const struct special_insn *s, uint64_t at, uint64_t parts,
			uint64_t compact)
{
	uint8_t area[1024];

	for (unsigned i = X_AVX; i < X_PARTS; i++) {
		uint32_t offset = parts >> i & 1 ? xstate_offset(&m->xlayout, i, compact) : 0;

		if (!offset)
			continue;
		xstate_copy(i, true, area, ymm0(m), &m->frame->wide);
		if (m->slots) {
			shadow_stage_begin(m, xstate_size(i));
			stage_part(m, i, xstate_size(i), 0);
		}
		if (!mach_store(m, s->pc, at + offset, area, xstate_size(i)))
			return false;
	}
	return true;
}

enum mach_stop special_xsave(struct mach *m, const struct special_insn *s)
{
	uint64_t at = operand_compute(m, &s->address);
	uint64_t asked = (uint32_t)RAX_ & m->xlayout.xcr0, parts = asked & X_KNOWN, write = parts;
	uint8_t area[XSTATE_BASIC];
	uint64_t header[8], compact = 0;

	if (at % 64) {
		m->fault = (struct mach_fault){ SIGSEGV, SI_KERNEL, 0 };
		return STOP_FAULT;
	}
	if (!mach_load(m, s->pc, at, area, sizeof area))
		return mach_access_fault(m, false);
	memcpy(header, area + XSTATE_LEGACY, sizeof header);
	if (s->how) { /* xsavec */
		compact = 1ull << 63 | asked;
		write = parts & (in_use(m) | (guest_mxcsr(m) != MXCSR_MASKS ? X_BIT(X_SSE) : 0));
		memset(header, 0, sizeof header);
		header[0] = write;
		header[1] = compact;
	} else {
		header[0] = (header[0] & ~asked) | (parts & in_use(m));
	}
	put_legacy(m, area, write);
	if (m->slots) {
		stage_legacy(m, write);
		for (unsigned i = XSTATE_LEGACY; i < XSTATE_BASIC; i += 8)
			shadow_stage_concretize_at(m, s->pc, i, "saved state");
		for (unsigned i = XSTATE_LEGACY; i < XSTATE_BASIC; i += 8)
			shadow_stage_put(m, i, 0);
	}
	memcpy(area + XSTATE_LEGACY, header, sizeof header);
	if (!mach_store(m, s->pc, at, area, sizeof area) || !store_parts(m, s, at, write, compact))
		return mach_access_fault(m, true);
	return STOP_NONE;
}

static bool load_parts(struct mach *m, const struct special_insn *s, uint64_t at, uint64_t parts,
		       uint64_t present, uint64_t compact)
{
	uint8_t area[1024];

	for (unsigned i = X_AVX; i < X_PARTS; i++) {
		uint32_t offset = xstate_offset(&m->xlayout, i, compact);

		if (!(parts >> i & 1) || !xstate_size(i))
			continue;
		memset(area, 0, sizeof area);
		if (m->slots)
			shadow_stage_begin(m, 0);
		if (present >> i & 1 && offset &&
		    !mach_load(m, s->pc, at + offset, area, xstate_size(i)))
			return false;
		xstate_copy(i, false, area, ymm0(m), &m->frame->wide);
		if (m->slots)
			unstage_part(m, i, xstate_size(i), 0);
	}
	if (xstate_is_wide(&m->frame->wide))
		mach_go_wide(m);
	return true;
}

enum mach_stop special_xrstor(struct mach *m, const struct special_insn *s)
{
	uint64_t at = operand_compute(m, &s->address);
	uint64_t parts = (uint32_t)RAX_ & m->xlayout.xcr0 & X_KNOWN, bv, compact;
	uint8_t area[XSTATE_BASIC];
	uint32_t mxcsr = MXCSR_MASKS;

	if (!mach_load(m, s->pc, at, area, sizeof area))
		return mach_access_fault(m, false);
	memcpy(&bv, area + XSTATE_LEGACY, 8);
	memcpy(&compact, area + XSTATE_LEGACY + 8, 8);
	compact = compact >> 63 ? compact : 0;
	get_legacy(m, area, parts, bv);
	if (m->slots) {
		shadow_stage_concretize_at(m, s->pc, XSTATE_LEGACY, "saved state");
		shadow_stage_concretize_at(m, s->pc, XSTATE_LEGACY + 8, "saved state");
		unstage_legacy(m, s->pc, parts, bv);
	}
	if (!load_parts(m, s, at, parts, bv, compact))
		return mach_access_fault(m, false);
	if (!(parts & (X_BIT(X_SSE) | X_BIT(X_AVX))))
		return STOP_NONE;
	/* The compacted form has no mxcsr without the SSE component: it is reset. */
	if (!compact || (bv & X_BIT(X_SSE)))
		memcpy(&mxcsr, area + 24, 4);
	return set_mxcsr(m, mxcsr);
}

static uint32_t frame_offset(const struct mach *m, enum xstate_part part)
{
	return part == X_SSE ? 160 : m->xlayout.offset[part];
}

static unsigned frame_size(enum xstate_part part)
{
	return part == X_SSE ? 256 : xstate_size(part);
}

void special_frame_save(struct mach *m, uint64_t at)
{
	for (unsigned i = X_SSE; i < X_PARTS; i++)
		for (unsigned b = 0; frame_offset(m, i) && b < frame_size(i); b += 8)
			if (part_register(i, b))
				shadow_set_memory(m, at + frame_offset(m, i) + b, 8,
						  shadow_expr(m, part_register(i, b), 64), NULL);
}

void special_frame_load(struct mach *m, uint64_t at, uint64_t present)
{
	shadow_forget_vectors(m);
	for (unsigned i = X_SSE; i < X_PARTS; i++)
		for (unsigned b = 0; present >> i & 1 && frame_offset(m, i) && b < frame_size(i); b += 8) {
			uint32_t reg = part_register(i, b);
			uint64_t value;

			if (!reg)
				continue;
			memcpy(&value, mach_at(m, reg), 8);
			shadow_set_register(m, reg, 8,
					    shadow_memory(m, at + frame_offset(m, i) + b, 8, value),
					    value);
		}
}

enum mach_stop special_vzero(struct mach *m, const struct special_insn *s)
{
	for (unsigned i = 0; i < 16; i++) {
		unsigned keep = s->how ? 0 : 16;

		memset(mach_at(m, vec_offset(i) + keep), 0, 32 - keep);
		memset(mach_at(m, vec_upper(i)), 0, 32);
		if (m->shadow) {
			shadow_forget(m, vec_offset(i) + keep, 32 - keep);
			shadow_forget(m, vec_upper(i), 32);
		}
	}
	return STOP_NONE;
}

enum mach_stop special_segment_base(struct mach *m, const struct special_insn *s)
{
	uint64_t *base = special_reg(m, s->how & 1 ? MACH_OFF(GS_CONST) : MACH_OFF(FS_CONST));

	if (m->slots && s->how & 2)
		shadow_concretize_operand(m, s->pc, s->reg, 64, "segment base");
	else
		shadow_forget(m, s->reg, 8);
	if (s->how & 2) /* write */
		*base = s->wide ? *special_reg(m, s->reg) : (uint32_t)*special_reg(m, s->reg);
	else
		*special_reg(m, s->reg) = s->wide ? *base : (uint32_t)*base;
	return STOP_NONE;
}
