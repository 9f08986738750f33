/* System calls about signals: the application's view is kept here, the kernel's is ours. */
#include "preload/translate/signal.h"
#include "preload/translate/syscall.h"

#include <signal.h>

static void action(struct call *k)
{
	struct tr_ctx *c = k->ctx;
	int sig = (int)k->args[0];
	struct tr_sigaction new, old;

	k->result = -EINVAL;
	if (k->args[3] != 8)
		return;
	k->result = -EFAULT;
	if (k->args[1] && !tr_copy(&new, (void *)k->args[1], sizeof new))
		return;
	k->result = -EINVAL;
	if (sig < 1 || sig > TR_NSIG || (k->args[1] && (sig == SIGKILL || sig == SIGSTOP)))
		return;
	old = c->signals->act[sig];
	if (k->args[1]) {
		new.mask &= ~SIG_UNBLOCKABLE;
		new.flags &= SIG_ACTION_FLAGS;
		c->signals->act[sig] = new;
		sig_install(c, sig);
	}
	k->result = 0;
	if (k->args[2]) {
		if (!tr_copy((void *)k->args[2], &old, sizeof old))
			k->result = -EFAULT;
		call_effect_add(k, k->args[2], sizeof old, TRC_EFFECT_WRITE);
	}
}

static void mask(struct call *k)
{
	struct tr_ctx *c = k->ctx;
	uint64_t old = c->sigmask, set = 0;

	k->result = -EINVAL;
	if (k->args[3] != 8)
		return;
	if (k->args[1]) {
		k->result = -EFAULT;
		if (!tr_copy(&set, (void *)k->args[1], 8))
			return;
		k->result = -EINVAL;
		switch (k->args[0]) {
		case SIG_BLOCK: set = old | set; break;
		case SIG_UNBLOCK: set = old & ~set; break;
		case SIG_SETMASK: break;
		default: return;
		}
		c->sigmask = set & ~SIG_UNBLOCKABLE;
		/* A signal already noted keeps everything blocked until it is delivered. */
		if (!c->pending)
			sig_set_kernel_mask(c->sigmask);
		if (c->pending)
			raw(SYS_rt_sigprocmask, SIG_SETMASK, &(uint64_t){ ~SIG_FAULTS }, 0, 8);
		sig_release(c);
	}
	k->result = 0;
	if (k->args[2]) {
		if (!tr_copy((void *)k->args[2], &old, 8))
			k->result = -EFAULT;
		call_effect_add(k, k->args[2], 8, TRC_EFFECT_WRITE);
	}
}

#define ALT_SIZE_MIN 2048u /* bytes: MINSIGSTKSZ */

/* As the kernel does it, with the stack pointer at sp: flags stay as they were given. */
static long set_alternate(struct tr_ctx *c, struct tr_stack new, uint64_t sp)
{
	uint32_t mode = (uint32_t)new.flags & ~SIG_ALT_AUTODISARM;

	if (sig_on_alternate(c, sp))
		return -EPERM;
	if (mode > SIG_ALT_DISABLE)
		return -EINVAL;
	if (mode == SIG_ALT_DISABLE)
		new.sp = new.size = 0;
	else if (new.size < ALT_SIZE_MIN &&
		 (new.sp != c->alt.sp || new.size != c->alt.size || new.flags != c->alt.flags))
		return -ENOMEM;
	new.pad = 0;
	c->alt = new;
	return 0;
}

static void alternate_stack(struct call *k)
{
	struct tr_ctx *c = k->ctx;
	uint64_t sp = c->regs[REG_RSP_];
	struct tr_stack old = c->alt, new;

	old.flags = (int32_t)((uint32_t)old.flags & SIG_ALT_AUTODISARM);
	if (!old.size)
		old.flags |= SIG_ALT_DISABLE;
	else if (sig_on_alternate(c, sp))
		old.flags |= SIG_ALT_ONSTACK;
	k->result = -EFAULT;
	if (k->args[0]) {
		if (!tr_copy(&new, (void *)k->args[0], sizeof new))
			return;
		k->result = set_alternate(c, new, sp);
		if (k->result)
			return;
	}
	k->result = 0;
	if (k->args[1]) {
		if (!tr_copy((void *)k->args[1], &old, sizeof old))
			k->result = -EFAULT;
		call_effect_add(k, k->args[1], sizeof old, TRC_EFFECT_WRITE);
	}
}

