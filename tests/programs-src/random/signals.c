/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals to ourselves in every way there is, masks, stacks, jumps out of handlers, faults. */
#include "random.h"

#include <fenv.h>
#include <setjmp.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

static const int signals[] = {SIGUSR1, SIGUSR2, SIGURG, SIGTERM, 40, 41, 63};
#define SIGNALS 7
static char stacks[2][32768];
static sigjmp_buf fault, leave;
static volatile int leaving, depth;
static struct {
	int signo, code, value;
	bool on_stack;
} noted[256];
static volatile unsigned nnoted;

static void faulted(int sig, siginfo_t *info, void *context)
{
	(void)context;
	siglongjmp(fault, sig * 1000 + info->si_code);
}

/* Handlers note; what they noted is printed later. */
static void handler(int sig, siginfo_t *info, void *context)
{
	char here;
	ucontext_t *u = context;

	if (nnoted < 256) {
		noted[nnoted].signo = sig;
		noted[nnoted].code = info->si_code;
		noted[nnoted].value = info->si_code == SI_QUEUE ? info->si_value.sival_int : 0;
		noted[nnoted++].on_stack = &here >= stacks[0] && &here < stacks[2];
	}
	if (sig == SIGUSR2 && depth++ < 2)
		raise(SIGUSR1);
	if (sig == 63)
		sigaddset(&u->uc_sigmask, SIGURG);
	if (leaving) {
		leaving = 0;
		siglongjmp(leave, sig);
	}
}

static void plain_handler(int sig)
{
	if (nnoted < 256) {
		noted[nnoted].signo = sig;
		noted[nnoted].code = noted[nnoted].value = 0;
		noted[nnoted++].on_stack = false;
	}
}

static void tell(void)
{
	for (unsigned i = 0; i < nnoted; i++)
		say("signal %d code %d value %d %d", noted[i].signo, noted[i].code, noted[i].value,
		    noted[i].on_stack);
	nnoted = 0;
	depth = 0;
}

void quiet_signals(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, old);
}

