/*
 * Delivery: the application's handler gets a frame built by us on its own
 * stack, in the kernel's layout, with application addresses only.
 */
#include "preload/translate/epoch.h"
#include "preload/translate/signal.h"

#include <signal.h>

void sig_registers_to_frame(struct tr_ucontext *uc, const struct tr_ctx *c)
{
	const uint64_t *r = c->regs;

	uc->rax = r[0], uc->rcx = r[1], uc->rdx = r[2], uc->rbx = r[3];
	uc->rsp = r[4], uc->rbp = r[5], uc->rsi = r[6], uc->rdi = r[7];
	uc->r8 = r[8], uc->r9 = r[9], uc->r10 = r[10], uc->r11 = r[11];
	uc->r12 = r[12], uc->r13 = r[13], uc->r14 = r[14], uc->r15 = r[15];
	uc->rip = c->pc;
	uc->eflags = c->rflags;
}

void sig_registers_from_frame(struct tr_ctx *c, const struct tr_ucontext *uc)
{
	uint64_t *r = c->regs;

	r[0] = uc->rax, r[1] = uc->rcx, r[2] = uc->rdx, r[3] = uc->rbx;
	r[4] = uc->rsp, r[5] = uc->rbp, r[6] = uc->rsi, r[7] = uc->rdi;
	r[8] = uc->r8, r[9] = uc->r9, r[10] = uc->r10, r[11] = uc->r11;
	r[12] = uc->r12, r[13] = uc->r13, r[14] = uc->r14, r[15] = uc->r15;
}

/* struct _fpx_sw_bytes tells the kernel (and handlers) how much state follows. */
uint32_t sig_fpstate(struct tr_ctx *c, void *area)
{
	uint8_t *a = area;
	uint32_t size = tr_xsave(c, a);

	if (!tr_machine.xcr0)
		return size;
	uint32_t sw[5] = { FP_MAGIC1, size + 4, (uint32_t)tr_machine.xcr0,
			   (uint32_t)(tr_machine.xcr0 >> 32), size };
	uint32_t end = FP_MAGIC2;

	memset(a + FP_SW, 0, 48);
	memcpy(a + FP_SW, sw, sizeof sw);
	memcpy(a + size, &end, 4);
	return size + 4;
}

void sig_load_fpstate(struct tr_ctx *c, uint64_t at)
{
	_Alignas(64) uint8_t a[TR_XSAVE_MAX];
	uint32_t sw[5], size = 512, mxcsr = 0x1f80;
	uint64_t in_use = 0;

	memset(a, 0, sizeof a);
	if (at && tr_copy(sw, (void *)(at + FP_SW), sizeof sw)) {
		in_use = 3;
		if (sw[0] == FP_MAGIC1 && sw[4] <= tr_machine.xsave_size && sw[4] >= 576) {
			size = sw[4];
			tr_copy(&in_use, (void *)(at + 512), 8);
			in_use &= tr_machine.xcr0 & ((uint64_t)sw[3] << 32 | sw[2]);
		}
		if (!tr_copy(a, (void *)at, size))
			memset(a, 0, sizeof a), in_use = 0;
		memcpy(&mxcsr, a + 24, 4);
	}
	mxcsr = in_use ? mxcsr & 0xffff : 0x1f80;
	memcpy(a + 24, &mxcsr, 4);
	memset(c->vec15, 0, sizeof c->vec15);
	if (in_use & 2)
		memcpy(c->vec15, a + 400, 16);
	if (in_use & 4)
		memcpy(c->vec15 + 16, a + tr_machine.avx_offset + 240, 16);
	if (in_use & 64 && tr_machine.avx512)
		memcpy(c->vec15 + 32, a + tr_machine.zmm_offset + 480, 32);
	if (!tr_machine.xcr0) {
		__asm__ volatile("fxrstor64 %0" : : "m"(a));
		return;
	}
	memset(a + FP_SW, 0, 48);
	memset(a + 512, 0, 64);
	memcpy(a + 512, &in_use, 8);
	uint32_t lo = (uint32_t)tr_machine.xcr0, hi = (uint32_t)(tr_machine.xcr0 >> 32);

	__asm__ volatile("xrstor64 %0" : : "m"(a), "a"(lo), "d"(hi) : "memory");
}

