/*
 * From an address inside a fragment's body back to the application: which
 * instruction it belongs to, and what the registers are. Walks the fragment as
 * fragment.c built it; the emitted length of every instruction is on file.
 */
#include "preload/translate/emit.h"

/* order.c has put rcx and rdx away. */
static void release_shard(struct tr_ctx *c, uint64_t regs[16])
{
	uint32_t *shard = (uint32_t *)(uint64_t)(tr_low + LOW_SHARDS + (uint32_t)c->shard * 8);

	regs[REG_RCX_] = c->scratch_rcx;
	regs[REG_RDX_] = c->scratch_rdx;
	__atomic_store_n(&shard[1], 0, __ATOMIC_RELEASE);
}

/*
 * Registers that a path record used because they are dead: they still hold the
 * record pointer of that record (or, in an entry stub, minus the target), and the
 * application's values are in ctx.
 */
void tr_unclobber(const struct tr_ctx *c, uint64_t ptr, uint64_t regs[16])
{
	for (int i = 0; i < 16; i++)
		if (regs[i] == ptr - 1)
			regs[i] = c->spill;
	for (unsigned len = 2; len <= 3; len++) {
		uint32_t word = 0;

		if (ptr < (uint64_t)c->path_begin + len || ptr > (uint64_t)c->path_end)
			return;
		memcpy(&word, (const void *)(ptr - len), len);
		uint32_t id = trc_target_id(word);

		if (regs[REG_RCX_] == ptr - len)
			regs[REG_RCX_] = c->scratch_rcx;
		if ((word & 0x80) && trc_target_len(word) == len && tr_frag_known(id) &&
		    regs[REG_RDX_] == -tr_frag_at(id - 1)->pc)
			regs[REG_RDX_] = c->scratch_rdx;
	}
}

static bool is_indirect(const struct insn *in)
{
	return in->cls == INSN_RET || in->cls == INSN_JMP_IND || in->cls == INSN_CALL_IND;
}

bool tr_fault_state(struct tr_ctx *c, struct tr_frag *f, uint64_t rip, const uint64_t regs[16],
		    uint64_t rflags, struct tr_app_state *out)
{
	const uint16_t *lens = tr_lens(f->lens);
	uint64_t at = (uint64_t)f->body, pc = f->pc;
	uint32_t exit = f->exits;
	struct insn in;

	for (unsigned i = 0; i < f->ninsns; at += TR_LEN(lens[i++])) {
		if (!insn_decode(&in, (const uint8_t *)pc, 15, pc))
			return false;
		if (rip >= at && rip < at + TR_LEN(lens[i])) {
			memcpy(out->regs, regs, 16 * sizeof *regs);
			if (is_indirect(&in))
				out->regs[REG_RCX_] = c->scratch_rcx;
			if (lens[i] & TR_LEN_TICKET)
				release_shard(c, out->regs);
			out->regs[TRC_RIP] = pc;
			out->regs[TRC_RFLAGS] = rflags;
			out->xmm15_is_app = lens[i] & TR_LEN_VEC15;
			out->xmm15_low = lens[i] & TR_LEN_LOW15;
			return true;
		}
		while (f->cases >> (exit - f->exits) & 1)
			exit++;
		bool taken = in.cls == INSN_JMP || in.cls == INSN_CALL || (lens[i] & TR_LEN_TAKEN);

		pc = !taken ? pc + in.len : is_indirect(&in) ? tr_exit_at(exit)->target : in.target;
		if (in.cls == INSN_JCC || in.cls == INSN_LOOP || is_indirect(&in))
			exit++;
	}
	return false;
}
