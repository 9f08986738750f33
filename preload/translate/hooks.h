/*
 * What preload/control/ may ask of the translator: to be called before or
 * after chosen instructions, and to have loaded values logged and plain accesses
 * ordered. All pointers NULL: off. Set them before tr_takeover().
 */
#ifndef CSCHED_TRANSLATE_HOOKS_H
#define CSCHED_TRANSLATE_HOOKS_H

#include "preload/translate/translate.h"

enum ctl_flag {
	CTL_CALLOUT_BEFORE = 1,
	CTL_CALLOUT_AFTER = 2, /* only for instructions that fall through */
	/* The next two only once there is a second thread; what cannot be done is left out. */
	CTL_LOG_VALUE = 4,     /* a load of 1, 2, 4 or 8 bytes: TRC_ITEM_VALUE */
	CTL_ORDER = 8,         /* one explicit memory operand: TRC_ITEM_ORDER, before its value */
	CTL_SPLIT = 16,        /* a read-modify-write without lock in two halves, see split.c */
	CTL_CALLOUT_MIDDLE = 32, /* with CTL_SPLIT: between the halves; else before */
};

/* Where in its instruction a callout is made. */
enum ctl_at { CTL_AT_BEFORE, CTL_AT_AFTER, CTL_AT_MIDDLE };

struct ctl_wish {
	unsigned flags;
	uint32_t id; /* handed to ctl_callout */
};

/* Asked for every instruction at translation, with the translator's lock held. */
extern struct ctl_wish (*ctl_plan)(uint64_t pc, const struct insn *in);

/*
 * Runs natively on the thread's own native stack, without locks, at the
 * instruction: c->regs, c->rflags are the application's (may be read, not
 * changed); pc is the instruction's address. A callout for the middle of an instruction
 * that is not split is made before it, as one for the middle.
 */
extern void (*ctl_callout)(struct tr_ctx *c, uint32_t id, uint64_t pc, enum ctl_at at);

/* Can it be done in two halves? (CTL_SPLIT) */
bool split_possible(const struct insn *in);

/* Called at every system call's entry and return, thread start and end; NULL: off. */
extern void (*ctl_syscall_enter)(struct tr_ctx *c, long nr, const uint64_t args[6]);
extern void (*ctl_syscall_leave)(struct tr_ctx *c, long nr, long result);
extern void (*ctl_thread_start)(struct tr_ctx *c);
extern void (*ctl_thread_exit)(struct tr_ctx *c);

/* Effective address of the instruction's memory operand from the registers of c. */
uint64_t tr_operand_address(const struct insn *in, uint64_t pc, const uint8_t *code,
			    const struct tr_ctx *c);

/* Switches the callout with this id off (all its places) or on again. */
void tr_callout_enable(uint32_t id, bool on);

#endif
