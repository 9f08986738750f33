/*
 * A system call: TRC_ENTER, the call itself, TRC_LEAVE with what the kernel
 * wrote. Calls that touch threads, memory, signals or the process go to the
 * files named after these; the others are all data (syscall_table.c).
 */
#include "preload/said.h"
#include "preload/translate/epoch.h"
#include "preload/translate/signal.h"
#include "preload/translate/syscall.h"

#include <sys/mman.h>

void (*ctl_syscall_enter)(struct tr_ctx *c, long nr, const uint64_t args[6]);
void (*ctl_syscall_leave)(struct tr_ctx *c, long nr, long result);

uint64_t tr_seq(void)
{
	uint64_t n = 1;

	/* One thread: only its own signal handlers can come between, not into one instruction. */
	if (tr.multi)
		return __atomic_fetch_add(&tr.seq, 1, __ATOMIC_SEQ_CST);
	__asm__ volatile("xaddq %0, %1" : "+r"(n), "+m"(tr.seq) : : "cc", "memory");
	return n;
}

void call_note(const char *what, const char *name, long nr)
{
	TEXT(t, 160);

	text_str(&t, what);
	text_str(&t, name ? name : "number ");
	if (!name)
		text_num(&t, nr);
	shim_note(false, t.s);
}

/* Out of line: its 10 KB of stack would be every call's. */
static __attribute__((noinline)) void record_registers(struct tr_ctx *c)
{
	struct rec_stream *s = &c->thread->rec;
	_Alignas(64) uint8_t area[TR_XSAVE_MAX];
	uint8_t vectors[512];
	struct trc_regs *r = rec_begin(s, sizeof *r);

	if (!r)
		return;
	tr_xsave(c, area);
	for (unsigned i = 0; i < 16; i++) {
		memcpy(vectors + 32 * i, area + 160 + 16 * i, 16);
		if (tr_machine.avx)
			memcpy(vectors + 32 * i + 16, area + tr_machine.avx_offset + 16 * i, 16);
		else
			memset(vectors + 32 * i + 16, 0, 16);
	}
	r->path_pos = tr_pos(c);
	memcpy(r->regs, c->regs, sizeof c->regs);
	tr_unclobber(c, c->ptr, r->regs);
	r->regs[TRC_RIP] = c->pc;
	r->regs[TRC_RFLAGS] = c->rflags;
	r->vector_sum = trc_checksum(vectors, sizeof vectors);
	rec_commit(s, r, TRC_REGS, 0, sizeof *r);
}

static void record_enter(const struct call *k)
{
	struct rec_stream *s = &k->ctx->thread->rec;
	struct trc_enter *r = rec_begin(s, sizeof *r);

	if (!r) {
		if (rec_epoch) /* the next checkpoint makes room */
			tr_epoch_look(k->ctx, raw_tsc());
		return;
	}
	r->tsc = raw_tsc();
	tr_epoch_look(k->ctx, r->tsc);
	r->path_pos = tr_pos(k->ctx);
	r->pc = k->pc;
	for (unsigned i = 0; i < 6; i++)
		r->args[i] = k->args[i];
	r->seq = tr_seq();
	rec_commit(s, r, TRC_ENTER, (unsigned)k->nr, sizeof *r);
}

long call_run(struct call *k, const uint64_t args[6])
{
	struct tr_ctx *c = k->ctx;

	if (__builtin_expect(rec_epoch != 0, 0) && !tr_epoch_rest(c))
		return TR_NOT_STARTED;
	__atomic_store_n(&c->in_call, true, __ATOMIC_RELEASE);
	long r = tr_call_interruptible(c, k->nr, args);
	/*
	 * It must be out before this thread looks at the generation (see tr_settled()). To wait for
	 * that here took an eighth of a short call's time; call_record_leave() takes a number
	 * meanwhile, with a locked instruction when there are others.
	 */
	__atomic_store_n(&c->in_call, false, __ATOMIC_RELEASE);
	if (__builtin_expect(rec_epoch != 0, 0))
		tr_epoch_rested(c);
	return r;
}

static void note_unusual(const struct call *k)
{
	static uint8_t noted[CALL_MAX];
	bool known = k->nr >= 0 && k->nr < CALL_MAX && call_table[k->nr].kind != CALL_UNKNOWN;

	if (k->nr >= 0 && k->nr < CALL_MAX) {
		if (noted[k->nr])
			return;
		noted[k->nr] = 1;
	}
	if (known)
		call_note("memory effects not recorded of system call ", call_table[k->nr].name, k->nr);
	else
		call_note("unknown system call ", NULL, k->nr);
}

