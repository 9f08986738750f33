/* Gathers, scatters and masked moves: each lane is an access of its own, or none. */
#include "analyzer/machine/special.h"

#include "analyzer/machine/shadow_ops.h"

#include <string.h>

static bool lane_chosen(struct mach *m, const struct special_insn *s, unsigned lane)
{
	const uint8_t *mask = mach_at(m, s->mask_reg);

	return mask[lane * s->size + s->size - 1] & 0x80;
}

static uint8_t *byte_of(struct mach *m, uint32_t lower, uint32_t upper, unsigned at)
{
	return mach_at(m, at < 32 ? lower + at : upper + at - 32);
}

/* Of a gather or scatter. */
static bool element_chosen(struct mach *m, const struct special_insn *s, unsigned lane)
{
	if (s->how == LANES_BY_BIT)
		return *special_reg(m, s->mask_reg) >> lane & 1;
	return lane_chosen(m, s, lane);
}

/* One that is done is taken out: the instruction goes on there after a fault. */
static void element_done(struct mach *m, const struct special_insn *s, unsigned lane)
{
	if (s->how == LANES_BY_BIT)
		*special_reg(m, s->mask_reg) &= ~(1ull << lane);
	else
		memset((uint8_t *)mach_at(m, s->mask_reg) + lane * s->size, 0, s->size);
}

static uint64_t element_address(struct mach *m, const struct special_insn *s, uint64_t base,
				unsigned lane)
{
	const uint8_t *index = byte_of(m, s->index_reg, s->index_upper, lane * s->index_size);
	int64_t i64;
	int32_t i32;

	memcpy(&i32, index, 4);
	i64 = i32;
	if (s->index_size == 8)
		memcpy(&i64, index, 8);
	return base + (uint64_t)i64 * s->scale;
}

enum mach_stop special_gather(struct mach *m, const struct special_insn *s)
{
	uint64_t base = operand_compute(m, &s->address);

	for (unsigned lane = 0; lane < s->lanes; lane++) {
		if (!element_chosen(m, s, lane))
			continue;
		if (!mach_load(m, s->pc, element_address(m, s, base, lane),
			       byte_of(m, s->reg, s->reg_upper, lane * s->size), s->size))
			return mach_access_fault(m, false);
		element_done(m, s, lane);
	}
	if (s->how == LANES_BY_BIT)
		*special_reg(m, s->mask_reg) = 0;
	else
		memset(mach_at(m, s->mask_reg), 0, 32);
	for (unsigned at = s->lanes * s->size; at < 64; at += 4)
		memset(byte_of(m, s->reg, s->reg_upper, at), 0, 4);
	if (m->shadow) {
		shadow_forget(m, s->reg, 32);
		shadow_forget(m, s->reg_upper, 32);
		if (s->how == LANES_BY_SIGN)
			shadow_forget(m, s->mask_reg, 32);
	}
	return STOP_NONE;
}

enum mach_stop special_scatter(struct mach *m, const struct special_insn *s)
{
	uint64_t base = operand_compute(m, &s->address);

	for (unsigned lane = 0; lane < s->lanes; lane++) {
		if (!element_chosen(m, s, lane))
			continue;
		if (!mach_store(m, s->pc, element_address(m, s, base, lane),
				byte_of(m, s->reg, s->reg_upper, lane * s->size), s->size))
			return mach_access_fault(m, true);
		element_done(m, s, lane);
	}
	*special_reg(m, s->mask_reg) = 0;
	return STOP_NONE;
}

enum mach_stop special_mask_move(struct mach *m, const struct special_insn *s)
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
