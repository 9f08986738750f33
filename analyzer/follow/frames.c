/* Signal frames: what the kernel keeps there of a thread's registers while a handler runs. */
#include "analyzer/engine/special.h"

#include "analyzer/follow/follow.h"
#include "analyzer/engine/shadow_ops.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

/* Offsets in the kernel's struct ucontext; registers in its order. */
#define UC_REGS 40
#define UC_RIP 16
#define UC_EFLAGS 17
#define UC_FPSTATE 23

static const uint8_t uc_order[16] = { 8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4 };

/* Of a signal frame; how much there is stands in what the legacy part leaves unused. */
static void load_fpstate(struct mach_run *r, uint64_t at)
{
	uint8_t x[XSTATE_MAX];
	uint32_t sw[5];
	uint64_t present = X_BIT(X_X87) | X_BIT(X_SSE);
	size_t len = XSTATE_LEGACY;
	struct mach_frame *f = r->m->frame;

	memset(x, 0, sizeof x);
	if (!at || !mem_peek(r->m->mem, at, x, len))
		return;
	memcpy(sw, x + 464, sizeof sw);
	if (sw[0] == 0x46505853u && sw[4] >= XSTATE_BASIC && sw[4] <= sizeof x &&
	    mem_peek(r->m->mem, at, x, sw[4])) {
		memcpy(&present, x + XSTATE_LEGACY, 8);
		len = sw[4];
	}
	xstate_load(&r->m->xlayout,
		    &(struct mach_regs_at){ mach_at(r->m, MACH_OFF(YMM0)), &f->wide, f->fx }, x, len,
		    present);
	if (xstate_is_wide(&f->wide))
		mach_go_wide(r->m);
	if (r->m->slots)
		special_frame_load(r->m, at, present);
}

/* Handlers begin with nothing in these registers; those of older recorders inherited what there was. */
void run_handler_state(struct mach_run *r)
{
	uint8_t x[XSTATE_BASIC];
	uint32_t mxcsr = 0x1f80;

	if (!trc_identity_uint(r->t, "handlers_fresh", 0))
		return;
	memset(x, 0, sizeof x);
	memcpy(x + 24, &mxcsr, sizeof mxcsr);
	xstate_load(&r->m->xlayout,
		    &(struct mach_regs_at){ mach_at(r->m, MACH_OFF(YMM0)), &r->m->frame->wide, r->m->frame->fx },
		    x, sizeof x, 0);
	if (r->m->slots)
		shadow_forget_vectors(r->m);
}

/*
 * The kernel's frame holds the registers: their expressions go there with them, and come back
 * unless the handler wrote something else. Flags have none in a frame.
 */
void run_frame_shadow(struct mach_run *r, const struct trc_signal *s)
{
	struct mach *m = r->m;
	uint64_t uc = s->frame + 8, fpstate = 0;

	for (uint32_t at = MACH_OFF(CC_OP); at <= MACH_OFF(CC_NDEP); at += 8)
		shadow_concretize_operand(m, s->interrupted_pc, at, 64, "signal");
	for (unsigned i = 0; i < 16; i++)
		shadow_set_memory(m, uc + UC_REGS + 8 * i, 8,
				  shadow_expr(m, gpr_offset(uc_order[i]), 64), NULL);
	if (mem_peek(m->mem, uc + UC_REGS + 8 * UC_FPSTATE, &fpstate, 8) && fpstate)
		special_frame_save(m, fpstate);
}

enum action run_return_from_handler(struct mach_run *r, struct run_thread *t)
{
	uint64_t uc[UC_REGS / 8 + UC_FPSTATE + 1], *regs = uc + UC_REGS / 8, user = 0xdd5;
	VexGuestAMD64State *g = &r->m->frame->g;
	uint64_t at = g->guest_RSP;

	if (!mem_peek(r->m->mem, at, uc, sizeof uc))
		return run_mismatch(r, g->guest_RIP, "a return from a handler without its frame");
	for (unsigned i = 0; i < 16; i++) {
		run_set_reg(r, uc_order[i], regs[i]);
		if (r->m->slots)
			shadow_set_register(r->m, gpr_offset(uc_order[i]), 8,
					    shadow_memory(r->m, at + UC_REGS + 8 * i, 8, regs[i]), regs[i]);
	}
	mach_set_rflags(g, (regs[UC_EFLAGS] & user) | (mach_rflags(g) & ~user));
	shadow_forget(r->m, MACH_OFF(CC_OP), 32);
	g->guest_RIP = regs[UC_RIP];
	load_fpstate(r, regs[UC_FPSTATE]);
	path_goto(&t->s.cursor, regs[UC_RIP]);
	t->s.call_pc = 0;
	return ACT_RUN;
}

/* By what the thread itself does: in another order that comes, or does not come, by itself. */
static bool is_own_doing(unsigned sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL || sig == SIGTRAP || sig == SIGABRT;
}

bool mach_fails_in_handler(const struct mach_run *r)
{
	const struct trc_failure *f = r->t->failure;
	const struct run_thread *t = f && f->thread < r->nthreads ? &r->threads[f->thread] : NULL;
	size_t returns = 0;

	for (size_t i = t ? t->recs.n : 0; i-- > 0;) {
		const struct trc_rec *rec = t->recs.v[i];

		if (rec->type == TRC_ENTER && rec->flags == SYS_rt_sigreturn) {
			returns++;
		} else if (rec->type == TRC_SIGNAL) {
			/* Where it stands above the frame it has left the handler by longjmp(). */
			if (!returns)
				return !is_own_doing(rec->flags) &&
				       f->regs[TRC_RSP] <= ((const struct trc_signal *)rec)->frame;
			returns--;
		}
	}
	return false;
}
