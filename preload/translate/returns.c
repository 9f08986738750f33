/*
 * Returns that need no look at the stack. A call that a fragment follows has pushed a constant; where nothing in the
 * fragment can have changed that slot by the time of the return, and the stack pointer stands at it, the target is known.
 * Functions that only read, strcmp() and __errno_location() say, return by moving the stack pointer: one
 * instruction instead of eight.
 *
 * What is known: where the stack pointer is relative to each slot, through push, pop and additions of constants; that stores
 * relative to the stack pointer fall beside the slots. Any other store, and any instruction that is not known
 * here, ends it for all calls that are not returned from. No handler of the program runs inside of a fragment. Another
 * thread that writes to the slot meanwhile comes too late, as it could have natively.
 */
#include "preload/translate/build.h"
#include "preload/translate/decode_tables.h"

enum { RSP = REG_RSP_ };

static void forget(struct build *b)
{
	for (unsigned i = 0; i < b->ncalls; i++)
		b->slots[i] = TR_SLOT_LOST;
}

/* What lies below the stack pointer is anybody's. */
static void move(struct build *b, int32_t by)
{
	b->depth += by;
	for (unsigned i = 0; i < b->ncalls; i++)
		if (b->depth > b->slots[i])
			b->slots[i] = TR_SLOT_LOST;
}

/* Vector instructions of all encodings that only read their memory operand; the usual ones. */
static bool vector_reads(const struct insn *in)
{
	unsigned op = in->op;

	switch (in->map) {
	case 1:
		return op == 0x10 || op == 0x12 || (op >= 0x14 && op <= 0x16) || op == 0x28 || op == 0x2e ||
		       op == 0x2f || (op >= 0x51 && op <= 0x70) || (op >= 0x74 && op <= 0x76) ||
		       op == 0xc2 || op == 0xc6 || (op >= 0xd0 && op <= 0xd5) || (op >= 0xd8 && op <= 0xe5) ||
		       (op >= 0xe8 && op <= 0xf6) || (op >= 0xf8 && op <= 0xfe);
	case 2:
		return op == 0x00 || op == 0x17 || (op >= 0x26 && op <= 0x29) || (op >= 0x37 && op <= 0x40) ||
		       op == 0x58 || op == 0x59 || op == 0x78 || op == 0x79;
	case 3:
		return op == 0x0f || op == 0x1e || op == 0x1f || op == 0x25 || op == 0x3e || op == 0x3f || op == 0x63;
	default:
		return false;
	}
}

/* Is a general register among the results? Then it could be rsp. */
static bool vector_gives_general(const struct insn *in)
{
	unsigned op = in->op;

	if (in->map == 1)
		return op == 0x2c || op == 0x2d || op == 0x50 || op == 0x7e || op == 0xc5 || op == 0xd7 ||
		       (op >= 0x90 && op <= 0x99);
	return in->map == 2 ? op >= 0xf0 : op == 0xf0 || (op >= 0x14 && op <= 0x17);
}

static bool vector_harmless(const struct insn *in)
{
	if (in->flags & INSN_MEM)
		return vector_reads(in);
	if (in->map == 1 && in->op == 0xf7)
		return false; /* maskmovdqu */
	return !vector_gives_general(in) || (insn_reg(in) != RSP && insn_rm(in) != RSP && in->vvvv != RSP);
}

static bool is_vector(const struct insn *in)
{
	bool vector = in->map == 1 && ((in->op >= 0x10 && in->op <= 0x17) || (in->op >= 0x28 && in->op <= 0x2f) ||
				       (in->op >= 0x50 && in->op <= 0x7f) || in->op == 0xc2 ||
				       (in->op >= 0xc4 && in->op <= 0xc6) || in->op >= 0xd0);

	return in->vex || in->map > 1 || vector;
}

/* Certainly changes neither memory nor rsp. */
static bool harmless(const struct insn *in)
{
	bool rm_reg = insn_rm_is_reg(in);

	if (in->flags & (INSN_LOCKED | INSN_XSTATE))
		return false;
	if (is_vector(in))
		return vector_harmless(in);
	switch ((enum usage)in->usage) {
	case U_NONE:
		return !(in->flags & INSN_MEM) || in->flags & INSN_LEA_LIKE;
	case U_RM_W: case U_RM_RW:
		return insn_reg(in) != RSP;
	case U_MR_R: case U_M_R: case U_MULDIV: case U_CWDE: case U_CDQ:
		return true;
	case U_ACC_R: case U_ACC_W: case U_ACC_RW:
		return in->op < 0xa0 || in->op > 0xa3;
	case U_MR_RW: case U_MR_W: case U_M_RW: case U_M_W: case U_SHIFT_CL: case U_SHXD_CL:
		return rm_reg && insn_rm(in) != RSP;
	case U_XCHG:
		return rm_reg && insn_rm(in) != RSP && insn_reg(in) != RSP;
	case U_O_R: case U_O_W: case U_O_RW: case U_XCHG_ACC:
		return ((in->op & 7) | (in->rex & 1) << 3) != RSP;
	default:
		return false;
	}
}

