/* Gathers, scatters and masked moves: each lane is an access of its own, or none. */
#include "analyzer/engine/special.h"

#include "analyzer/engine/shadow_ops.h"

#include <string.h>

static bool lane_chosen(struct mach *m, const struct special_insn *s, unsigned lane)
{
	const uint8_t *mask = mach_at(m, s->mask_reg);

	return mask[lane * s->size + s->size - 1] & 0x80;
}

static uint32_t offset_of(uint32_t lower, uint32_t upper, unsigned at)
{
	return at < 32 ? lower + at : upper + at - 32;
}

static uint8_t *byte_of(struct mach *m, uint32_t lower, uint32_t upper, unsigned at)
{
	return mach_at(m, offset_of(lower, upper, at));
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

/* Which lanes, and where: neither has an expression. A mask of bits never has one. */
static void concretize_mask(struct mach *m, const struct special_insn *s)
{
	for (unsigned at = 0; at < s->lanes * s->size; at += 8)
		shadow_concretize_operand(m, s->pc, s->mask_reg + at, 64, "vector mask");
}

static void concretize_elements(struct mach *m, const struct special_insn *s)
{
	if (s->how == LANES_BY_SIGN)
		concretize_mask(m, s);
	for (unsigned lane = 0; lane < s->lanes; lane++)
		if (element_chosen(m, s, lane))
			shadow_concretize_operand(m, s->pc,
						  offset_of(s->index_reg, s->index_upper,
							    lane * s->index_size),
						  8 * s->index_size, "address");
}

enum mach_stop special_gather(struct mach *m, const struct special_insn *s)
{
	uint64_t base = operand_compute(m, &s->address);

	if (m->slots)
		concretize_elements(m, s);
	for (unsigned lane = 0; lane < s->lanes; lane++) {
		if (!element_chosen(m, s, lane))
			continue;
		if (!mach_load(m, s->pc, element_address(m, s, base, lane),
			       byte_of(m, s->reg, s->reg_upper, lane * s->size), s->size))
			return mach_access_fault(m, false);
		if (m->slots)
			shadow_stage_take(m, 0, offset_of(s->reg, s->reg_upper, lane * s->size),
					  s->size);
		element_done(m, s, lane);
	}
	if (s->how == LANES_BY_BIT)
		*special_reg(m, s->mask_reg) = 0;
	else
		memset(mach_at(m, s->mask_reg), 0, 32);
	for (unsigned at = s->lanes * s->size; at < 64; at += 4) {
		memset(byte_of(m, s->reg, s->reg_upper, at), 0, 4);
		if (m->slots)
			shadow_set_register(m, offset_of(s->reg, s->reg_upper, at), 4, EXPR_NONE, 0);
	}
	if (m->shadow && s->how == LANES_BY_SIGN)
		shadow_forget(m, s->mask_reg, 32);
	return STOP_NONE;
}

enum mach_stop special_scatter(struct mach *m, const struct special_insn *s)
{
	uint64_t base = operand_compute(m, &s->address);

	if (m->slots)
		concretize_elements(m, s);
	for (unsigned lane = 0; lane < s->lanes; lane++) {
		if (!element_chosen(m, s, lane))
			continue;
		if (m->shadow)
			shadow_stage_register(m, offset_of(s->reg, s->reg_upper, lane * s->size),
					      s->size);
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
	expr_id loaded[32] = { EXPR_NONE }; /* only stores have more than 8 lanes */

	if (m->slots)
		concretize_mask(m, s);
	for (unsigned lane = 0; lane < s->lanes; lane++) {
		unsigned at = lane * s->size;

		if (!lane_chosen(m, s, lane))
			continue;
		if (s->how == MASK_STORE) {
			if (m->shadow)
				shadow_stage_register(m, s->reg + at, s->size);
			if (!mach_store(m, s->pc, base + at, data + at, s->size))
				return mach_access_fault(m, true);
		} else if (!mach_load(m, s->pc, base + at, result + at, s->size)) {
			return mach_access_fault(m, false);
		} else if (m->slots) {
			loaded[lane] = m->shadow->stage[0];
		}
	}
	if (s->how == MASK_STORE)
		return STOP_NONE;
	memcpy(data, result, 32);
	shadow_forget(m, s->reg, 32);
	for (unsigned lane = 0; m->slots && lane < s->lanes; lane++)
		shadow_set_register(m, s->reg + lane * s->size, s->size, loaded[lane], 0);
	return STOP_NONE;
}