/*
 * What a handler begins with, as the kernel has it: the frame holds the interrupted state, the processor
 * the one after FNINIT, with MXCSR at its default and every vector register zero. Protection keys are a matter of
 * memory, not of arithmetic: these get the kernel's default.
 */
#define XCR0_PKRU (1ull << 9)
#define PKRU_DEFAULT 0x55555554u
static void fresh_fpstate(struct tr_ctx *c)
{
	_Alignas(64) uint8_t a[576];
	const uint16_t control = 0x37f;
	const uint32_t mxcsr = 0x1f80;
	uint64_t parts = tr_machine.xcr0 & ~XCR0_PKRU;

	memset(a, 0, sizeof a);
	memcpy(a, &control, sizeof control);
	memcpy(a + 24, &mxcsr, sizeof mxcsr);
	memset(c->vec15, 0, sizeof c->vec15);
	if (!tr_machine.xcr0) {
		__asm__ volatile("fxrstor64 %0" : : "m"(a));
		return;
	}
	__asm__ volatile("xrstor64 %0" : : "m"(a), "a"((uint32_t)parts), "d"((uint32_t)(parts >> 32)) : "memory");
	if (tr_machine.xcr0 & XCR0_PKRU)
		__asm__ volatile(".byte 0x0f, 0x01, 0xef" /* wrpkru */ : : "a"(PKRU_DEFAULT), "c"(0), "d"(0) : "memory");
}

static bool within_alternate(const struct tr_ctx *c, uint64_t sp)
{
	return sp > c->alt.sp && sp - c->alt.sp <= c->alt.size;
}

bool sig_on_alternate(const struct tr_ctx *c, uint64_t sp)
{
	return !((uint32_t)c->alt.flags & SIG_ALT_AUTODISARM) && within_alternate(c, sp);
}

/* *alternate: the frame must lie on the alternate stack, or there is none. */
static uint64_t frame_top(struct tr_ctx *c, const struct tr_sigaction *a, bool *alternate)
{
	uint64_t sp = c->regs[REG_RSP_];

	*alternate = sig_on_alternate(c, sp);
	if ((a->flags & SA_ONSTACK) && c->alt.size && !sig_on_alternate(c, sp - 128)) {
		*alternate = true;
		return c->alt.sp + c->alt.size;
	}
	return sp - 128;
}

static void record(struct tr_ctx *c, int sig, uint64_t interrupted, uint64_t frame,
		   const void *bytes, uint32_t len)
{
	struct rec_stream *s = &c->thread->rec;
	size_t size = sizeof(struct trc_signal) + len;
	struct trc_signal *r = rec_begin(s, size);

	if (!r)
		return;
	r->tsc = raw_tsc();
	r->path_pos = tr_pos(c);
	r->interrupted_pc = interrupted;
	memcpy(r->regs, c->regs, sizeof c->regs);
	r->regs[TRC_RIP] = c->pc;
	r->regs[TRC_RFLAGS] = c->rflags;
	r->frame = frame;
	r->frame_len = len;
	r->fragment = c->fault_fragment;
	c->fault_fragment = 0;
	memcpy(r->bytes, bytes, len);
	r->seq = tr_seq();
	rec_commit(s, r, TRC_SIGNAL, (unsigned)sig, size);
}

static void fill_frame(struct tr_ctx *c, struct tr_frame *f, const struct tr_siginfo *si,
		       const struct tr_sigaction *a, uint64_t fp, bool fault)
{
	memset(f, 0, sizeof *f);
	f->restorer = a->restorer;
	f->info = *si;
	f->uc.flags = tr_machine.xcr0 ? 7 : 6;
	f->uc.stack = c->alt;
	sig_registers_to_frame(&f->uc, c);
	f->uc.segments = 0x002b000000000033ull;
	f->uc.fpstate = fp;
	f->uc.mask = c->sigmask;
	if (fault) {
		f->uc.error = c->fault_error;
		f->uc.trap = c->fault_trap;
		f->uc.cr2 = c->fault_cr2;
	}
}

