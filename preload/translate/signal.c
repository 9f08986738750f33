/*
 * Our signal handler. It never runs application code: it notes the signal,
 * blocks the others, and sees to it that the thread reaches a boundary.
 */
#include "preload/translate/epoch.h"
#include "preload/translate/signal.h"

#include <signal.h>

#define SI_USER_ 0
#define SI_TKILL_ -6
#define TRAP_TRACE_ 2

static uint64_t *general(struct tr_ucontext *uc, int reg)
{
	uint64_t *const r[16] = { &uc->rax, &uc->rcx, &uc->rdx, &uc->rbx, &uc->rsp, &uc->rbp,
				  &uc->rsi, &uc->rdi, &uc->r8, &uc->r9, &uc->r10, &uc->r11,
				  &uc->r12, &uc->r13, &uc->r14, &uc->r15 };

	return r[reg];
}

static uint64_t *xmm15(const struct tr_ucontext *uc)
{
	return (uint64_t *)(uc->fpstate + 400);
}

static bool within(uint64_t rip, void (*from)(void), void (*to)(void))
{
	return rip >= (uint64_t)from && rip < (uint64_t)to;
}

/* The end of a path chunk: go on in the next one, with the same instruction. */
static bool path_overflow(struct tr_ctx *c, const struct tr_siginfo *si, struct tr_ucontext *uc)
{
	struct insn in;

	if (si->address < (uint64_t)c->path_end ||
	    si->address >= (uint64_t)c->path_end + RAW_PAGE || !tr_in_cache(uc->rip))
		return false;
	insn_decode(&in, (const uint8_t *)uc->rip, 15, uc->rip);
	uint64_t *base = general(uc, insn_rm(&in));

	c->ptr = *base;
	tr_profile_end(c, c->ptr);
	tr_path_room(c, *base, 16);
	tr_profile_begin(c, uc->rip);
	*base = c->ptr;
	*xmm15(uc) = c->ptr;
	return true;
}

/* The application's state is complete: leave the cache and deliver. */
static void redirect(struct tr_ctx *c, struct tr_ucontext *uc)
{
	uc->rip = (uint64_t)tr_from_handler;
	uc->rsp = c->stack;
	uc->eflags &= ~(EFLAGS_TF | EFLAGS_DF);
	c->stepping = false;
	c->pending = 1;
}

static void at_boundary(struct tr_ctx *c, struct tr_ucontext *uc, const struct tr_frag *f)
{
	sig_registers_from_frame(c, uc);
	c->rflags = uc->eflags & ~EFLAGS_TF;
	c->pc = f->pc;
	c->ptr = *xmm15(uc);
	tr_unclobber(c, c->ptr, c->regs);
	redirect(c, uc);
}

#define MANY_ROUNDS 256u /* of a string instruction: with the trap flag set each is a step */

static bool takes_long(const struct insn *in, const struct tr_ucontext *uc)
{
	bool string = (in->op & 0xfc) == 0xa4 || (in->op >= 0xaa && in->op <= 0xaf);

	return string && !in->map && !in->vex && in->prefixes & (INSN_PF2 | INSN_PF3) && uc->rcx > MANY_ROUNDS;
}

/* Nothing is to be delivered: a checkpoint is due, for which one may be asked again. */
static bool may_go_on(const struct tr_ctx *c)
{
	for (unsigned i = 0; i < TR_QUEUE; i++)
		if (c->queue[i].signo)
			return false;
	return rec_epoch && !c->fault.signo && !c->poked && !tr.stopping && !tr.detached;
}

static void step(struct tr_ctx *c, struct tr_ucontext *uc)
{
	struct insn in;

	insn_decode(&in, (const uint8_t *)uc->rip, 15, uc->rip);
	c->stepping = !takes_long(&in, uc) || !may_go_on(c);
	if (!c->stepping) {
		uc->eflags &= ~EFLAGS_TF;
		c->pending = 0;
		c->step_pushf = false;
		return;
	}
	uc->eflags |= EFLAGS_TF;
	c->step_pushf = in.flags & INSN_PUSHF;
}

