/*
 * Option final=1: before the process ends and its memory is written down, the other threads are
 * stopped, each at a boundary, and leave a record of where that is. Memory that changes while it is
 * copied, or that belongs to no place on a path, could not be compared with anything.
 *
 * They are asked by a signal that the program cannot block: one of the faults, sent (signal.c). What a
 * system call that is interrupted by it returns is recorded; the program never sees it.
 */
#include "preload/translate/translate.h"

#include <linux/futex.h>
#include <time.h>

#define STOP_SIGNAL 11
#define PAUSE_NS 200000l
#define ASK_EVERY 25u     /* pauses: the signal may have come while another one was being delivered */
#define PAUSES_MAX 10000u /* a thread in an uninterruptible system call: not waited for any longer */

void tr_stop_here(struct tr_ctx *c)
{
	struct rec_stream *s = &c->thread->rec;
	uint64_t all = ~0ull;
	uint32_t never = 0;

	raw(SYS_rt_sigprocmask, 2, &all, 0, 8);
	struct trc_stop *r = rec_begin(s, sizeof *r);

	if (r) {
		r->tsc = raw_tsc();
		r->path_pos = tr_pos(c);
		r->pc = c->pc;
		r->seq = tr_seq();
		rec_commit(s, r, TRC_STOP, 0, sizeof *r);
	}
	tr_path_close(c);
	__atomic_store_n(&c->stopped, true, __ATOMIC_RELEASE);
	for (;;)
		raw(SYS_futex, &never, FUTEX_WAIT_PRIVATE, 0, 0);
}

/* Threads that still run; with `ask` they are asked to stop. Contexts are never unlinked. */
static unsigned running(const struct tr_ctx *self, bool ask)
{
	struct tr_ctx *c = __atomic_load_n(&tr.contexts, __ATOMIC_ACQUIRE);
	unsigned n = 0;

	for (; c; c = c->next) {
		if (c == self || c->native || c->vfork_child ||
		    !__atomic_load_n(&c->alive, __ATOMIC_ACQUIRE) ||
		    __atomic_load_n(&c->stopped, __ATOMIC_ACQUIRE))
			continue;
		n++;
		if (ask && c->thread && c->thread->tid)
			raw(SYS_tgkill, shim.pid, c->thread->tid, STOP_SIGNAL);
	}
	return n;
}

#define LEFT_NS 2000000l /* the last calls of who has left */

static bool poke(const struct tr_ctx *c)
{
	struct tr_siginfo si = { .signo = STOP_SIGNAL, .code = TR_POKE };

	return c->thread && c->thread->tid &&
	       !raw(SYS_rt_tgsigqueueinfo, raw(SYS_getpid), c->thread->tid, STOP_SIGNAL, &si);
}

/* A thread that waits in a system call comes out of it and makes it again natively. */
void tr_drive_out(struct tr_ctx *self)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS }, last = { .tv_nsec = LEFT_NS };
	unsigned n = 1, seen = 0;

	for (unsigned i = 0; n && i < PAUSES_MAX; i++) {
		n = 0;
		for (struct tr_ctx *c = __atomic_load_n(&tr.contexts, __ATOMIC_ACQUIRE); c; c = c->next) {
			if (c == self || c->vfork_child || c->own_process ||
			    !__atomic_load_n(&c->alive, __ATOMIC_ACQUIRE) ||
			    __atomic_load_n(&c->native, __ATOMIC_ACQUIRE))
				continue;
			n++;
			if (i % ASK_EVERY == 0)
				poke(c);
		}
		seen += n;
		if (n)
			raw(SYS_nanosleep, &pause, 0);
	}
	if (seen)
		raw(SYS_nanosleep, &last, 0);
}

void tr_stop_others(struct tr_ctx *self)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	unsigned n = 1;

	if (tr.detached)
		return;
	/* Two that end the process at a time: the second is one of the others. */
	if (__atomic_exchange_n(&tr.stopping, true, __ATOMIC_SEQ_CST))
		tr_stop_here(self);
	for (unsigned i = 0; n && i < PAUSES_MAX; i++) {
		n = running(self, i % ASK_EVERY == 0);
		if (n)
			raw(SYS_nanosleep, &pause, 0);
	}
	if (n)
		shim_note(false, "threads were running while memory at the end was written down");
}