static void return_from_handler(struct call *k)
{
	struct tr_ctx *c = k->ctx;
	struct tr_ucontext uc;

	k->jump = true;
	if (!tr_copy(&uc, (void *)c->regs[REG_RSP_], sizeof uc)) {
		struct tr_siginfo si = { .signo = SIGSEGV, .code = 128 };

		tr_fatal(c, &si);
	}
	crash_returned(c, uc.rip, uc.rsp);
	sig_registers_from_frame(c, &uc);
	c->rflags = (c->rflags & ~EFLAGS_USER) | (uc.eflags & EFLAGS_USER & ~EFLAGS_TF);
	sig_load_fpstate(c, uc.fpstate);
	c->sigmask = uc.mask & ~SIG_UNBLOCKABLE;
	set_alternate(c, uc.stack, uc.rsp); /* what does not fit is passed over */
	c->pc = k->next = uc.rip;
	k->result = (long)uc.rip;
	call_record_leave(k);
	if (!c->pending)
		sig_set_kernel_mask(c->sigmask);
	else
		raw(SYS_rt_sigprocmask, SIG_SETMASK, &(uint64_t){ ~SIG_FAULTS }, 0, 8);
	sig_release(c);
}

static void pending(struct call *k)
{
	uint64_t set = 0;

	k->result = call_run(k, k->args);
	if (k->result)
		return;
	if (k->args[1] == 8 && tr_copy(&set, (void *)k->args[0], 8)) {
		set |= sig_held(k->ctx);
		tr_copy((void *)k->args[0], &set, 8);
	}
	call_outputs(k);
}

/* False: nothing that we hold is waited for. */
static bool timed_wait(struct call *k)
{
	uint64_t set = 0;
	struct tr_siginfo si;

	if (k->args[3] != 8 || !tr_copy(&set, (void *)k->args[0], 8) ||
	    !sig_take_held(k->ctx, set, &si))
		return false;
	k->result = si.signo;
	if (k->args[1]) {
		if (!tr_copy((void *)k->args[1], &si, sizeof si))
			k->result = -EFAULT;
		call_effect_add(k, k->args[1], sizeof si, TRC_EFFECT_WRITE);
	}
	return true;
}

/* Calls that wait with another mask: ours must stay open underneath. */
static void masked_wait(struct call *k, unsigned arg, bool packed)
{
	struct tr_ctx *c = k->ctx;
	uint64_t args[6], set, real, pack[2];

	memcpy(args, k->args, sizeof args);
	uint64_t at = k->args[arg];

	if (packed && at) { /* pselect6: pointer and size behind a pointer */
		if (!tr_copy(pack, (void *)at, sizeof pack)) {
			k->result = -EFAULT;
			return;
		}
		at = pack[0];
	}
	if (at) {
		if (!tr_copy(&set, (void *)at, 8)) {
			k->result = -EFAULT;
			return;
		}
		real = set & ~SIG_FAULTS;
		if (packed) {
			pack[0] = (uint64_t)&real;
			args[arg] = (uint64_t)pack;
		} else {
			args[arg] = (uint64_t)&real;
		}
		c->wait_mask = set & ~SIG_UNBLOCKABLE;
	}
	k->result = call_run(k, args);
	c->has_wait_mask = at && k->result == -EINTR;
	if (k->result != TR_NOT_STARTED)
		call_outputs(k);
}

/* A timer whose signal is for one thread. */
static void note_timer(const struct call *k)
{
	struct sigevent e;

	if (k->args[1] && tr_copy(&e, (const void *)k->args[1], sizeof e) && e.sigev_notify == SIGEV_THREAD_ID)
		sig_queued_to_thread(e.sigev_signo);
}

bool call_signals(struct call *k)
{
	switch (k->nr) {
	case SYS_rt_sigaction: action(k); return true;
	case SYS_rt_sigprocmask: mask(k); return true;
	case SYS_sigaltstack: alternate_stack(k); return true;
	case SYS_rt_sigreturn: return_from_handler(k); return true;
	case SYS_rt_sigpending: pending(k); return true;
	case SYS_rt_sigtimedwait: return timed_wait(k);
	case SYS_rt_sigsuspend: masked_wait(k, 0, false); return true;
	case SYS_ppoll: masked_wait(k, 3, false); return true;
	case SYS_pselect6: masked_wait(k, 5, true); return true;
	case SYS_epoll_pwait: case SYS_epoll_pwait2: masked_wait(k, 4, false); return true;
	case SYS_io_pgetevents: masked_wait(k, 5, true); return true;
	case SYS_rt_tgsigqueueinfo: sig_queued_to_thread((int)k->args[2]); return false;
	case SYS_timer_create: note_timer(k); return false;
	}
	return false;
}
