/*
 * A system call: TRC_ENTER, the call itself, TRC_LEAVE with what the kernel
 * wrote. Calls that touch threads, memory, signals or the process go to the
 * files named after these; the others are all data (syscall_table.c).
 */
#include "preload/translate/syscall.h"

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

	if (!r)
		return;
	r->tsc = raw_tsc();
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

	__atomic_store_n(&c->in_call, true, __ATOMIC_RELEASE);
	long r = tr_call_interruptible(c, k->nr, args);
	/*
	 * It must be out before this thread looks at the generation (see tr_settled()). To wait for
	 * that here took an eighth of a short call's time; call_record_leave() takes a number
	 * meanwhile, with a locked instruction when there are others.
	 */
	__atomic_store_n(&c->in_call, false, __ATOMIC_RELEASE);
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

static void run(struct call *k)
{
	const struct call_desc *d =
		&call_table[k->nr >= 0 && k->nr < CALL_MAX ? k->nr : CALL_MAX - 1];

	bool special = d->kind == CALL_OWN || k->nr == SYS_prctl || k->nr == SYS_seccomp ||
		       k->nr == SYS_ptrace;

	if (special && (call_memory(k) || call_process(k) || call_signals(k) || call_limits(k)))
		return;
	socklen_before(k, d);
	k->result = call_run(k, k->args);
	if (k->result == TR_NOT_STARTED)
		return;
	if (k->nr == SYS_openat || k->nr == SYS_open)
		call_view(k);
	if (d->kind == CALL_IOCTL)
		call_ioctl_outputs(k);
	else if (d->out[0].kind)
		call_outputs(k);
	if (d->kind == CALL_UNKNOWN || (d->kind == CALL_NOTED && !raw_failed(k->result)))
		note_unusual(k);
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
	k.no_leave = k.jump = k.restart = false;
	for (unsigned i = 0; i < 6; i++)
		k.args[i] = c->regs[argument[i]];
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
	if (k.result == TR_NOT_STARTED) {
		/* Delivered first, then the instruction runs again. */
		k.result = -512;
		call_record_leave(&k);
		return pc;
	}
	if (!k.no_leave)
		call_record_leave(&k);
	if (c->poked && k.result == -EINTR && !c->queue[0].signo)
		return pc; /* natively, once more */
	c->call_nr = (uint32_t)k.nr;
	c->call_pc = k.result == -EINTR && k.nr >= 0 && k.nr < CALL_MAX &&
		     (call_table[k.nr].restart || k.restart) ? pc : 0;
	c->regs[REG_RAX_] = (uint64_t)k.result;
	c->regs[REG_RCX_] = next;
	c->regs[11] = c->rflags;
	return k.next;
}
