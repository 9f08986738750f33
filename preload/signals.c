#include "preload/signals.h"

#include "preload/interpose/real.h"
#include "preload/raw.h"
#include "preload/shim.h"

#include <errno.h>
#include <sys/mman.h>
#include <ucontext.h>

#define ALT_STACK (96ul << 10) /* room for a program's handler that runs on it by accident */

/* SIGPIPE is no failure, but the end of a run whose trace is not wanted. */
static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGABRT, SIGPIPE };
#define NFATAL (sizeof fatal / sizeof fatal[0])
#define BIT(sig) (1ull << ((sig) - 1))
/* Those an instruction can raise. SIGABRT is not hidden: abort() unblocks it itself. */
#define SYNCHRONOUS (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) | BIT(SIGSYS) | \
		     BIT(SIGTRAP))

#define SS_AUTODISARM_BIT (1u << 31)

#define SA_RESTORER_ 0x04000000ul
void tr_restorer(void); /* translate/entry.S: rt_sigreturn */

static bool active;
static uint64_t ours;                 /* signals whose handler is ours now */
static struct sigaction view[65] RAW_LARGE;     /* fatal signals: what the program believes */
static uint64_t stripped[65];         /* bits taken out of the masks of its handlers */
static uint32_t dying;

bool signals_active(void)
{
	return active;
}

static bool is_fatal(int sig)
{
	return sig > 0 && sig < 65 && (SYNCHRONOUS | BIT(SIGABRT) | BIT(SIGPIPE)) & BIT(sig);
}

static uint64_t *mask_word(sigset_t *set)
{
	return (uint64_t *)set; /* the kernel's 64 bits come first */
}

struct kernel_action {
	void *handler;
	unsigned long flags, restorer, mask;
};

static void default_action(int sig)
{
	struct kernel_action dfl = { 0 };

	raw(SYS_rt_sigaction, sig, &dfl, NULL, 8);
}

/* The same signal again, with the same siginfo, to this thread. */
static void send_again(int sig, siginfo_t *info)
{
	uint32_t pid = (uint32_t)raw(SYS_getpid), tid = (uint32_t)raw(SYS_gettid);

	if (raw(SYS_rt_tgsigqueueinfo, pid, tid, sig, info))
		raw(SYS_tgkill, pid, tid, sig);
}

static void registers(const ucontext_t *uc, uint64_t regs[TRC_NREGS])
{
	static const uint8_t order[TRC_NREGS] = {
		REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_R8,
		REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP, REG_EFL,
	};

	for (int i = 0; i < TRC_NREGS; i++)
		regs[i] = (uint64_t)uc->uc_mcontext.gregs[order[i]];
}

static void record(int sig, const siginfo_t *info, const ucontext_t *uc)
{
	struct shim_fault f = { sig, info->si_code, 0, 0, 0 };
	uint64_t regs[TRC_NREGS];

	if (info->si_code > 0 && sig != SIGSYS)
		f.address = (uint64_t)info->si_addr;
	registers(uc, regs);
	if (!*shim_here)
		shim_after_fork();
	if (sig != SIGPIPE) {
		if (shim.state == SHIM_DORMANT)
			shim_start_trace();
		shim_failure_signal(shim_self_known(), &f, regs);
	}
	shim_process_end(1, sig);
}

static void handler(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	struct shim_thread *t = shim_self_known();

	if (info->si_code <= 0 && t && t->hidden_mask & BIT(sig)) {
		/* Sent by somebody, and blocked as far as the program knows: make it so. */
		*mask_word(&uc->uc_sigmask) |= BIT(sig);
		if (info->si_code == SI_TKILL)
			send_again(sig, info);
		else /* for any thread: one may wait for it */
			raw(SYS_kill, raw(SYS_getpid), sig);
		return;
	}
	if (!shim_is_other_process() || !*shim_here) {
		/* One death is enough; whoever comes later waits for it. */
		while (__atomic_exchange_n(&dying, 1, __ATOMIC_SEQ_CST) == 1)
			raw(SYS_pause);
		record(sig, info, uc);
	}
	default_action(sig);
	*mask_word(&uc->uc_sigmask) &= ~BIT(sig);
	/* Pending until this handler returns; the registers are then the original ones. */
	send_again(sig, info);
}

static void install(int sig)
{
	/* The kernel's own: a sanitizer's sigaction() warns when it is called before its time. */
	struct kernel_action act = {
		.handler = (void *)handler,
		.flags = SA_SIGINFO | SA_ONSTACK | SA_RESTORER_,
		.restorer = (unsigned long)tr_restorer,
		.mask = ~0ull & ~SYNCHRONOUS,
	};

	if (!raw(SYS_rt_sigaction, sig, &act, NULL, 8))
		ours |= BIT(sig);
}

void signals_start(void)
{
	for (unsigned i = 0; i < NFATAL; i++) {
		struct kernel_action now = { 0 };

		raw(SYS_rt_sigaction, fatal[i], NULL, &now, 8);
		view[fatal[i]].sa_sigaction = now.handler;
		view[fatal[i]].sa_flags = (int)(now.flags & ~(unsigned long)SA_RESTORER_);
		*mask_word(&view[fatal[i]].sa_mask) = now.mask;
		if (view[fatal[i]].sa_handler == SIG_DFL)
			install(fatal[i]);
	}
	active = true;
	/* What was blocked by whoever started us stays blocked only in our eyes. */
	sigset_t none = { { 0 } };

	signals_mask(SIG_BLOCK, &none, NULL);
}