static void reset_handler(struct tr_ctx *c, int sig);

/* Frame, registers and mask for the handler; false: the stack cannot take it. */
static bool enter_handler(struct tr_ctx *c, const struct tr_siginfo *si, bool fault)
{
	struct tr_sigaction a = c->signals->act[si->signo];
	_Alignas(64) uint8_t image[12288];
	bool alternate;
	uint64_t interrupted = c->pc, top = frame_top(c, &a, &alternate);
	uint64_t fp = (top - tr_machine.xsave_size - 4) & ~63ull;
	uint64_t at = ((fp - sizeof(struct tr_frame)) & ~15ull) - 8;
	struct tr_frame *f = (struct tr_frame *)(image + (at & 63));
	uint32_t gap = (uint32_t)(fp - at);

	fill_frame(c, f, si, &a, fp, fault);
	memset((uint8_t *)f + sizeof *f, 0, gap - sizeof *f);
	uint32_t len = gap + sig_fpstate(c, (uint8_t *)f + gap);

	if ((alternate && !within_alternate(c, at)) || !tr_copy((void *)at, f, len))
		return false;
	crash_begin(c, si, at, alternate);
	fresh_fpstate(c);
	if ((uint32_t)c->alt.flags & SIG_ALT_AUTODISARM)
		c->alt = (struct tr_stack){ .flags = SIG_ALT_DISABLE };
	c->regs[REG_RSP_] = at;
	c->regs[REG_RDI_] = (uint64_t)si->signo;
	c->regs[REG_RSI_] = at + offsetof(struct tr_frame, info);
	c->regs[REG_RDX_] = at + offsetof(struct tr_frame, uc);
	c->regs[REG_RAX_] = 0;
	c->rflags &= ~(EFLAGS_TF | EFLAGS_DF | EFLAGS_RF);
	c->pc = a.handler;
	record(c, si->signo, interrupted, at, f, len);
	uint64_t base = c->has_wait_mask ? c->wait_mask : c->sigmask;

	c->sigmask = base | a.mask;
	if (!(a.flags & SA_NODEFER))
		c->sigmask |= SIG_BIT(si->signo);
	c->sigmask &= ~SIG_UNBLOCKABLE;
	c->has_wait_mask = false;
	if (a.flags & SA_RESETHAND)
		reset_handler(c, si->signo);
	return true;
}

/* The frame of signal `of` did not fit: that is a fault of its own, and may have a handler with a better stack. */
static void overflow(struct tr_ctx *c, int of)
{
	struct tr_siginfo si = { .signo = SIGSEGV, .code = SI_KERNEL };
	bool may = of != SIGSEGV && c->signals->act[SIGSEGV].handler > 1 && !(c->sigmask & SIG_BIT(SIGSEGV));

	c->has_wait_mask = false;
	if (!may || !enter_handler(c, &si, false))
		tr_fatal(c, &si);
}

static void deliver_fault(struct tr_ctx *c)
{
	struct tr_siginfo si = c->fault;

	c->fault.signo = 0;
	if (c->signals->act[si.signo].handler <= 1 || (c->sigmask & SIG_BIT(si.signo)))
		tr_fatal(c, &si);
	if (!enter_handler(c, &si, true))
		overflow(c, si.signo);
}

static void hand_back(const struct tr_siginfo *si)
{
	raw(SYS_rt_tgsigqueueinfo, raw(SYS_getpid), raw(SYS_gettid), si->signo, si);
}

static uint64_t queued_to_threads; /* signals */

void sig_queued_to_thread(int signo)
{
	if (signo > 0 && signo <= 64)
		__atomic_or_fetch(&queued_to_threads, SIG_BIT(signo), __ATOMIC_RELAXED);
}

