/* The kernel's view of signals, and what the signal files share. */
#ifndef CSCHED_TRANSLATE_SIGNAL_H
#define CSCHED_TRANSLATE_SIGNAL_H

#include "preload/translate/translate.h"

struct tr_ucontext {
	uint64_t flags, link;
	struct tr_stack stack;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp;
	uint64_t rip, eflags, segments, error, trap, old_mask, cr2;
	uint64_t fpstate;
	uint64_t reserved[8];
	uint64_t mask;
};
_Static_assert(sizeof(struct tr_ucontext) == 304, "the kernel's ucontext");

struct tr_frame {
	uint64_t restorer;
	struct tr_ucontext uc;
	struct tr_siginfo info;
};
_Static_assert(sizeof(struct tr_frame) == 440, "the kernel's rt_sigframe");

#define SIG_BIT(s) (1ull << ((s)-1))
/* Faults: never blocked underneath, always handled by us. */
#define SIG_FAULTS (SIG_BIT(4) | SIG_BIT(5) | SIG_BIT(7) | SIG_BIT(8) | SIG_BIT(11))
/* Sent from outside, or by a limit, and the end of a process: HUP INT QUIT USR1 USR2 ALRM TERM XCPU XFSZ VTALRM
 * PROF. No failures: the trace says how the run ended. */
#define SIG_ENDINGS                                                                        \
	(SIG_BIT(1) | SIG_BIT(2) | SIG_BIT(3) | SIG_BIT(10) | SIG_BIT(12) | SIG_BIT(14) |  \
	 SIG_BIT(15) | SIG_BIT(24) | SIG_BIT(25) | SIG_BIT(26) | SIG_BIT(27))
/* ... and those whose default action we want to record. SIGPIPE is no failure, but the end of
 * a run whose trace is not wanted. */
#define SIG_FATAL (SIG_FAULTS | SIG_BIT(6) | SIG_BIT(13) | SIG_BIT(31) | SIG_ENDINGS)
#define SIG_FAILURES (SIG_FAULTS | SIG_BIT(6) | SIG_BIT(31))
/* By default these do not end a process: CHLD CONT STOP TSTP TTIN TTOU URG WINCH. The others do, and are ours once the program has
 * shown interest in them. */
#define SIG_HARMLESS (SIG_BIT(17) | SIG_BIT(18) | SIG_BIT(19) | SIG_BIT(20) | SIG_BIT(21) | SIG_BIT(22) | SIG_BIT(23) | SIG_BIT(28))
#define SIG_UNBLOCKABLE (SIG_BIT(9) | SIG_BIT(19))

#define SIG_ALT_ONSTACK 1
#define SIG_ALT_DISABLE 2
#define SIG_ALT_AUTODISARM 0x80000000u
#define SIG_ACTION_FLAGS 0xdc000807ull /* the kernel forgets all others */

#define EFLAGS_TF 0x100ull
#define EFLAGS_DF 0x400ull
#define EFLAGS_RF 0x10000ull
#define EFLAGS_USER 0x40dd5ull /* what sigreturn may change: AC OF DF TF SF ZF AF PF CF */

#define FP_MAGIC1 0x46505853u
#define FP_MAGIC2 0x46505845u
#define FP_SW 464 /* offset of struct _fpx_sw_bytes in the legacy area */

void sig_set_kernel_mask(uint64_t app_mask);
void sig_install(struct tr_ctx *c, int sig); /* what the kernel must know about act[sig] */
/*
 * What the next program inherits must be what this one believes: its mask, what it ignores, what is pending. Then an
 * exec, and should that fail everything as it was.
 */
void sig_show_kernel(struct tr_ctx *c);
void sig_hide_from_kernel(struct tr_ctx *c);
void sig_restore_native(struct tr_ctx *c);   /* the program's own handlers, for good */
void sig_queued_to_thread(int signo); /* from now on it may be for one thread, and not for any */
uint64_t sig_held(const struct tr_ctx *c); /* sent, blocked, and faults: not with the kernel */
bool sig_take_held(struct tr_ctx *c, uint64_t set, struct tr_siginfo *si);
void sig_release(struct tr_ctx *c);          /* those that are not blocked any more */
/* The thread ends, with everything blocked: what was sent to the process, and noted here, is the process's again. */
void sig_bequeath(struct tr_ctx *c);
/* Is sp on the application's alternate stack, in the kernel's eyes? Never on one that disarms itself. */
bool sig_on_alternate(const struct tr_ctx *c, uint64_t sp);
void sig_registers_to_frame(struct tr_ucontext *uc, const struct tr_ctx *c);
void sig_registers_from_frame(struct tr_ctx *c, const struct tr_ucontext *uc);
/* Writes the extended state with its software header; returns its length, magic included. */
uint32_t sig_fpstate(struct tr_ctx *c, void *area);
void sig_load_fpstate(struct tr_ctx *c, uint64_t at); /* from an application's frame */

/* crash.c: what becomes of crashes that the program handles. */
void crash_begin(struct tr_ctx *c, const struct tr_siginfo *si, uint64_t frame, bool alternate);
void crash_look(struct tr_ctx *c);     /* has the handler been left by longjmp()? */
void crash_returned(struct tr_ctx *c, uint64_t pc, uint64_t sp); /* it returns to there */
void crash_fatal(struct tr_ctx *c, const struct tr_siginfo *si); /* now it dies */
void crash_over(struct tr_ctx *c);     /* the program goes on */
void crash_forget(struct tr_ctx *c);   /* the parent's */

#endif
