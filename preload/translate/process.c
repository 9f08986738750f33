/* Calls about threads and processes: clone and fork, exit, exec, and what the kernel
 * keeps per thread (tid address, segment bases, rseq). */
#include "preload/deadlock.h"
#include "preload/silence.h"
#include "preload/suit.h"
#include "preload/translate/epoch.h"
#include "preload/translate/signal.h"
#include "preload/translate/syscall.h"

#include <asm/prctl.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <linux/sched.h>

void (*ctl_thread_exit)(struct tr_ctx *c);
void tr_lock_reset(void);
void tr_forked(struct tr_ctx *c);

struct clone_request {
	uint64_t flags, stack_top, parent_tid, child_tid;
	struct clone_args args; /* clone3: our copy */
	uint64_t args_size;
};

static bool parse_clone(const struct call *k, struct clone_request *q)
{
	memset(q, 0, sizeof *q);
	if (k->nr == SYS_fork)
		return true;
	if (k->nr == SYS_vfork) {
		q->flags = CLONE_VM | CLONE_VFORK;
		return true;
	}
	if (k->nr == SYS_clone) {
		q->flags = k->args[0] & ~0xffull;
		q->stack_top = k->args[1];
		q->parent_tid = k->args[2];
		q->child_tid = k->args[3];
		return true;
	}
	q->args_size = tr_min(k->args[1], sizeof q->args);
	if (!tr_copy(&q->args, (void *)k->args[0], q->args_size))
		return false;
	q->flags = q->args.flags;
	q->stack_top = q->args.stack ? q->args.stack + q->args.stack_size : 0;
	q->parent_tid = q->args.parent_tid;
	q->child_tid = q->args.child_tid;
	return true;
}

static void clone_effects(struct call *k, const struct clone_request *q)
{
	if (q->flags & CLONE_PARENT_SETTID)
		call_effect_add(k, q->parent_tid, 4, TRC_EFFECT_WRITE);
	if (q->flags & CLONE_CHILD_SETTID && q->flags & CLONE_VM)
		call_effect_add(k, q->child_tid, 4, TRC_EFFECT_WRITE);
	if (q->flags & CLONE_PIDFD)
		call_effect_add(k, k->nr == SYS_clone ? q->parent_tid : q->args.pidfd, 4,
				TRC_EFFECT_WRITE);
}

/*
 * A child with its own memory: a copy of us. It comes back from the call on our
 * stack; one of its own is the application's.
 */
static void fork_call(struct call *k, struct clone_request *q)
{
	uint64_t a[2] = { k->args[0], k->args[1] };

	if (k->nr == SYS_clone)
		a[1] = 0;
	if (k->nr == SYS_clone3) {
		q->args.stack = q->args.stack_size = 0;
		a[0] = (uint64_t)&q->args;
	}
	/* On this stack: the child finds its own number there, however many threads fork. */
	uint32_t which = __atomic_add_fetch(&shim.forks, 1, __ATOMIC_RELAXED);
	uint64_t all = ~SIG_FAULTS, mask;

	/* What is noted in the child before it is a process of its own would be taken for the parent's: tr_forked(). */
	raw(SYS_rt_sigprocmask, 2, &all, &mask, 8);
	k->result = raw(k->nr, a[0], a[1], k->args[2], k->args[3], k->args[4]);
	if (k->result) {
		raw(SYS_rt_sigprocmask, 2, &mask, 0, 8);
		if (!raw_failed(k->result))
			clone_effects(k, q);
		return;
	}
	shim_forked_as(which);
	tr_lock_reset();
	k->ctx->fork_next = k->next;
	if (q->stack_top)
		k->ctx->regs[REG_RSP_] = q->stack_top;
	k->ctx->clear_tid = q->flags & CLONE_CHILD_CLEARTID ? q->child_tid : 0;
	tr_forked(k->ctx);
	k->no_leave = true;
}

/* The context of a child that shares our memory, complete but for its first record. */
static struct tr_ctx *child_context(struct call *k, const struct clone_request *q)
{
	struct tr_ctx *c = k->ctx;
	struct shim_thread *t = shim_thread_new(c->thread, 0);