/* Somewhere in or near the cache with a signal noted: on to the next boundary. */
static void approach(struct tr_ctx *c, struct tr_ucontext *uc)
{
	struct tr_frag *f = tr_frag_of(uc->rip);

	if (f && uc->rip == (uint64_t)f->body)
		at_boundary(c, uc, f);
	else if (tr_in_cache(uc->rip) || within(uc->rip, tr_shard_spin, tr_shard_spin_end) ||
		 within(uc->rip, tr_resume_inside, tr_resume_inside_end))
		step(c, uc);
	else {
		c->stepping = false; /* on its way into the dispatcher, which will see it */
		uc->eflags &= ~EFLAGS_TF;
	}
}

static void stepped(struct tr_ctx *c, struct tr_ucontext *uc)
{
	if (c->step_pushf) /* it pushed our trap flag */
		*(uint64_t *)uc->rsp &= ~EFLAGS_TF;
	c->step_pushf = false;
	approach(c, uc);
}

static bool enqueue(struct tr_ctx *c, const struct tr_siginfo *si)
{
	for (unsigned i = 0; i < TR_QUEUE; i++)
		if (!c->queue[i].signo) {
			c->queue[i] = *si;
			return true;
		}
	return false;
}

/* Something is to be done at the next boundary. */
static void soon(struct tr_ctx *c, struct tr_ucontext *uc)
{
	c->pending = 1;
	if (c->stepping)
		return;
	if (within(uc->rip, tr_resume, tr_resume_end))
		uc->rip = (uint64_t)tr_resume;
	else if (within(uc->rip, tr_quick_leave, tr_quick_leave_end))
		uc->rip = (uint64_t)tr_quick_leave;
	else if (within(uc->rip, tr_event_leave, tr_event_leave_end))
		uc->rip = (uint64_t)tr_event_leave;
	else if (within(uc->rip, tr_call_check, tr_call_insn) ||
		 uc->rip == (uint64_t)tr_call_insn)
		uc->rip = (uint64_t)tr_call_abort;
	else
		approach(c, uc);
}

/* What was passed on is what it was when it was sent. */
static struct tr_siginfo as_sent(struct tr_ctx *c, const struct tr_siginfo *si)
{
	struct tr_siginfo sent = *si;

	if (si->code != SI_TKILL_ || __atomic_load_n(&c->passing, __ATOMIC_ACQUIRE) != si->signo)
		return sent;
	sent = c->passed;
	__atomic_store_n(&c->passing, 0, __ATOMIC_RELEASE);
	return sent;
}

static void asynchronous(struct tr_ctx *c, const struct tr_siginfo *arrived, struct tr_ucontext *uc)
{
	struct tr_siginfo sent = as_sent(c, arrived);

	if (tr.stopping) { /* stop.c: nothing is delivered any more */
		soon(c, uc);
		return;
	}
	if (!enqueue(c, &sent))
		return; /* cannot happen: the others are blocked while one waits */
	uc->mask |= ~SIG_FAULTS;
	soon(c, uc);
}

#define TRAP_OVERFLOW 4 /* the processor's number */