/* Of what sigqueue() and timers send only the call or the timer says whether it is for a thread. */
static bool is_for_process(const struct tr_siginfo *si)
{
	bool queued = si->code == SI_QUEUE || si->code == SI_TIMER;

	return si->code == SI_USER || si->code == SI_KERNEL ||
	       (queued && !(__atomic_load_n(&queued_to_threads, __ATOMIC_RELAXED) & SIG_BIT(si->signo)));
}

/*
 * A signal the application has blocked since it was noted: back to the kernel,
 * which keeps it pending, now that the mask says so. What was sent to the process is
 * the process's again: this thread may have blocked it because it ends, and would take it along. (A thread's number
 * names its process here, and is the only one for which the kernel believes such a code.)
 */
static void hand_back_blocked(const struct tr_siginfo *si)
{

	if (!is_for_process(si) || raw_failed(raw(SYS_rt_sigqueueinfo, raw(SYS_gettid), si->signo, si)))
		hand_back(si);
}

/* CONT CHLD URG WINCH: without a handler they do nothing. */
#define SIG_IDLE (SIG_BIT(18) | SIG_BIT(17) | SIG_BIT(23) | SIG_BIT(28))

/*
 * The kernel forgets a handler and leaves what is pending; sigaction() discards it where the default is to do nothing. So
 * that is taken, one of the thread's and one of the process's at most, and sent again: blocked signals are kept.
 */
static void reset_handler(struct tr_ctx *c, int sig)
{
	struct tr_siginfo kept[2];
	const uint64_t set = SIG_BIT(sig);
	const int64_t at_once[2] = { 0, 0 };
	unsigned n = 0;

	while (n < 2 && (set & SIG_IDLE) && raw(SYS_rt_sigtimedwait, &set, &kept[n], at_once, sizeof set) == sig)
		n++;
	c->signals->act[sig].handler = 0;
	sig_install(c, sig);
	for (unsigned i = 0; i < n; i++)
		hand_back_blocked(&kept[i]);
}