	if (!t)
		return NULL;
	tr_lock();
	struct tr_ctx *n = tr_ctx_new(t);
	tr_unlock();
	if (!n) {
		shim_thread_tid(t, 0);
		shim_thread_settled(t);
		shim_thread_exit(t);
		return NULL;
	}
	t->translator = n;
	tr_path_open(n);
	memcpy(n->regs, c->regs, sizeof n->regs);
	memcpy(n->vec15, c->vec15, sizeof n->vec15);
	n->rflags = c->rflags;
	n->regs[REG_RAX_] = 0;
	n->regs[REG_RCX_] = k->next;
	n->regs[11] = c->rflags;
	n->pc = k->next;
	n->native_gs = c->native_gs;
	n->sigmask = c->sigmask;
	n->no_tsc = c->no_tsc;
	n->signals = c->signals;
	n->vfork_child = q->flags & CLONE_VFORK;
	n->own_process = !(q->flags & (CLONE_THREAD | CLONE_VFORK));
	if (q->stack_top)
		n->regs[REG_RSP_] = q->stack_top;
	if (q->flags & CLONE_CHILD_CLEARTID)
		n->clear_tid = q->child_tid;
	/* A vfork child keeps the alternate stack; it has a table of handlers of its own. */
	if (q->flags & CLONE_VFORK)
		n->alt = c->alt;
	if (!(q->flags & CLONE_SIGHAND)) {
		n->own_signals = *c->signals;
		n->signals = &n->own_signals;
	}
	return n;
}

/* A failed clone leaves an empty thread behind in the trace; its context is free again. */
static void clone_failed(struct tr_ctx *n)
{
	shim_thread_tid(n->thread, 0);
	tr_path_close(n);
	n->thread->translator = NULL;
	shim_thread_exit(n->thread);
	__atomic_store_n(&n->alive, 0, __ATOMIC_RELEASE);
	tr_ctx_leaving(n);
}

/* The child has become another program, or is gone: nobody writes its streams any more. */
static void vfork_done(struct tr_ctx *n)
{
	if (n->thread->translator == n) {
		tr_path_close(n);
		n->thread->translator = NULL;
		shim_thread_settled(n->thread); /* nobody will join it */
		shim_thread_exit(n->thread);
	}
	/* Not the kernel's to say, see tr_ctx_attach(). */
	__atomic_store_n(&n->alive, 0, __ATOMIC_RELEASE);
	tr_ctx_leaving(n);
}

static void clone_call(struct call *k, struct clone_request *q)
{
	struct tr_ctx *n;
	uint64_t args[6], all = ~0ull, mask;

	memcpy(args, k->args, sizeof args);
	if (!tr.multi && !(q->flags & CLONE_VFORK)) {
		tr_lock();
		tr.multi = true;
		tr_drop_all();
		tr_unlock();
	}
	n = child_context(k, q);
	if (!n) {
		/* That is no reason for the program to go without: it makes this call natively, after we have left. */
		tr_lock();
		tr_detach(k->ctx, "no memory to follow another thread");
		tr_unlock();
		k->jump = true;
		k->next = k->pc;
		return;
	}
	/*
	 * The kernel tells us when the thread is gone; the program's word is cleared by us. But who can be killed alone
	 * cannot do that: see tr_ctx_attach().
	 */
	if (n->own_process)
		;
	else if (k->nr == SYS_clone)
		args[0] &= ~(uint64_t)CLONE_CHILD_CLEARTID;
	else if (k->nr == SYS_clone3)
		q->args.flags &= ~(uint64_t)CLONE_CHILD_CLEARTID, args[0] = (uint64_t)&q->args;
	raw(SYS_rt_sigprocmask, 2, &all, &mask, 8);
	n->kernel_mask = n->sigmask & ~SIG_FAULTS;
	k->thread = n->thread->index;
	k->result = tr_clone(k->nr, args, n);
	raw(SYS_rt_sigprocmask, 2, &mask, 0, 8);
	if (raw_failed(k->result)) {
		k->thread = SHIM_NO_THREAD;
		clone_failed(n);
		return;
	}
	if (!n->vfork_child) {
		clone_effects(k, q);
		shim_thread_tid(n->thread, (uint32_t)k->result);
	}
	call_record_leave(k);
	k->no_leave = true;
	if (n->vfork_child) {
		vfork_done(n);
		return;
	}
	__atomic_store_n(&n->go, 1, __ATOMIC_RELEASE);
	raw(SYS_futex, &n->go, FUTEX_WAKE_PRIVATE, 1);
}