void signals_begin(void)
{
	struct sigaction a = {.sa_sigaction = faulted, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	sigaction(SIGSEGV, &a, NULL);
	sigaction(SIGBUS, &a, NULL);
	sigaction(SIGFPE, &a, NULL);
	sigaction(SIGILL, &a, NULL);
	a.sa_sigaction = handler;
	for (int i = 0; i < SIGNALS; i++)
		sigaction(signals[i], &a, NULL);
}

void guarded(const char *what, volatile unsigned char *at, bool write)
{
	int got = sigsetjmp(fault, 1);

	if (got)
		say("%s: signal %d code %d", what, got / 1000, got % 1000);
	else if (write)
		say("%s: %d", what, (int)(*at = (unsigned char)rnd(256)));
	else
		say("%s: %u", what, checksum((const void *)at, 48));
}

static void send(int sig)
{
	static int value;

	switch (rnd(4)) {
	case 0:
		DO(raise(sig));
		break;
	case 1:
		DO(kill(getpid(), sig));
		break;
	case 2:
		DO(sigqueue(getpid(), sig, (union sigval){.sival_int = ++value}));
		break;
	case 3:
		DO(syscall(SYS_tgkill, getpid(), gettid(), sig));
		break;
	}
}

static void new_action(int sig)
{
	static const int flags[] = {
	    0, SA_RESTART, SA_NODEFER, SA_RESETHAND, SA_ONSTACK, SA_RESTART | SA_ONSTACK};
	struct sigaction a, old;

	memset(&a, 0, sizeof a);
	a.sa_flags = flags[rnd(6)];
	if (chance(80)) {
		a.sa_flags |= SA_SIGINFO;
		a.sa_sigaction = handler;
	} else {
		a.sa_handler = chance(50) ? plain_handler : SIG_IGN;
	}
	for (int i = 0; i < SIGNALS; i++)
		if (chance(25))
			sigaddset(&a.sa_mask, signals[i]);
	DO(sigaction(sig, &a, &old));
	say("%x %d", old.sa_flags, sigismember(&old.sa_mask, SIGUSR1));
}

static void timer(void)
{
	struct itimerval t = {{0, 0}, {0, 100 + rnd(500)}};
	sigset_t old, wait;
	struct sigaction a = {.sa_handler = plain_handler}, was;

	sigaction(SIGALRM, &a, &was);
	quiet_signals(&old);
	sigfillset(&wait);
	sigdelset(&wait, SIGALRM);
	DO(setitimer(ITIMER_REAL, &t, NULL));
	DO(sigsuspend(&wait));
	sigaction(SIGALRM, &was, NULL);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

void op_signal(void)
{
	int sig = signals[rnd(SIGNALS)];
	struct sigaction now;

	switch (rnd(8)) {
	case 0:
	case 1:
		new_action(sig);
		break;
	case 7:
		timer();
		break;
	default:
		sigaction(sig, NULL, &now);
		if (now.sa_handler != SIG_DFL) /* once reset, it kills */
			send(sig);
		else
			new_action(sig);
	}
	tell();
}

/* What is ignored never ends a wait. */
static bool one_will_come(const sigset_t *pending)
{
	struct sigaction a;

	for (int i = 0; i < SIGNALS; i++)
		if (sigismember(pending, signals[i]) && !sigaction(signals[i], NULL, &a) &&
		    a.sa_handler != SIG_IGN && a.sa_handler != SIG_DFL)
			return true;
	return false;
}

void op_mask(void)
{
	sigset_t set, old, pending;
	siginfo_t info;
	stack_t st = {.ss_sp = stacks[rnd(2)],
		      .ss_size = chance(90) ? sizeof stacks[0] : 100,
		      .ss_flags = 0},
		was;

	sigemptyset(&set);
	for (int i = 0; i < SIGNALS; i++)
		if (chance(40))
			sigaddset(&set, signals[i]);
	switch (rnd(6)) {
	case 0:
	case 1:
		DO(sigprocmask((int)rnd(3), &set, &old));
		say("%d %d", sigismember(&old, SIGUSR1), sigismember(&old, SIGURG));
		break;
	case 2:
		DO(sigpending(&pending));
		for (int i = 0; i < SIGNALS; i++)
			if (sigismember(&pending, signals[i]))
				say("pending %d", signals[i]);
		break;
	case 3:
		sigprocmask(SIG_BLOCK, &set, &old);
		if (DO(sigtimedwait(&set, &info, &(struct timespec){0, 0})) > 0)
			say("%d %d", info.si_signo, info.si_code);
		sigprocmask(SIG_SETMASK, &old, NULL);
		break;
	case 4:
		memset(&was, 0, sizeof was);
		if (chance(20))
			st.ss_flags = chance(50) ? SS_DISABLE : (int)(1u << 31);
		DO(sigaltstack(&st, &was));
		say("%x %zu", was.ss_flags, was.ss_size);
		break;
	case 5:
		sigpending(&pending);
		if (one_will_come(&pending)) {
			sigemptyset(&set);
			DO(sigsuspend(&set));
		}
		break;
	}
	tell();
}

static ucontext_t back, other;
static char other_stack[65536];

static void elsewhere(void)
{
	say("elsewhere");
	swapcontext(&other, &back);
	say("again");
}

void op_jump(void)
{
	volatile int zero = 0;
	volatile double three = 3;
	volatile int got;

	switch (rnd(5)) {
	case 0:
		got = sigsetjmp(leave, 1);
		if (!got) {
			struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO}, was;
			sigset_t none;

			sigemptyset(&none);
			sigaction(SIGUSR1, &a, &was);
			leaving = 1;
			sigprocmask(SIG_SETMASK, &none, NULL);
			raise(SIGUSR1);
		}
		leaving = 0;
		say("jumped %d", got);
		break;
	case 1:
		got = sigsetjmp(fault, 1);
		say("%d", got ? got : (int)rnd(100) / zero);
		break;
	case 2:
		got = sigsetjmp(fault, 1);
		if (got)
			say("%d", got);
		else
			__asm__ volatile("ud2");
		break;
	case 3:
		fesetround(chance(50) ? FE_UPWARD : FE_DOWNWARD);
		say("%a", 1 / three);
		raise(SIGURG);
		say("%a %d", 2 / three, fegetround());
		fesetround(FE_TONEAREST);
		break;
	case 4:
		getcontext(&other);
		other.uc_stack.ss_sp = other_stack;
		other.uc_stack.ss_size = sizeof other_stack;
		other.uc_link = &back;
		makecontext(&other, elsewhere, 0);
		swapcontext(&back, &other);
		swapcontext(&back, &other);
		break;
	}
	tell();
}