/* The kernel lets only the first thread tell another what a signal's siginfo was: that goes beside it. */
static bool send_on(struct tr_ctx *to, const struct tr_siginfo *si)
{
	int32_t none = 0;

	if (!__atomic_compare_exchange_n(&to->passing, &none, si->signo, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	to->passed = *si;
	if (!raw(SYS_tgkill, shim.pid, to->thread->tid, si->signo))
		return true;
	__atomic_store_n(&to->passing, 0, __ATOMIC_RELEASE);
	return false;
}

/* One of the faults, sent to the process: it is for who has not blocked it. */
static bool pass_on(const struct tr_ctx *c, const struct tr_siginfo *si)
{
	for (struct tr_ctx *o = tr.contexts; o && is_for_process(si); o = o->next)
		if (o != c && o->alive && o->thread && !(o->sigmask & SIG_BIT(si->signo)) && send_on(o, si))
			return true;
	return false;
}

/* Faults are open underneath, always: what was sent and is blocked waits here. One of each kind. */
static void hold(struct tr_ctx *c, const struct tr_siginfo *si)
{
	struct tr_siginfo *to = NULL;

	for (unsigned i = 0; i < TR_HELD; i++) {
		if (c->held[i].signo == si->signo)
			return;
		if (!c->held[i].signo)
			to = &c->held[i];
	}
	if (to)
		*to = *si;
}

uint64_t sig_held(const struct tr_ctx *c)
{
	uint64_t set = 0;

	for (unsigned i = 0; i < TR_HELD; i++)
		if (c->held[i].signo)
			set |= SIG_BIT(c->held[i].signo);
	return set;
}

bool sig_take_held(struct tr_ctx *c, uint64_t set, struct tr_siginfo *si)
{
	for (unsigned i = 0; i < TR_HELD; i++)
		if (c->held[i].signo && set & SIG_BIT(c->held[i].signo)) {
			*si = c->held[i];
			c->held[i].signo = 0;
			return true;
		}
	return false;
}

void sig_release(struct tr_ctx *c)
{
	struct tr_siginfo si;

	while (sig_take_held(c, ~c->sigmask, &si))
		hand_back(&si);
}

void sig_bequeath(struct tr_ctx *c)
{
	struct tr_siginfo si;

	for (unsigned i = 0; i < TR_QUEUE; i++)
		if (c->queue[i].signo && is_for_process(&c->queue[i]))
			hand_back_blocked(&c->queue[i]);
	while (sig_take_held(c, ~0ull, &si))
		if (is_for_process(&si))
			hand_back_blocked(&si);
}

static void deliver_queued(struct tr_ctx *c, const struct tr_siginfo *si)
{
	const struct tr_sigaction *a = &c->signals->act[si->signo];
	uint64_t blocked = c->has_wait_mask ? c->wait_mask : c->sigmask;

	if (blocked & SIG_BIT(si->signo)) {
		if (SIG_FAULTS & SIG_BIT(si->signo)) {
			if (!pass_on(c, si))
				hold(c, si);
			return;
		}
		sig_set_kernel_mask(c->sigmask);
		hand_back_blocked(si);
		return;
	}
	if (a->handler == 1)
		return;
	if (a->handler == 0) {
		if (!(SIG_HARMLESS & SIG_BIT(si->signo)))
			tr_fatal(c, si);
		sig_set_kernel_mask(c->sigmask);
		hand_back(si); /* reset meanwhile: the kernel knows the default action */
		return;
	}
	if (!enter_handler(c, si, false))
		overflow(c, si->signo);
}

/* On the native stack; c->regs and c->pc are the application's. */
void tr_deliver(struct tr_ctx *c)
{
	if (c->fault.signo)
		deliver_fault(c);
	if (tr.stopping)
		tr_stop_here(c);
	/* Faults are queued like the others when somebody sent them. */
	for (unsigned i = 0; i < TR_QUEUE; i++) {
		struct tr_siginfo si = c->queue[i];

		if (!si.signo)
			continue;
		c->queue[i].signo = 0;
		deliver_queued(c, &si);
	}
	c->has_wait_mask = false;
	c->pending = 0;
	c->nudged = false;
	/* From here on others may come in; they set pending again. */
	sig_set_kernel_mask(c->sigmask);
	if (__builtin_expect(rec_epoch != 0, 0))
		tr_epoch_boundary(c);
	tr_go_on(c);
}

/* Dies as the program would have died, after the failure is on disk. */
void tr_fatal(struct tr_ctx *c, const struct tr_siginfo *si)
{
	struct tr_sigaction dfl = { 0 };
	uint64_t regs[TRC_NREGS], all = ~SIG_FAULTS; /* not all memory that is mapped can be copied */
	struct shim_fault f = { .signal = si->signo, .code = si->code, .address = si->address,
				.path_pos = tr_pos(c) };

	raw(SYS_rt_sigprocmask, SIG_SETMASK, &all, 0, 8);
	memcpy(regs, c->regs, sizeof c->regs);
	regs[TRC_RIP] = c->pc;
	regs[TRC_RFLAGS] = c->rflags;
	if (!c->vfork_child) {
		crash_fatal(c, si);
		if (SIG_FAILURES & SIG_BIT(si->signo))
			shim_failure_signal(c->thread, &f, regs);
		if (shim_opt.final)
			tr_snapshot(TRC_STREAM_FINAL);
		tr_path_close(c);
		shim_process_end(1, si->signo);
	}
	raw(SYS_rt_sigaction, si->signo, &dfl, 0, 8);
	if (raw_failed(raw(SYS_rt_tgsigqueueinfo, raw(SYS_getpid), raw(SYS_gettid), si->signo, si)))
		raw(SYS_tgkill, raw(SYS_getpid), raw(SYS_gettid), si->signo);
	all = ~SIG_BIT(si->signo);
	raw(SYS_rt_sigprocmask, SIG_SETMASK, &all, 0, 8);
	for (;;)
		raw(SYS_exit_group, 128 + si->signo);
}