static void clone_any(struct call *k)
{
	struct clone_request q;

	if (!parse_clone(k, &q)) {
		k->result = -EFAULT;
		return;
	}
	if (q.flags & CLONE_VM)
		clone_call(k, &q);
	else
		fork_call(k, &q);
}

/*
 * The word joiners wait for is cleared here, not by the kernel, and takes a ticket:
 * pthread_join looks at it, ordered like all of libc's looks, before it waits. From
 * then on others may believe the thread is gone: no access to the application's
 * memory after that.
 */
static void exit_thread(struct call *k)
{
	struct tr_ctx *c = k->ctx;
	struct rec_stream *s = &c->thread->rec;
	uint64_t all = ~0ull;

	raw(SYS_rt_sigprocmask, 2, &all, 0, 8);
	sig_bequeath(c);
	crash_over(c);
	if (ctl_thread_exit)
		ctl_thread_exit(c);
	uint32_t robust = tr_robust_count(c);
	struct trc_thread_exit *r = rec_begin(s, sizeof *r + robust * sizeof(struct trc_exit_word));
	bool ordered = r && c->clear_tid;
	if (r) {
		r->tsc = raw_tsc();
		r->path_pos = tr_pos(c);
		r->cleared = c->clear_tid;
		r->seq = tr_seq();
		memset(r + 1, 0, robust * sizeof(struct trc_exit_word));
		tr_robust_died(c, (struct trc_exit_word *)(r + 1), robust);
		r->ticket = ordered ? tr_order_begin(c->clear_tid) : 0;
		rec_commit(s, r, TRC_THREAD_EXIT, ordered ? TRC_EXIT_ORDERED : 0,
			   sizeof *r + robust * sizeof(struct trc_exit_word));
	}
	if (c->own_process) /* from here on the word is cleared by us, and the kernel clears ours */
		raw(SYS_set_tid_address, &c->alive);
	uint32_t zero = 0, *word = (uint32_t *)c->clear_tid;
	tr_path_close(c);
	c->thread->translator = NULL;
	if (!c->thread->pthread) /* made by hand or inside libc: never joined through us */
		shim_thread_settled(c->thread);
	shim_thread_exit(c->thread);
	bool there = word && tr_copy(word, &zero, 4);
	if (ordered)
		tr_order_end((uint64_t)word);
	if (there)
		raw(SYS_futex, word, FUTEX_WAKE, 1);
	tr_ctx_leaving(c);
	if (k->nr == SYS_exit_group)
		raw(SYS_exit_group, k->args[0]);
	tr_exit_thread((long)k->args[0]);
}

static void exit_process(struct call *k)
{
	struct tr_ctx *c = k->ctx;

	if (c->own_process) /* it alone: the trace is that of who shares its memory */
		exit_thread(k);

	if (!c->vfork_child) {
		if (shim_opt.final)
			tr_snapshot(TRC_STREAM_FINAL);
		tr_time(c);
		rec_ending();
		tr_path_close(c);
		shim_process_end(0, (int)k->args[0] & 0xff);
		tr_lock(); /* the others are still running */
		rec_close(&tr_frags_stream);
		tr_unlock();
	}
	raw(SYS_exit_group, k->args[0]);
}

static void segment_call(struct call *k)
{
	if (k->args[0] == ARCH_SET_GS) {
		k->ctx->native_gs = k->args[1];
		k->result = 0;
		tr_lock();
		tr_detach(k->ctx, "the program uses the %gs segment");
		tr_unlock();
		return;
	}
	if (k->args[0] == ARCH_GET_GS) {
		k->result = tr_copy((void *)k->args[1], &k->ctx->native_gs, 8) ? 0 : -EFAULT;
	} else {
		k->result = raw(SYS_arch_prctl, k->args[0], k->args[1]);
		if (k->args[0] == ARCH_SET_FS && !k->result)
			k->ctx->fs_base = k->args[1];
	}
	if (!k->result && (k->args[0] == ARCH_GET_GS || k->args[0] == ARCH_GET_FS))
		call_effect_add(k, k->args[1], 8, TRC_EFFECT_WRITE);
}

/*
 * Whoever looks for a program along PATH calls this for every place: where nothing can be
 * executed the trace goes on.
 */
static bool may_succeed(const struct call *k)
{
	long r = k->nr == SYS_execve ?
		 raw(SYS_faccessat2, AT_FDCWD, k->args[0], 1 /* X_OK */, 0x200 /* AT_EACCESS */) : 0;

	return !raw_failed(r) || r == -ENOSYS || r == -EPERM;
}

