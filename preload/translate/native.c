/*
 * Giving up on translation, for the whole process and for good: every thread
 * continues natively where it stands, with the kernel's own sigreturn, which
 * sets all registers, the vector state and the mask in one step.
 */
#include "preload/signals.h"
#include "preload/translate/epoch.h"
#include "preload/translate/signal.h"

#include <linux/prctl.h>

static char reason[120];

/* Under tr_lock(). The calling thread leaves at its next tr_go_on(). */
void tr_detach(struct tr_ctx *c, const char *why)
{
	struct raw_text t = { reason, 0, sizeof reason };

	(void)c;
	if (tr.detached)
		return;
	text_str(&t, why);
	TEXT(note, 200);
	text_str(&note, "path recording ended: ");
	text_str(&note, why);
	shim_note(true, note.s);
	__atomic_store_n(&tr.detached, true, __ATOMIC_RELEASE);
	tr_drop_all();
}

static void record(struct tr_ctx *c)
{
	struct rec_stream *s = &c->thread->rec;
	size_t n = strlen(reason), size = sizeof(struct trc_native) + n;
	struct trc_native *r = rec_begin(s, size);

	if (!r)
		return;
	r->tsc = raw_tsc();
	r->path_pos = tr_pos(c);
	r->pc = c->pc;
	r->text_len = (uint32_t)n;
	memcpy(r->text, reason, n);
	rec_commit(s, r, TRC_NATIVE, 0, size);
}

bool tr_is_native(const struct shim_thread *t)
{
	const struct tr_ctx *c = t->translator;

	return tr.detached && (!c || c->native);
}

static bool last_one(const struct tr_ctx *self)
{
	for (struct tr_ctx *c = tr.contexts; c; c = c->next)
		if (c != self && c->alive && !c->native)
			return false;
	return true;
}

void tr_leave(struct tr_ctx *c)
{
	struct {
		struct tr_ucontext uc; /* what rt_sigreturn finds at rsp */
		_Alignas(64) uint8_t fp[TR_XSAVE_MAX + 64];
	} frame;
	uint64_t all = ~0ull;

	tr_epoch_unasked(c, true);
	raw(SYS_rt_sigprocmask, 2, &all, 0, 8);
	record(c);
	memset(&frame.uc, 0, sizeof frame.uc);
	sig_registers_to_frame(&frame.uc, c);
	frame.uc.flags = tr_machine.xcr0 ? 7 : 6;
	frame.uc.segments = 0x002b000000000033ull;
	frame.uc.fpstate = (uint64_t)frame.fp;
	frame.uc.stack = c->alt;
	frame.uc.mask = c->sigmask;
	sig_fpstate(c, frame.fp);
	tr_path_close(c);
	tr_lock();
	c->native = true;
	bool last = last_one(c);
	tr_unlock();
	/* Without the time-stamp counter there is no recorder. */
	if (c->falls_silent || c->no_tsc)
		shim_fall_silent();
	if (last) {
		/* From here on the shim works as in sync mode. */
		sig_restore_native(c);
		shim_opt.mode = SHIM_MODE_SYNC;
		if (shim.state != SHIM_OFF)
			signals_start();
	}
	raw(SYS_set_tid_address, c->clear_tid);
	if (c->no_tsc)
		raw(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	tr_set_gs(c->native_gs);
	/* Signals noted and not delivered: the program's own handlers take them now. */
	for (unsigned i = 0; i < TR_QUEUE; i++)
		if (c->queue[i].signo)
			raw(SYS_rt_tgsigqueueinfo, raw(SYS_getpid), raw(SYS_gettid),
			    c->queue[i].signo, &c->queue[i]);
	tr_sigreturn(&frame.uc);
}
