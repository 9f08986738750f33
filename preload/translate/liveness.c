/*
 * Which registers are free at an address: those that the next few instructions
 * certainly overwrite before reading them. Wrong answers in the safe
 * direction cost a spill; the scan stops at anything it does not understand.
 */
#include "preload/translate/emit.h"

#define SCAN_INSNS 8

/* Stack slots, module data and thread-local storage count as safe. */
static bool may_fault(const struct insn *in)
{
	if (!(in->flags & INSN_MEM) || (in->flags & (INSN_LEA_LIKE | INSN_RIPREL | INSN_USES_FS)))
		return false;
	return !((in->modrm & 7) == 4 && (in->sib & 7) == 4 && !(in->rex & 1));
}

/*
 * A fault must show the application's registers exactly. Registers in `unseen`
 * are overwritten before anything can fault; the other dead ones may be used
 * only after saving them to ctx, where fault.c finds them.
 */
struct tr_free tr_dead_registers(uint64_t pc)
{
	struct tr_free f = { 0, 0 };
	uint32_t live = 0, reads, writes;
	bool faults = false;

	for (int n = 0; n < SCAN_INSNS; n++) {
		const struct insn *in = tr_insn_at(pc);

		if (!in->len)
			return f;
		if (in->cls == INSN_SYSCALL) { /* clobbers rcx and r11, after they were recorded */
			f.dead |= 0x802u & ~live;
			return f;
		}
		if (in->cls == INSN_JMP || in->cls == INSN_CALL) {
			pc = in->target;
			continue;
		}
		/* A branch target could read what is dead on the fall-through. */
		if (in->cls != INSN_NORMAL || !insn_registers(in, &reads, &writes))
			return f;
		faults |= may_fault(in);
		live |= reads & ~f.dead;
		f.dead |= writes & ~live;
		if (!faults)
			f.unseen = f.dead;
		if (f.dead & 0xff)
			return f;
		pc += in->len;
	}
	return f;
}

bool tr_flags_dead(uint64_t pc)
{
	for (int n = 0; n < SCAN_INSNS; n++) {
		const struct insn *in = tr_insn_at(pc);

		if (!in->len)
			return false;
		if (in->flags & INSN_SETS_FLAGS)
			return in->cls == INSN_NORMAL;
		if (in->cls != INSN_NORMAL || !(in->flags & INSN_KEEPS_FLAGS))
			return false;
		pc += in->len;
	}
	return false;
}
