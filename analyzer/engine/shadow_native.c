/*
 * The shadow of instructions that the processor itself executes, and of those with code of their
 * own: moves keep expressions, of the rest what goes in gets its value and what comes out is known.
 */
#include "analyzer/engine/shadow_ops.h"

#include "analyzer/engine/special.h"

#include <string.h>

static bool is_symbolic(struct mach *m, uint32_t offset, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i += 8)
		if (m->slots[(offset + i) / 8])
			return true;
	return false;
}

static void concretize_vector(struct mach *m, uint64_t pc, uint32_t offset)
{
	if (!is_symbolic(m, offset, 32))
		return;
	for (unsigned i = 0; i < 32; i += 8)
		shadow_concretize_operand(m, pc, offset + i, 64, "vector instruction");
}

/* Where byte `at` of a vector is: the upper half of a register may lie elsewhere. */
static uint32_t piece(uint32_t lower, uint32_t upper, unsigned at)
{
	return at < 32 ? lower + at : upper + at - 32;
}

/* The source of a move, in pieces of 8 bytes (the last may be shorter). */
static void take_move(struct mach *m, const struct native_insn *n)
{
	struct shadow *s = m->shadow;

	for (unsigned at = 0; at < n->move_bytes && at < 64; at += 8) {
		unsigned left = n->move_bytes - at, bits = 8 * (left < 8 ? left : 8);

		if (n->move_src)
			s->move[at / 8] = shadow_expr(m, piece(n->move_src, n->src_upper, at), bits);
		else
			s->move[at / 8] = s->staged ? s->stage[at / 8] : EXPR_NONE;
	}
}

void shadow_native_before(struct mach *m, const struct native_insn *n, uint64_t pc)
{
	if (n->move_bytes) {
		take_move(m, n);
		return;
	}
	if (n->zeroes)
		return;
	if (n->reads)
		shadow_stage_concretize(m, pc, "vector instruction");
	for (uint32_t left = n->vec_read; left; left &= left - 1) {
		unsigned r = (unsigned)__builtin_ctz(left);

		concretize_vector(m, pc, vec_offset(r));
		if (m->wide)
			concretize_vector(m, pc, vec_upper(r));
	}
	for (unsigned r = 0; r < 16; r++) {
		if (n->gpr_read >> r & 1)
			shadow_concretize_operand(m, pc, gpr_offset(r), 64, "vector instruction");
	}
	if (n->reads_flags)
		for (uint32_t at = MACH_OFF(CC_OP); at <= MACH_OFF(CC_NDEP); at += 8)
			shadow_concretize_operand(m, pc, at, 64, "vector instruction");
}

static void put_move(struct mach *m, const struct native_insn *n)
{
	struct shadow *s = m->shadow;

	if (!n->move_dst) { /* to memory: the store takes it from the stage */
		memcpy(s->stage, s->move, sizeof s->move);
		s->staged = n->move_bytes;
		return;
	}
	for (unsigned at = 0; at < n->move_bytes && at < 64; at += 8) {
		unsigned left = n->move_bytes - at;
		uint32_t to = piece(n->move_dst, n->dst_upper, at);

		shadow_set_register(m, to, left < 8 ? left : 8, s->move[at / 8], shadow_concrete(m, to));
	}
	if (n->clear_upper)
		shadow_forget(m, n->dst_upper, 32);
	/* What is cleared lies behind the moved bytes, up to a whole number of slots. */
	for (unsigned at = n->move_bytes; at < n->move_bytes + n->clear_bytes;) {
		unsigned part = 8 - (n->move_dst + at) % 8;

		shadow_set_register(m, n->move_dst + at, part, EXPR_NONE, 0);
		at += part;
	}
	s->staged = 0;
}

void shadow_native_after(struct mach *m, const struct native_insn *n)
{
	if (n->move_bytes) {
		put_move(m, n);
		return;
	}
	m->shadow->staged = 0;
	for (uint32_t left = n->vec_written; left; left &= left - 1) {
		unsigned r = (unsigned)__builtin_ctz(left);

		shadow_forget(m, vec_offset(r), 32);
		if (m->wide)
			shadow_forget(m, vec_upper(r), 32);
	}
	for (unsigned r = 0; r < 16; r++)
		if (n->gpr_written >> r & 1)
			shadow_forget(m, gpr_offset(r), 8);
	if (n->writes_flags)
		shadow_forget(m, MACH_OFF(CC_OP), 32);
}

void shadow_special(struct mach *m, const struct special_insn *s)
{
	static const uint32_t strings[] = { MACH_OFF(RCX), MACH_OFF(RSI), MACH_OFF(RDI) };

	m->shadow->staged = 0;
	shadow_operand_address(m, &s->address, s->pc);
	if (s->fn != special_movs && s->fn != special_stos && s->fn != special_lods &&
	    s->fn != special_compare)
		return;
	for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
		if (!m->slots[strings[i] / 8])
			continue;
		shadow_concretize_operand(m, s->pc, strings[i], 64, "string instruction");
		shadow_forget(m, strings[i], 8);
	}
}
