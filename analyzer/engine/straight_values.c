/* See straight.h: values of the frame in registers, and how they get there and back. */
#include "analyzer/engine/straight_ops.h"

#define CACHED(i) (R_8 + (i))

void val_forget(struct straight_run *r, uint32_t word)
{
	for (unsigned i = 0; i < STRAIGHT_CACHED; i++)
		for (unsigned k = 0; k < 2; k++)
			if (r->cached[i].word[k] == word)
				r->cached[i].word[k] = NO_WORD;
}

void val_forget_all(struct straight_run *r)
{
	memset(r->cached, 0xff, sizeof r->cached);
	for (unsigned i = 0; i < STRAIGHT_CACHED; i++)
		r->cached[i].used = 0;
}

void val_holds(struct straight_run *r, unsigned reg, uint32_t word)
{
	uint32_t *at = r->cached[reg - R_8].word;

	val_forget(r, word);
	at[at[0] == NO_WORD ? 0 : 1] = word;
}

static void used(struct straight_run *r, unsigned reg)
{
	if (reg >= R_8 && reg < R_8 + STRAIGHT_CACHED)
		r->cached[reg - R_8].used = ++r->clock;
}

unsigned val_fresh(struct straight_run *r, unsigned a, unsigned b)
{
	unsigned best = R_NONE;

	for (unsigned i = 0; i < STRAIGHT_CACHED; i++) {
		if (CACHED(i) == a || CACHED(i) == b)
			continue;
		if (best == R_NONE || r->cached[i].used < r->cached[best - R_8].used)
			best = CACHED(i);
	}
	r->cached[best - R_8].word[0] = r->cached[best - R_8].word[1] = NO_WORD;
	used(r, best);
	return best;
}

struct straight_value val_operand(struct straight_run *r, unsigned bits, uint32_t offset,
				  unsigned other)
{
	struct straight_value v = { .reg = R_NONE };

	if (offset >= MACH_CONSTS) {
		v.constant = true;
		memcpy(&v.bits, mach_at(r->m, offset), 8);
		if (bits < 64)
			v.bits &= (1ull << bits) - 1;
		return v;
	}
	for (unsigned i = 0; i < STRAIGHT_CACHED && offset % 8 == 0; i++)
		if (r->cached[i].word[0] == offset || r->cached[i].word[1] == offset)
			v.reg = (uint8_t)CACHED(i);
	if (v.reg == R_NONE) {
		v.reg = (uint8_t)val_fresh(r, other, R_NONE);
		if (offset % 8 == 0 && bits >= 32) {
			x_frame(&r->code, I_MOV, true, v.reg, offset);
			val_holds(r, v.reg, offset);
		} else {
			x_frame(&r->code, bits == 8 ? I_ZX8 : bits == 16 ? I_ZX16 : I_MOV, bits == 64,
				v.reg, offset);
		}
	}
	used(r, v.reg);
	return v;
}

unsigned val_own(struct straight_run *r, struct straight_value v, unsigned bits, unsigned other)
{
	unsigned reg = val_fresh(r, v.constant ? R_NONE : v.reg, other);

	if (v.constant)
		x_constant(&r->code, reg, v.bits);
	else
		x_rr(&r->code, bits == 8 ? I_ZX8 : bits == 16 ? I_ZX16 : I_MOV, bits == 64, reg, v.reg);
	return reg;
}

unsigned val_own_signed(struct straight_run *r, struct straight_value v, unsigned bits,
			unsigned other)
{
	unsigned reg = val_fresh(r, v.constant ? R_NONE : v.reg, other);

	if (v.constant)
		x_constant(&r->code, reg, (uint64_t)((int64_t)(v.bits << (64 - bits)) >> (64 - bits)));
	else
		x_rr(&r->code, bits == 8 ? I_SX8 : bits == 16 ? I_SX16 : bits == 32 ? I_SX32 : I_MOV,
		     true, reg, v.reg);
	return reg;
}

void val_into(struct straight_run *r, unsigned reg, struct straight_value v, unsigned bits)
{
	if (v.constant)
		x_constant(&r->code, reg, v.bits);
	else
		x_rr(&r->code, bits == 8 ? I_ZX8 : bits == 16 ? I_ZX16 : I_MOV, bits == 64, reg, v.reg);
}

void val_result(struct straight_run *r, unsigned reg, unsigned bits, uint32_t d)
{
	if (bits < 32)
		x_rr(&r->code, bits == 16 ? I_ZX16 : I_ZX8, false, reg, reg);
	x_frame(&r->code, I_STORE, true, reg, d);
	val_holds(r, reg, d);
	used(r, reg);
}

bool val_fits(uint64_t v)
{
	return v == (uint64_t)(int64_t)(int32_t)v;
}
