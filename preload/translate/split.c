/*
 * A read-modify-write without lock prefix (add $1, counter) is two accesses; another
 * processor's store may come between them, though hardly ever does. Control may
 * have it done in its two halves, with time between them:
 *
 *      ticket;  slot = operand;  the value on the path
 *      [callout]
 *      THE INSTRUCTION on the slot
 *      ticket;  operand = slot
 *
 * Three items: ORDER, VALUE, ORDER. Nothing is added that the processor does not
 * allow. A store that faults (a page that may only be read) does so after the
 * first two: such a trace is damaged from there on.
 */
#include "preload/translate/build.h"

enum { RAX = REG_RAX_, RCX = REG_RCX_, RDX = REG_RDX_ };

/* The usual arithmetic on 1, 2, 4 or 8 bytes of memory. */
bool split_possible(const struct insn *in)
{
	unsigned part = in->modrm >> 3 & 7, size = insn_memory_size(in);

	if (in->vex || in->map || in->cls != INSN_NORMAL || !(in->flags & INSN_MEM) ||
	    in->prefixes & INSN_P67 ||
	    in->flags & (INSN_USES_FS | INSN_USES_GS | INSN_LOCKED | INSN_LEA_LIKE) ||
	    !(size == 1 || size == 2 || size == 4 || size == 8))
		return false;
	switch (in->op) {
	case 0x80: case 0x81: case 0x83: /* add, or, ..., xor with a constant; not cmp */
		return part != 7;
	case 0xf6: case 0xf7:            /* not, neg */
		return part == 2 || part == 3;
	case 0xfe: case 0xff:            /* inc, dec */
		return part < 2;
	default:                         /* add, or, ..., xor: memory, register; not cmp */
		return in->op < 0x38 && (in->op & 6) == 0;
	}
}

static bool addresses_with(const struct insn *in, int reg)
{
	bool sib = (in->modrm & 7) == 4;

	if (in->flags & INSN_RIPREL)
		return false;
	if (!sib)
		return insn_rm(in) == reg;
	return ((in->sib & 7) | (in->rex & 1) << 3) == reg ||
	       ((in->sib >> 3 & 7) | (in->rex & 2) << 2) == reg;
}

/* mov [operand], reg */
static void store(const struct insn *in, const uint8_t *code, uint64_t pc, unsigned size, int reg)
{
	if (size == 2)
		e8(0x66);
	e8(0x40 | (size == 8 ? 8 : 0) | (in->rex & 3));
	e8(size == 1 ? 0x88 : 0x89);
	emit_operand(reg, in, code, pc);
}

void split_emit(struct build *b, const struct insn *in, uint32_t id)
{
	const uint8_t *code = (const uint8_t *)b->pc;
	unsigned size = insn_memory_size(in);
	int reg = !addresses_with(in, RAX) ? RAX : !addresses_with(in, RCX) ? RCX : RDX;

	value_log(b, in, size, true, CTX_SPLIT);
	if (id != UINT32_MAX)
		callout_emit(b, id, CTL_AT_MIDDLE);
	value_copy(in, code, CTX_SPLIT);
	order_begin_keeping(b, in);
	emit_gs_store(CTX_SPILL, reg);
	emit_gs_load(reg, CTX_SPLIT);
	store(in, code, b->pc, size, reg);
	emit_gs_load(reg, CTX_SPILL);
	order_end(b);
}