/* A fault of the application's own. False: it is ours. */
static bool synchronous(struct tr_ctx *c, const struct tr_siginfo *si, struct tr_ucontext *uc)
{
	bool behind = si->signo == SIGTRAP || uc->trap == TRAP_OVERFLOW; /* rip stands after int3, int 3 and int 4 */
	uint64_t regs[16], rip = uc->rip - behind;
	struct tr_app_state state;
	struct tr_frag *f = tr_frag_of(rip);

	for (int i = 0; i < 16; i++)
		regs[i] = *general(uc, i);
	if (!f || !tr_fault_state(c, f, rip, regs, uc->eflags & ~EFLAGS_TF, &state))
		return false;
	memcpy(c->regs, state.regs, sizeof c->regs);
	c->rflags = state.regs[TRC_RFLAGS];
	c->pc = behind ? state.next : state.regs[TRC_RIP];
	if (state.xmm15_is_app) {
		memcpy(c->vec15, xmm15(uc), 16);
		if (tr_machine.avx && !state.xmm15_low)
			memcpy(c->vec15 + 16,
			       (uint8_t *)uc->fpstate + tr_machine.avx_offset + 240, 16);
		if (tr_machine.avx512 && !state.xmm15_low)
			memcpy(c->vec15 + 32,
			       (uint8_t *)uc->fpstate + tr_machine.zmm_offset + 480, 32);
	} else {
		c->ptr = *xmm15(uc);
	}
	tr_unclobber(c, c->ptr, c->regs);
	c->fault = *si;
	c->fault_fragment = f->id;
	if (si->signo != SIGSEGV && si->signo != SIGBUS && si->address == uc->rip)
		c->fault.address = c->pc; /* the instruction, as the program knows it */
	c->fault_error = uc->error;
	c->fault_trap = uc->trap;
	c->fault_cr2 = uc->cr2;
	redirect(c, uc);
	return true;
}

/* A thread that has left translated code: the program's handler, as far as it goes. */
static void native_signal(struct tr_ctx *c, struct tr_siginfo *si, struct tr_ucontext *uc)
{
	struct tr_sigaction *a = &tr_shared_signals.act[si->signo];

	if (a->handler > 1) {
		((void (*)(int, void *, void *))a->handler)(si->signo, si, uc);
		return;
	}
	if (a->handler == 1 && si->code <= 0)
		return;
	if (c) {
		sig_registers_from_frame(c, uc);
		c->rflags = uc->eflags;
		c->pc = uc->rip;
		tr_fatal(c, si);
	}
	struct tr_sigaction dfl = { 0 };

	raw(SYS_rt_sigaction, si->signo, &dfl, 0, 8);
}

static void broken(const struct tr_siginfo *si, const struct tr_ucontext *uc)
{
	TEXT(t, 200);
	struct tr_sigaction dfl = { 0 };

	text_str(&t, "internal error: signal ");
	text_num(&t, si->signo);
	text_str(&t, " in the recorder at ");
	text_hex(&t, uc->rip);
	text_str(&t, " address ");
	text_hex(&t, si->address);
	text_str(&t, " base ");
	text_hex(&t, (uint64_t)tr_broken_base);
	shim_say(0, t.s);
	raw(SYS_rt_sigaction, si->signo, &dfl, 0, 8);
}

static struct tr_ctx *whose(void)
{
	if (!tr.detached)
		return tr_self();
	uint32_t tid = (uint32_t)raw(SYS_gettid);

	for (struct tr_ctx *c = tr.contexts; c; c = c->next)
		if (c->alive && c->thread && c->thread->tid == tid)
			return c;
	return NULL;
}

static void handler(int sig, struct tr_siginfo *si, struct tr_ucontext *uc)
{
	struct tr_ctx *c = whose();
	bool fault = (SIG_FAULTS & SIG_BIT(sig)) && si->code > 0;

	if (sig == SIGSEGV && si->code == TR_POKE) { /* stop.c: it is to leave */
		if (c && !c->native) {
			c->poked = true;
			soon(c, uc);
		}
		return;
	}
	if ((sig == SIGSEGV && si->code == TR_SAVE) || (sig == (int)shim_opt.on_signal && !fault)) {
		if (c && !c->native) {
			tr_epoch_save(c);
			soon(c, uc);
		}
		return;
	}
	if (sig == SIGSEGV && si->code == TR_PARK) {
		if (c && !c->native)
			soon(c, uc);
		return;
	}
	if (!c || c->native) {
		native_signal(c, si, uc);
		return;
	}
	if (!fault) {
		asynchronous(c, si, uc);
		return;
	}
	if (sig == SIGTRAP && c->stepping && si->code != 0x80) {
		stepped(c, uc);
		return;
	}
	if (within(uc->rip, tr_copy_begin, tr_copy_end)) {
		uc->rip = (uint64_t)tr_copy_fault;
		return;
	}
	if (sig == SIGSEGV && path_overflow(c, si, uc)) {
		if (c->pending) /* a checkpoint is due */
			soon(c, uc);
		return;
	}
	if (!synchronous(c, si, uc))
		broken(si, uc);
}