void signals_stop(void)
{
	uint64_t saved;

	rec_lock(&saved);
	active = false;
	for (unsigned i = 0; i < NFATAL; i++)
		if (ours & BIT(fatal[i]))
			default_action(fatal[i]);
	for (int sig = 1; sig < 65; sig++) {
		struct sigaction act;

		if (!stripped[sig] || REAL(sigaction)(sig, NULL, &act))
			continue;
		*mask_word(&act.sa_mask) |= stripped[sig];
		REAL(sigaction)(sig, &act, NULL);
	}
	ours = 0;
	rec_unlock(&saved);
	signals_exec(true);
}

/* ---- alternate stacks ---- */

static bool set_ours(struct shim_thread *t)
{
	stack_t ss = { t->alt_stack, 0, ALT_STACK };

	return !raw(SYS_sigaltstack, &ss, NULL);
}

void signals_thread_start(struct shim_thread *t)
{
	stack_t now = { 0 };

	if (!active)
		return;
	raw(SYS_sigaltstack, NULL, &now);
	if (!(now.ss_flags & SS_DISABLE))
		return; /* the program was first */
	if (!t->alt_stack) {
		char *area = raw_map(ALT_STACK + RAW_PAGE, PROT_NONE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (!area)
			return;
		raw(SYS_mprotect, area + RAW_PAGE, ALT_STACK, PROT_READ | PROT_WRITE);
		t->alt_stack = area + RAW_PAGE;
	}
	set_ours(t);
}

/* The stack stays with the slot: the next thread there uses it. */
void signals_thread_end(struct shim_thread *t)
{
	(void)t;
}

int signals_altstack(const stack_t *ss, stack_t *old)
{
	struct shim_thread *t = shim_self_known();
	stack_t before = { 0 };

	raw(SYS_sigaltstack, NULL, &before);
	/* The kernel writes *old: a bad pointer is its to refuse. */
	long err = raw(SYS_sigaltstack, ss, old);
	bool was_ours = t && t->alt_stack && before.ss_sp == t->alt_stack;

	if (!err && old && was_ours) {
		old->ss_sp = NULL;
		old->ss_size = 0;
		old->ss_flags = (int)(SS_DISABLE | t->alt_flags);
	}
	/* SS_AUTODISARM may come with it; the kernel shows it as long as nothing else is set. */
	if (ss && (!err || err == -EFAULT) && t && t->alt_stack) {
		stack_t now = { 0 };

		raw(SYS_sigaltstack, NULL, &now);
		if (now.ss_flags & SS_DISABLE) {
			t->alt_flags = (uint32_t)now.ss_flags & SS_AUTODISARM_BIT;
			set_ours(t);
		}
	}
	return (int)-err;
}

void signals_exec(bool begin)
{
	struct shim_thread *t = shim_self_known();

	if (t && t->hidden_mask)
		raw(SYS_rt_sigprocmask, begin ? SIG_BLOCK : SIG_UNBLOCK, &t->hidden_mask, NULL, 8);
}

/* ---- the program's view ---- */

static int set_fatal(int sig, const struct sigaction *act)
{
	if (act->sa_handler == SIG_DFL) {
		if (!(ours & BIT(sig)))
			install(sig);
	} else {
		ours &= ~BIT(sig);
		if (REAL(sigaction)(sig, act, NULL))
			return EINVAL;
	}
	view[sig] = *act;
	return 0;
}

/* Handlers of other signals run with the fault signals unblocked, see signals.h. */
static int set_other(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction mine;
	uint64_t before = stripped[sig], hide = 0;

	if (act) {
		mine = *act;
		hide = *mask_word(&mine.sa_mask) & ours & SYNCHRONOUS;
		*mask_word(&mine.sa_mask) &= ~hide;
	}
	if (REAL(sigaction)(sig, act ? &mine : NULL, old))
		return EINVAL;
	if (act)
		stripped[sig] = hide;
	if (old)
		*mask_word(&old->sa_mask) |= before;
	return 0;
}

int signals_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	uint64_t saved;
	int err = 0;

	if (sig <= 0 || sig >= 65)
		return EINVAL;
	rec_lock(&saved);
	if (!is_fatal(sig)) {
		err = set_other(sig, act, old);
	} else {
		struct sigaction before = view[sig];

		if (act)
			err = set_fatal(sig, act);
		if (old && !err)
			*old = before;
	}
	rec_unlock(&saved);
	return err;
}

sighandler_t signals_after_signal(int sig, sighandler_t prev)
{
	struct sigaction now = { 0 };
	uint64_t saved;

	if (!is_fatal(sig) || prev == SIG_ERR)
		return prev;
	rec_lock(&saved);
	REAL(sigaction)(sig, NULL, &now);
	if (now.sa_sigaction != handler) {
		ours &= ~BIT(sig);
		view[sig] = now;
	}
	if (now.sa_handler == SIG_DFL)
		install(sig);
	rec_unlock(&saved);
	return (void *)prev == (void *)handler ? SIG_DFL : prev;
}

int signals_mask(int how, const sigset_t *set, sigset_t *old)
{
	struct shim_thread *t = shim_self_known();
	uint64_t real = set ? *(const uint64_t *)set : 0, hide = 0, before = 0;
	uint64_t hidden = t ? t->hidden_mask : 0, after = hidden;

	if (set && t && how != SIG_UNBLOCK) {
		hide = real & ours & SYNCHRONOUS;
		real &= ~hide;
		after = how == SIG_BLOCK ? hidden | hide : hide;
	} else if (set) {
		after = hidden & ~real;
	}
	/* libc keeps its own two signals out of reach, and so do we. */
	if (set && how != SIG_UNBLOCK)
		real &= ~(3ull << 31);
	long err = raw(SYS_rt_sigprocmask, how, set ? &real : NULL, &before, 8);

	if (err)
		return (int)-err;
	if (t)
		t->hidden_mask = after;
	if (old) {
		memset(old, 0, sizeof *old);
		*mask_word(old) = before | hidden;
	}
	return 0;
}