/* Its memory operand is [rsp+disp]. */
static bool at_stack(const struct insn *in, const uint8_t *code, int32_t *disp)
{
	bool plain = (in->modrm & 7) == 4 && in->sib == 0x24 && !(in->rex & 3) && !(in->flags & INSN_USES_FS) &&
		     !(in->prefixes & INSN_P67) && in->vex != 2 && in->modrm_off && !insn_rm_is_reg(in);

	if (!plain)
		return false;
	*disp = in->disp_len == 0 ? 0 : in->disp_len == 1 ? (int8_t)code[in->disp_off] :
		(int32_t)((const struct tr_unaligned *)(code + in->disp_off))->v32;
	return true;
}

/* Bytes it may write there; 0: unknown. */
static int32_t stored(const struct insn *in)
{
	if (in->flags & INSN_LOCKED)
		return 0;
	if (is_vector(in))
		return in->map == 1 && (in->op == 0x11 || in->op == 0x29 || in->op == 0x7f || in->op == 0xd6) ? 32 : 0;
	switch ((enum usage)in->usage) {
	case U_MR_RW: case U_MR_W: case U_M_RW: case U_M_W: case U_SHIFT_CL: case U_SHXD_CL:
		return 8;
	default:
		return 0;
	}
}

/* add, sub and lea of rsp with a constant */
static bool adds_to_rsp(const struct insn *in, const uint8_t *code, int32_t *by)
{
	unsigned group = in->modrm >> 3 & 7;

	if (in->map || in->vex || !(in->rex & 8) || in->prefixes)
		return false;
	if (in->op == 0x8d && insn_reg(in) == RSP)
		return at_stack(in, code, by);
	if ((in->op != 0x81 && in->op != 0x83) || !insn_rm_is_reg(in) || insn_rm(in) != RSP ||
	    (group != 0 && group != 5))
		return false;
	*by = in->imm_len == 1 ? (int8_t)code[in->imm_off] :
	      (int32_t)((const struct tr_unaligned *)(code + in->imm_off))->v32;
	*by = group ? -*by : *by;
	return *by > -(1 << 28) && *by < 1 << 28;
}

static bool pushes(const struct insn *in)
{
	return !in->map && !in->vex && !(in->prefixes & INSN_P66) &&
	       ((in->op >= 0x50 && in->op <= 0x57) || in->op == 0x68 || in->op == 0x6a ||
		(in->op == 0xff && in->usage == U_STACK));
}

static bool pops(const struct insn *in)
{
	return !in->map && !in->vex && !(in->prefixes & INSN_P66) && in->usage == U_POP_O &&
	       ((in->op & 7) | (in->rex & 1) << 3) != RSP;
}

void returns_note(struct build *b, const struct insn *in, const uint8_t *code)
{
	int32_t by;

	if (harmless(in))
		return;
	if (pushes(in))
		move(b, -8);
	else if (pops(in))
		move(b, 8);
	else if (adds_to_rsp(in, code, &by))
		move(b, by);
	else if (stored(in) && at_stack(in, code, &by) && b->depth + by > -(1 << 28)) {
		int32_t from = b->depth + by, to = from + stored(in);

		for (unsigned i = 0; i < b->ncalls; i++)
			if (from < b->slots[i] + 8 && b->slots[i] < to)
				b->slots[i] = TR_SLOT_LOST;
	} else {
		forget(b);
	}
	if (b->depth > 1 << 28 || b->depth < -(1 << 28))
		forget(b);
}

/* A call is followed: its return address has just been pushed. */
void push_call(struct build *b, uint64_t back)
{
	if (!b->ncalls)
		b->depth = 0;
	else
		move(b, -8);
	if (b->ncalls == TR_MAX_CALLS) {
		b->ncalls--;
		for (unsigned i = 0; i < b->ncalls; i++) {
			b->calls[i] = b->calls[i + 1];
			b->slots[i] = b->slots[i + 1];
		}
	}
	b->slots[b->ncalls] = b->depth;
	b->calls[b->ncalls++] = back;
}

/* A return, of the newest call that was followed; it pops so many bytes. *sure: there it goes, whatever happens. */
uint64_t pop_call(struct build *b, unsigned bytes, bool *sure)
{
	unsigned last = --b->ncalls;

	*sure = !ctl_plan && b->slots[last] == b->depth;
	move(b, (int32_t)bytes);
	return b->calls[last];
}