static void socklen_before(struct call *k, const struct call_desc *d)
{
	k->socklen = 0;
	for (unsigned i = 0; i < CALL_OUTS && d->out[i].kind; i++)
		if (d->out[i].kind == OUT_SOCKLEN && k->args[d->out[i].aux])
			tr_copy(&k->socklen, (void *)k->args[d->out[i].aux], 4);
}

/* Out of line for its stack. */
static __attribute__((noinline)) void run_unknown(struct call *k, const struct call_desc *d)
{
	struct guess g;

	call_guess_before(k, &g);
	k->result = call_run(k, k->args);
	if (k->result == TR_NOT_STARTED)
		return;
	if (d->out[0].kind)
		call_outputs(k);
	call_guess_after(k, &g);
	if (d->kind == CALL_UNKNOWN || (d->kind == CALL_NOTED && !raw_failed(k->result)))
		note_unusual(k);
}

static void run(struct call *k)
{
	const struct call_desc *d =
		&call_table[k->nr >= 0 && k->nr < CALL_MAX ? k->nr : CALL_MAX - 1];

	bool special = d->kind == CALL_OWN || k->nr == SYS_prctl || k->nr == SYS_seccomp ||
		       k->nr == SYS_ptrace;

	if (special && (call_memory(k) || call_process(k) || call_signals(k) || call_limits(k)))
		return;
	if (d->kind == CALL_UNKNOWN || d->kind == CALL_NOTED || (k->nr == SYS_ioctl && !call_ioctl_known(k))) {
		run_unknown(k, d);
		return;
	}
	if (k->nr == SYS_write && (int)k->args[0] == 2)
		said_note(k->ctx->thread, k->args[1], k->args[2]);
	socklen_before(k, d);
	k->result = call_run(k, k->args);
	if (k->result == TR_NOT_STARTED)
		return;
	if (k->nr == SYS_openat || k->nr == SYS_open)
		call_view(k);
	if (k->nr == SYS_getrusage || k->nr == SYS_times)
		call_hide_copies(k);
	if (d->kind == CALL_IOCTL)
		call_ioctl_outputs(k);
	else if (d->out[0].kind)
		call_outputs(k);
	call_files(k);
	if (k->nr == SYS_madvise && (k->args[2] == MADV_DONTFORK || k->args[2] == MADV_WIPEONFORK))
		tr_epoch_no_copy();
}

/* Returns the application address to go on at. */
uint64_t tr_syscall(struct tr_ctx *c, uint64_t pc, uint64_t next)
{
	static const uint8_t argument[6] = { 7, 6, 2, 10, 8, 9 };
	struct call k;

	k.ctx = c;
	k.nr = (long)(int32_t)c->regs[REG_RAX_];
	k.pc = pc;
	k.next = next;
	k.thread = SHIM_NO_THREAD;
	k.result = 0;
	k.neffects = 0;
	k.no_leave = k.jump = false;
	for (unsigned i = 0; i < 6; i++)
		k.args[i] = c->regs[argument[i]];
	if (__builtin_expect(c->crash.frame != 0, 0))
		crash_look(c);
	if (shim_opt.check)
		record_registers(c);
	if (shim_opt.final && k.nr == SYS_exit_group && !c->vfork_child)
		tr_stop_others(c);
	record_enter(&k);
	if (ctl_syscall_enter)
		ctl_syscall_enter(c, k.nr, k.args);
	run(&k);
	if (ctl_syscall_leave)
		ctl_syscall_leave(c, k.nr, k.result);
	if (k.jump)
		return k.next;
	if (c->nudged && k.result == -EINTR && !c->queue[0].signo) {
		k.result = TR_NOT_STARTED;
		c->has_wait_mask = false;
	}
	if (k.result == TR_NOT_STARTED) {
		/*
		 * A signal comes first, then the instruction runs again: the call had not begun, or the kernel restarts it
		 * (our handlers have SA_RESTART where the program's have).
		 */
		k.result = -512;
		call_record_leave(&k);
		return pc;
	}
	if (!k.no_leave)
		call_record_leave(&k);
	if (c->poked && k.result == -EINTR && !c->queue[0].signo)
		return pc; /* natively, once more */
	c->regs[REG_RAX_] = (uint64_t)k.result;
	c->regs[REG_RCX_] = next;
	c->regs[11] = c->rflags;
	return k.next;
}