void tr_broken_base(void)
{
}

void sig_set_kernel_mask(uint64_t app_mask)
{
	uint64_t m = app_mask & ~SIG_FAULTS;

	raw(SYS_rt_sigprocmask, SIG_SETMASK, &m, 0, 8);
}

void sig_install(struct tr_ctx *c, int sig)
{
	const struct tr_sigaction *a = &c->signals->act[sig];
	bool fault = SIG_FAULTS & SIG_BIT(sig), fatal = !(SIG_HARMLESS & SIG_BIT(sig));
	struct tr_sigaction k = *a;

	if (a->handler > 1 || fault || (fatal && a->handler == 0) || sig == (int)shim_opt.on_signal) {
		k.handler = (uint64_t)handler;
		k.flags = SA_SIGINFO | SA_ONSTACK | 0x04000000 /* SA_RESTORER */ |
			  (a->flags & (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_RESTART));
		k.restorer = (uint64_t)tr_restorer;
		k.mask = ~SIG_FAULTS;
	}
	raw(SYS_rt_sigaction, sig, &k, 0, 8);
}

void sig_show_kernel(struct tr_ctx *c)
{
	struct tr_siginfo si;

	for (int sig = 1; sig <= TR_NSIG; sig++)
		if ((SIG_FAULTS & SIG_BIT(sig)) && c->signals->act[sig].handler == 1)
			raw(SYS_rt_sigaction, sig, &c->signals->act[sig], 0, 8);
	raw(SYS_rt_sigprocmask, SIG_SETMASK, &c->sigmask, 0, 8);
	while (sig_take_held(c, c->sigmask, &si))
		raw(SYS_rt_tgsigqueueinfo, raw(SYS_getpid), raw(SYS_gettid), si.signo, &si);
}

void sig_hide_from_kernel(struct tr_ctx *c)
{
	uint64_t open = c->pending ? ~SIG_FAULTS : c->sigmask & ~SIG_FAULTS;

	for (int sig = 1; sig <= TR_NSIG; sig++)
		if ((SIG_FAULTS & SIG_BIT(sig)) && c->signals->act[sig].handler == 1)
			sig_install(c, sig);
	raw(SYS_rt_sigprocmask, SIG_SETMASK, &open, 0, 8);
}

void sig_restore_native(struct tr_ctx *c)
{
	for (int sig = 1; sig <= TR_NSIG; sig++)
		if (c->signals->act[sig].handler > 1 || !(SIG_HARMLESS & SIG_BIT(sig)))
			raw(SYS_rt_sigaction, sig, &c->signals->act[sig], 0, 8);
}

struct tr_signal_table tr_shared_signals;

bool tr_stands_in(int sig, uint64_t now)
{
	return now == (uint64_t)handler && tr_shared_signals.act[sig].handler <= 1;
}

void tr_signals_init(struct tr_ctx *c)
{
	c->signals = &tr_shared_signals;
	for (int sig = 1; sig <= TR_NSIG; sig++) {
		raw(SYS_rt_sigaction, sig, 0, &c->signals->act[sig], 8);
		if (c->signals->act[sig].handler > 1 || (SIG_FATAL & SIG_BIT(sig)) || sig == (int)shim_opt.on_signal)
			sig_install(c, sig);
	}
	raw(SYS_rt_sigprocmask, SIG_SETMASK, 0, &c->sigmask, 8);
	sig_set_kernel_mask(c->sigmask);
}
