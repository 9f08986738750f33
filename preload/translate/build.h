/* One fragment in the making; shared by those that make it. */
#ifndef CSCHED_TRANSLATE_BUILD_H
#define CSCHED_TRANSLATE_BUILD_H

#include "preload/translate/emit.h"
#include "preload/translate/hooks.h"

struct build {
	struct tr_region *region;
	struct tr_frag *frag;
	uint32_t frag_index;
	uint64_t pc;          /* of the instruction at hand */
	uint64_t last_pc;
	uint64_t next;        /* fall-through, 0 none */
	unsigned ninsns, nsides, nitems, nfollowed;
	unsigned loop_insns, loop_sides; /* of one round, see follow_loop() */
	uint32_t passed_taken, guessed, cases; /* as in struct trc_fragment */
	unsigned ncalls;       /* calls that were followed and not returned from ... */
	uint64_t calls[TR_MAX_CALLS]; /* ... and where they return to */
	int32_t slots[TR_MAX_CALLS];  /* where on the stack that is, as far as it is certain; see returns.c */
	int32_t depth;                /* where the stack pointer is, on the same scale */
	bool hot;             /* it may hold code that other fragments hold */
	unsigned nback;       /* where branches back led that were followed */
	uint64_t back[TR_MAX_BACK];
	bool in_slot;         /* the operand of the instruction at hand is in ctx, see value_emit() */
	bool ticket;          /* the instruction at hand takes one */
	bool goes_along;      /* the instruction at hand is a branch that is followed */
	bool vec15_in;        /* the application's xmm15 is in the register right now, ... */
	bool vec15_low;       /* ... but what is above its 128 bits is in ctx */
	struct trc_side sides[TR_MAX_SIDES];
	struct trc_item items[TR_MAX_ITEMS];
	uint16_t lens[TR_MAX_INSNS + 1]; /* emitted bytes per instruction, and enum tr_len_flag */
};

static inline unsigned max_insns(const struct build *b)
{
	return b->hot ? TR_MAX_INSNS : TR_COLD_INSNS;
}

/* leave.c: exits. Those that end the fragment ... */
void end_direct(struct build *b, uint64_t target);
void end_special(struct build *b, enum trc_frag_kind kind, uint64_t next);
void end_event(struct build *b, uint64_t from); /* from: of the branch to it, 0 none */
/* ... and those that do not: a side exit; going on where a branch leads. */
void side_exit(struct build *b, const struct insn *in);
void go_along(struct build *b, const struct insn *in);
/* A new exit of this index, with its stub; its rel32, here. */
struct tr_exit *exit_new(struct build *b, uint64_t target, enum low_pointer p, unsigned index);
void exit_rel32(struct tr_exit *x);
/* The record pointer is in xmm15 again. */
void vec15_settle(struct build *b);
/* follow.c: does the fragment go on at pc, with so many side exits by then? */
bool follow(struct build *b, uint64_t pc, unsigned sides);
bool follow_loop(struct build *b, const struct insn *in, enum tr_usual usual);
struct tr_targets guess(struct build *b, const struct insn *in);
/* indirect.c: false when the fragment ends here */
bool indirect_transfer(struct build *b, const struct insn *in);
/* Bytes a near return takes off the stack. */
static inline unsigned ret_pops(const struct insn *in, const uint8_t *code)
{
	return in->imm_len ? 8u + code[in->imm_off] + ((unsigned)code[in->imm_off + 1] << 8) : 8;
}
/* returns.c */
#define TR_SLOT_LOST INT32_MIN
void push_call(struct build *b, uint64_t back);
uint64_t pop_call(struct build *b, unsigned bytes, bool *sure);
/* An instruction that is no branch has been copied, with calls that are followed; what does it do to the stack? */
void returns_note(struct build *b, const struct insn *in, const uint8_t *code);
/* order.c: an instruction that takes a ticket; the parts around it. */
bool order_possible(const struct insn *in);
void order_emit(struct build *b, const struct insn *in);
void order_begin(struct build *b, const struct insn *in);
/* The same where the flags are still wanted, whatever the instruction does to them. */
void order_begin_keeping(struct build *b, const struct insn *in);
void order_end(struct build *b);
/* libc.c: what is noted of an access in libc's synchronisation; flags of hooks.h */
unsigned libc_wishes(uint64_t pc, const struct insn *in);
/* callout.c */
void callout_emit(struct build *b, uint32_t id, enum ctl_at at);
void callouts_forget(void);
/* ordered: with a ticket, which comes first. False: not a load that can be logged. */
bool value_emit(struct build *b, const struct insn *in, unsigned size, bool ordered);
/* The operand into gs:[slot], and what it was onto the path. */
void value_log(struct build *b, const struct insn *in, unsigned size, bool ordered, uint32_t slot);
/* The instruction with gs:[slot] in place of its memory operand. */
void value_copy(const struct insn *in, const uint8_t *code, uint32_t slot);
/* split.c */
/* id: of a callout between the halves; UINT32_MAX none */
void split_emit(struct build *b, const struct insn *in, uint32_t id);

#endif
