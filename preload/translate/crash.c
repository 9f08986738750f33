/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Crashes that the program handles itself. The failure is written before its handler runs: nobody knows whether that ever comes
 * to an end. Then the handler decides. Where the process ends inside it the failure stands, whatever the
 * handler called to end it; where the program goes on, the handler having put things right or having been left by
 * longjmp(), it is withdrawn.
 */
#include "preload/translate/signal.h"

#include <signal.h>

/* How far below its frame, on the stack that was interrupted, a handler is believed to reach (bytes). */
#define HANDLER_STACK (8ul << 20)
/* So many are written beforehand. Programs that crash and recover as a matter of course would fill the trace. */
#define MOST_WRITTEN 16

static unsigned written;
static struct tr_ctx *writer; /* whose crash is the one in the trace; NULL: nobody's */

static bool is_crash(int signo)
{
	return (SIG_FAULTS | SIG_BIT(SIGABRT) | SIG_BIT(SIGSYS)) & SIG_BIT(signo);
}

static bool is_inside(const struct tr_ctx *c)
{
	uint64_t sp = c->regs[REG_RSP_];

	return c->crash.frame && sp >= c->crash.low && sp <= c->crash.frame + 8;
}

/* The handler has returned, and nothing has been executed since. */
static bool is_again(const struct tr_ctx *c, int signo)
{
	const struct tr_crash *k = &c->crash;

	return k->returned == tr_pos(c) + 1 && k->fault.signal == signo && k->regs[TRC_RIP] == c->pc &&
	       k->regs[TRC_RSP] == c->regs[REG_RSP_];
}

void crash_forget(struct tr_ctx *c)
{
	c->crash = (struct tr_crash){ 0 };
	writer = NULL;
	written = 0;
}

void crash_over(struct tr_ctx *c)
{
	c->crash.frame = 0;
	if (c->crash.written && __atomic_load_n(&writer, __ATOMIC_ACQUIRE) == c) {
		shim_failure_settle(false);
		__atomic_store_n(&writer, NULL, __ATOMIC_RELEASE);
	}
	c->crash.written = false;
}

static void write_crash(struct tr_ctx *c)
{
	struct tr_ctx *none = NULL;

	if (__atomic_load_n(&written, __ATOMIC_RELAXED) >= MOST_WRITTEN ||
	    !__atomic_compare_exchange_n(&writer, &none, c, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	__atomic_fetch_add(&written, 1, __ATOMIC_RELAXED);
	c->crash.written = true;
	shim_failure_handled(c->thread, &c->crash.fault, c->crash.regs);
}

void crash_begin(struct tr_ctx *c, const struct tr_siginfo *si, uint64_t frame, bool alternate)
{
	struct tr_crash *k = &c->crash;

	if (!is_crash(si->signo) || c->vfork_child || c->own_process)
		return;
	if (k->frame && (k->returned ? is_again(c, si->signo) : is_inside(c))) {
		k->returned = 0;
		return; /* of crashes one inside the other the first counts */
	}
	crash_over(c);
	*k = (struct tr_crash){ .frame = frame, .low = alternate ? c->alt.sp : frame - HANDLER_STACK };
	k->fault = (struct shim_fault){ .signal = si->signo, .code = si->code, .address = si->address,
					.path_pos = tr_pos(c) };
	memcpy(k->regs, c->regs, sizeof c->regs);
	k->regs[TRC_RIP] = c->pc;
	k->regs[TRC_RFLAGS] = c->rflags;
	write_crash(c);
}

void crash_look(struct tr_ctx *c)
{
	if (c->crash.frame && (c->crash.returned || !is_inside(c)))
		crash_over(c);
}

void crash_returned(struct tr_ctx *c, uint64_t pc, uint64_t sp)
{
	struct tr_crash *k = &c->crash;

	if (!k->frame || c->regs[REG_RSP_] < k->frame + 8)
		return; /* of another signal's handler, inside this one */
	if (c->regs[REG_RSP_] == k->frame + 8 && pc == k->regs[TRC_RIP] && sp == k->regs[TRC_RSP])
		k->returned = tr_pos(c) + 1;
	else
		crash_over(c);
}

/* It is the failure, whatever happened since. */
static void stand(struct tr_ctx *c)
{
	shim_failure_settle(c->crash.written);
	if (!c->crash.written)
		shim_failure_signal(c->thread, &c->crash.fault, c->crash.regs);
	c->crash.frame = 0;
}

void crash_fatal(struct tr_ctx *c, const struct tr_siginfo *si)
{
	if (!c->crash.frame)
		return;
	if (c->crash.returned ? is_again(c, si->signo) : is_inside(c))
		stand(c);
	else
		crash_over(c);
}

static bool is_ending(int signo)
{
	return signo > 0 && signo <= TR_NSIG && SIG_ENDINGS & SIG_BIT(signo);
}

/* The thread that ends the process is in the handler. A signal that was only sent may have asked for just that. */
static bool own_stands(const struct tr_crash *k, int kind, int status)
{
	return kind || status || k->fault.code > 0 || k->fault.signal == SIGABRT;
}

/* Another thread ends it. */
static bool others_stands(int kind, int status)
{
	return kind == 1 ? !is_ending(status) : kind == 0 && status;
}

void tr_crash_end(const struct shim_thread *t, int kind, int status)
{
	struct tr_ctx *c = t ? t->translator : NULL;

	if (c)
		crash_look(c);
	if (c && c->crash.frame && own_stands(&c->crash, kind, status))
		stand(c);
	shim_failure_settle(others_stands(kind, status));
}
