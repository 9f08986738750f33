/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults in generated code: see exec_guard.h. */
#include "analyzer/engine/exec_guard.h"

#include <signal.h>
#include <ucontext.h>

static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };
#define NSIGNALS (sizeof signals / sizeof signals[0])

static struct sigaction before[NSIGNALS];
static struct exec_guard *innermost;

/* The kernel has reset the direction flag and the floating-point state for us. */
static void on_fault(int signal, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;

	(void)info;
	if (innermost && exec_space_holds((uintptr_t)uc->uc_mcontext.gregs[REG_RIP])) {
		innermost->signal = signal;
		innermost->mxcsr = uc->uc_mcontext.fpregs ? uc->uc_mcontext.fpregs->mxcsr : 0x1f80;
		longjmp(innermost->env, 1);
	}
	/* It comes again, to whom it belongs. */
	for (size_t i = 0; i < NSIGNALS; i++)
		if (signals[i] == signal)
			sigaction(signal, &before[i], NULL);
}

static void install(void)
{
	struct sigaction act = { .sa_sigaction = on_fault,
				 .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };

	sigemptyset(&act.sa_mask);
	for (size_t i = 0; i < NSIGNALS; i++)
		sigaction(signals[i], &act, &before[i]);
}

void exec_guard_enter(struct exec_guard *g)
{
	static bool installed;

	if (!installed)
		install();
	installed = true;
	g->signal = 0;
	g->outer = innermost;
	innermost = g;
}

void exec_guard_leave(struct exec_guard *g)
{
	innermost = g->outer;
}

void exec_guard_pass(const struct exec_guard *g)
{
	innermost->signal = g->signal;
	innermost->mxcsr = g->mxcsr;
	longjmp(innermost->env, 1);
}
