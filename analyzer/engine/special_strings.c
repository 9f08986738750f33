/* rep-prefixed string instructions. */
#include "analyzer/engine/special.h"

#include "analyzer/engine/shadow_ops.h"

#include <string.h>

#define RAX_ (*special_reg(m, MACH_OFF(RAX)))
#define RCX_ (*special_reg(m, MACH_OFF(RCX)))
#define RSI_ (*special_reg(m, MACH_OFF(RSI)))
#define RDI_ (*special_reg(m, MACH_OFF(RDI)))

/* So many bytes are done; false: no more of them now. */
static bool goes_on(struct mach *m, uint64_t bytes)
{
	m->work += bytes;
	if (m->work < MACH_WORK)
		return true;
	m->work = 0;
	return !m->give_up || !m->give_up(m->give_up_arg);
}

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

enum mach_stop special_movs(struct mach *m, const struct special_insn *s)
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
		if (!goes_on(m, n == s->size ? n * MACH_SLOW : n) && RCX_)
			return STOP_WORK;
	}
	return STOP_NONE;
}

enum mach_stop special_stos(struct mach *m, const struct special_insn *s)
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
		if (!goes_on(m, n == s->size ? n * MACH_SLOW : n) && RCX_)
			return STOP_WORK;
	}
	return STOP_NONE;
}

enum mach_stop special_lods(struct mach *m, const struct special_insn *s)
{
	uint64_t step = m->frame->g.guest_DFLAG * s->size;

	for (; RCX_; RCX_--) {
		uint64_t value = s->size == 8 || s->size == 4 ? 0 : RAX_;

		if (!mach_load(m, s->pc, RSI_, &value, s->size))
			return mach_access_fault(m, false);
		RAX_ = value;
		if (m->slots) {
			if (s->size == 4)
				shadow_forget(m, MACH_OFF(RAX), 8);
			shadow_stage_take(m, 0, MACH_OFF(RAX), s->size);
		}
		RSI_ += step;
		if (RCX_ > 1 && !goes_on(m, s->size * MACH_SLOW)) {
			RCX_--;
			return STOP_WORK;
		}
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
	shadow_forget(m, MACH_OFF(CC_OP), 32);
}

enum mach_stop special_compare(struct mach *m, const struct special_insn *s)
{
	uint64_t step = m->frame->g.guest_DFLAG * s->size;
	bool scan = s->how == STR_SCAS, until_equal = s->wide;

	if (m->slots && scan && RCX_)
		shadow_concretize_operand(m, s->pc, MACH_OFF(RAX), 8 * s->size, "string instruction");
	while (RCX_) {
		uint64_t a = 0, b = 0;

		if (scan)
			memcpy(&a, &RAX_, s->size);
		else if (!mach_load(m, s->pc, RSI_, &a, s->size))
			return mach_access_fault(m, false);
		if (m->slots && !scan)
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
		if (!goes_on(m, s->size * MACH_SLOW) && RCX_)
			return STOP_WORK;
	}
	return STOP_NONE;
}