static void exec_call(struct call *k)
{
	const char *path = (const char *)k->args[k->nr == SYS_execveat];
	bool may = may_succeed(k);
	char name[256];
	size_t n = 0;

	if (may) {
		while (n < sizeof name - 1 && tr_copy(name + n, path + n, 1) && name[n])
			n++;
		name[n] = 0;
		shim_exec_begin(name);
		tr_epoch_unasked(k->ctx, true);
		sig_show_kernel(k->ctx);
		tr_limits_show(true);
		if (k->ctx->no_tsc)
			raw(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	}
	struct suit suit = { 0 };
	unsigned env = k->nr == SYS_execveat ? 3 : 2;
	uint64_t args[5];

	memcpy(args, k->args, sizeof args);
	if (may)
		args[env] = (uint64_t)suit_environment(env == 3 ? (int)args[0] : AT_FDCWD, path,
						       (char *const *)args[env], &suit);
	k->result = raw(k->nr, args[0], args[1], args[2], args[3], args[4]);
	suit_end(&suit);
	if (may) {
		if (k->ctx->no_tsc)
			raw(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
		sig_hide_from_kernel(k->ctx);
		tr_epoch_unasked(k->ctx, false);
		tr_limits_show(false);
		shim_exec_failed();
	}
}

/*
 * The program is about to forbid itself system calls that we would need. It
 * makes this one natively, after we have left, and the other threads, too.
 */
static bool restricts_itself(struct call *k)
{
	const char *why = silence_reason(k->nr, k->args[0], k->args[1], k->args[2]);

	if (!why || k->ctx->vfork_child)
		return false;
	k->ctx->falls_silent = true;
	tr_lock();
	tr_detach(k->ctx, why);
	tr_unlock();
	shim_fall_silent();
	tr_drive_out(k->ctx);
	silence_wait();
	k->jump = true;
	k->next = k->pc;
	return true;
}

/* The kernel knows of a word of ours: see tr_ctx_attach(). */
static bool asks_tid_address(struct call *k)
{
	uint64_t ours;

	if (k->nr != SYS_prctl || k->args[0] != PR_GET_TID_ADDRESS)
		return false;
	k->result = raw(SYS_prctl, PR_GET_TID_ADDRESS, &ours);
	if (raw_failed(k->result))
		return true;
	if (tr_copy((void *)k->args[1], &k->ctx->clear_tid, sizeof ours))
		call_effect_add(k, k->args[1], sizeof ours, TRC_EFFECT_WRITE);
	else
		k->result = -EFAULT;
	return true;
}

/* The shim's own clock must go on: whether the program may read it is for nondet.c to say. */
static bool clock_call(struct call *k)
{
	int now = k->ctx->no_tsc ? PR_TSC_SIGSEGV : PR_TSC_ENABLE;

	if (k->nr != SYS_prctl || (k->args[0] != PR_SET_TSC && k->args[0] != PR_GET_TSC))
		return false;
	k->result = 0;
	if (k->args[0] == PR_GET_TSC) {
		if (tr_copy((void *)k->args[1], &now, sizeof now))
			call_effect_add(k, k->args[1], sizeof now, TRC_EFFECT_WRITE);
		else
			k->result = -EFAULT;
	} else if (k->args[1] == PR_TSC_ENABLE || k->args[1] == PR_TSC_SIGSEGV) {
		k->ctx->no_tsc = k->args[1] == PR_TSC_SIGSEGV;
	} else {
		k->result = -EINVAL;
	}
	return true;
}

/*
 * Restartable sequences: the kernel would move a thread that it interrupts inside one, which is in the code cache. So the
 * area is not registered with it: its processor number stays "unknown", and libraries go without (getcpu, atomics). Calls
 * are answered as a kernel would to which libc has registered its area; where it has not, there are none (ENOSYS).
 */
#define RSEQ_SIZE_MIN 32u
static long rseq_wrong(const struct tr_ctx *c, uint64_t at, uint64_t len, uint64_t signature)
{
	if (at != c->rseq.at || len != c->rseq.len)
		return -EINVAL;
	return signature != c->rseq.signature ? -EPERM : 0;
}

static void rseq_call(struct call *k)
{
	struct tr_ctx *c = k->ctx;
	uint64_t at = k->args[0], len = (uint32_t)k->args[1], flags = (uint32_t)k->args[2],
		 signature = (uint32_t)k->args[3];
	static const uint32_t unknown[6] = { 0, (uint32_t)-1 };

	if (flags & 1) {
		k->result = flags != 1 || !c->rseq.at ? -EINVAL : rseq_wrong(c, at, len, signature);
		if (!k->result)
			c->rseq.at = 0;
	} else if (flags) {
		k->result = -EINVAL;
	} else if (c->rseq.at) {
		k->result = rseq_wrong(c, at, len, signature);
		k->result = k->result ? k->result : -EBUSY;
	} else if (len < RSEQ_SIZE_MIN || at % 32) {
		k->result = -EINVAL;
	} else if (at != tr_libc_rseq()) {
		k->result = -ENOSYS;
	} else if (!tr_copy((void *)at, unknown, 8)) {
		k->result = -EFAULT;
	} else {
		c->rseq.at = at, c->rseq.len = (uint32_t)len, c->rseq.signature = (uint32_t)signature;
		k->result = 0;
		call_effect_add(k, at, 8, TRC_EFFECT_WRITE);
	}
}

/*
 * Waits for ever, and nobody outside of the process can end it. Not inside of an operation that we interpose, which
 * has said itself what it waits for.
 */
static bool may_be_deadlock(const struct call *k)
{
	unsigned op = (unsigned)k->args[1] & FUTEX_CMD_MASK;

	return (op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET) && !k->args[3] && (k->args[1] & FUTEX_PRIVATE_FLAG) &&
	       !k->ctx->thread->blocked_op && !k->ctx->vfork_child && !k->ctx->own_process;
}

static void futex_call(struct call *k)
{
	unsigned op = (unsigned)k->args[1] & FUTEX_CMD_MASK;
	bool said = may_be_deadlock(k);

	if (said)
		deadlock_block(k->ctx->thread, TRC_OP_FUTEX, k->args[0], k->pc, (uint32_t)k->args[2]);
	k->result = call_run(k, k->args);
	if (said)
		deadlock_unblock(k->ctx->thread);
	if (k->result == TR_NOT_STARTED)
		return;
	if (op == FUTEX_WAKE_OP && !raw_failed(k->result))
		call_effect_add(k, k->args[4], 4, TRC_EFFECT_WRITE);
	if (op == FUTEX_LOCK_PI || op == FUTEX_UNLOCK_PI || op == FUTEX_TRYLOCK_PI ||
	    op == FUTEX_LOCK_PI2)
		call_effect_add(k, k->args[0], 4, TRC_EFFECT_WRITE);
	if (op == FUTEX_WAIT_REQUEUE_PI || op == FUTEX_CMP_REQUEUE_PI)
		call_effect_add(k, k->args[4], 4, TRC_EFFECT_WRITE);
}

static void change_user(struct call *k, uint32_t uid)
{
	if (uid != (uint32_t)-1)
		rec_dir_hand_over(uid);
	k->result = call_run(k, k->args);
}

bool call_process(struct call *k)
{
	switch (k->nr) {
	case SYS_clone: case SYS_clone3: case SYS_fork: case SYS_vfork: clone_any(k); return true;
	case SYS_exit: exit_thread(k); return true;
	case SYS_exit_group: exit_process(k); return true;
	case SYS_execve: case SYS_execveat: exec_call(k); return true;
	case SYS_futex: futex_call(k); return true;
	case SYS_arch_prctl: segment_call(k); return true;
	case SYS_ptrace: return restricts_itself(k);
	case SYS_seccomp: case SYS_prctl: return restricts_itself(k) || asks_tid_address(k) || clock_call(k);
	case SYS_setuid: case SYS_setfsuid: change_user(k, (uint32_t)k->args[0]); return true;
	case SYS_setreuid: case SYS_setresuid: change_user(k, (uint32_t)k->args[1]); return true;
	case SYS_set_tid_address:
		k->ctx->clear_tid = k->args[0];
		if (k->ctx->own_process && k->args[0])
			raw(SYS_set_tid_address, k->args[0]);
		k->result = raw(SYS_gettid);
		return true;
	case SYS_rseq: rseq_call(k); return true;
	case SYS_set_thread_area:
		k->result = -ENOSYS;
		return true;
	}
	return false;
}
