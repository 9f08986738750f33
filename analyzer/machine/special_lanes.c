/* Gathers and masked moves: each lane is an access of its own, or none. */
#include "analyzer/machine/special.h"

#include "analyzer/machine/shadow_ops.h"

#include <string.h>

static bool lane_chosen(struct mach *m, const struct special_insn *s, unsigned lane)
{
	const uint8_t *mask = mach_at(m, s->mask_reg);

	return mask[lane * s->size + s->size - 1] & 0x80;
}

enum mach_stop special_gather(struct mach *m, const struct special_insn *s)
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
