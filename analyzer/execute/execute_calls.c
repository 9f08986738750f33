/* System calls while another order is executed: futexes for real, others from the record. */
#include "analyzer/execute/execute.h"

#include "analyzer/follow/call_args.h"
#include "analyzer/engine/code.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define LOOK_AHEAD 400u /* records */

/* The call is over. */
void exec_returns(struct mach_run *r, int64_t result)
{
	VexGuestAMD64State *g = &r->m->frame->g;

	g->guest_RCX = g->guest_RIP + 2;
	g->guest_R11 = mach_rflags(g) | 0x202;
	g->guest_RAX = (uint64_t)result;
	g->guest_RIP += 2;
	shadow_forget(r->m, gpr_offset(0), 8);
	shadow_forget(r->m, gpr_offset(1), 8);
	shadow_forget(r->m, gpr_offset(11), 8);
	r->m->insns++;
	r->time++;
}

/* ---- futexes ---- */

static void wake_thread(struct mach_run *r, struct execution *x, uint32_t t, int64_t result)
{
	struct mach_cpu *cpu = &r->threads[t].s.cpu; /* it is not the current one */

	x->wait[t].waiting = false;
	r->threads[t].s.life = LIFE_RUNNING;
	cpu->g.guest_RAX = (uint64_t)result;
}

static unsigned wake(struct mach_run *r, struct execution *x, uint64_t address, uint32_t n,
		     uint32_t bitset)
{
	unsigned woken = 0;

	while (woken < n) {
		uint32_t first = NO_THREAD;

		for (uint32_t i = 0; i < r->nthreads; i++) {
			const struct futex_wait *w = &x->wait[i];

			if (w->waiting && w->address == address && (w->bitset & bitset) &&
			    (first == NO_THREAD || w->since < x->wait[first].since))
				first = i;
		}
		if (first == NO_THREAD)
			break;
		wake_thread(r, x, first, 0);
		woken++;
	}
	return woken;
}

static void wait_on(struct mach_run *r, struct execution *x, struct run_thread *t, uint64_t address,
		    uint32_t expected, uint32_t bitset, bool can_time_out)
{
	uint32_t value = 0;

	if (!mem_peek(r->m->mem, address, &value, 4)) {
		exec_returns(r, -EFAULT);
		return;
	}
	if (value != expected) {
		exec_returns(r, -EAGAIN);
		return;
	}
	exec_returns(r, 0);
	x->wait[t->index] = (struct futex_wait){ true, can_time_out, address, bitset, (*x->arrivals)++ };
	t->s.life = LIFE_IN_CALL;
	run_settle(r); /* its result is set in the stored registers */
}

static unsigned requeue(struct mach_run *r, struct execution *x, uint64_t from, uint64_t to,
			uint32_t n)
{
	unsigned moved = 0;

	for (uint32_t i = 0; i < r->nthreads && moved < n; i++)
		if (x->wait[i].waiting && x->wait[i].address == from) {
			x->wait[i].address = to;
			moved++;
		}
	return moved;
}

static void futex(struct mach_run *r, struct execution *x, struct run_thread *t)
{
	uint64_t address = run_arg(r, 0);
	uint32_t value = (uint32_t)run_arg(r, 2), bitset = FUTEX_BITSET_MATCH_ANY, now = 0;
	unsigned op = (unsigned)run_arg(r, 1) & 127, n;

	switch (op) {
	case FUTEX_WAIT_BITSET:
		bitset = (uint32_t)run_arg(r, 5);
		/* fall through */
	case FUTEX_WAIT:
		wait_on(r, x, t, address, value, bitset, run_arg(r, 3) != 0);
		break;
	case FUTEX_WAKE_BITSET:
		bitset = (uint32_t)run_arg(r, 5);
		/* fall through */
	case FUTEX_WAKE:
		n = wake(r, x, address, value, bitset);
		exec_returns(r, n);
		break;
	case FUTEX_CMP_REQUEUE:
		if (!mem_peek(r->m->mem, address, &now, 4) || now != (uint32_t)run_arg(r, 5)) {
			exec_returns(r, -EAGAIN);
			break;
		}
		/* fall through */
	case FUTEX_REQUEUE:
		n = wake(r, x, address, value, bitset);
		n += requeue(r, x, address, run_arg(r, 4), (uint32_t)run_arg(r, 3));
		exec_returns(r, n);
		break;
	default:
		exec_left(r, x, t->index, "a futex operation that cannot be executed in another order");
	}
}

bool exec_time_out(struct mach_run *r, struct execution *x, uint32_t t)
{
	if (!x->wait[t].waiting || !x->wait[t].can_time_out)
		return false;
	run_settle(r);
	wake_thread(r, x, t, -ETIMEDOUT);
	exec_keep_step(r, x, t, ACT_ORDER_WAIT, 0);
	return true;
}

/* ---- ends ---- */

static void thread_exit(struct mach_run *r, struct execution *x, struct run_thread *t)
{
	uint64_t word = x->cleared[t->index];
	uint8_t zero[4] = { 0 };

	if (word) {
		mem_poke(r->m->mem, word, zero, sizeof zero);
		run_settle(r);
		wake(r, x, word, 1, FUTEX_BITSET_MATCH_ANY);
	}
	t->s.life = LIFE_ENDED;
	if (x->try)
		exec_try_ended(r, x, t->index);
}

static void process_exit(struct mach_run *r, struct execution *x, struct run_thread *t)
{
	int status = (int)(run_arg(r, 0) & 0xff);

	if (x->try)
		exec_try_exit(x, t->index, status);
	else
		exec_exited(r, x, t->index, status);
}

/* ---- from the record ---- */

static bool same_call(const struct mach_run *r, const struct trc_enter *e, uint64_t nr)
{
	if (e->rec.type != TRC_ENTER || e->rec.flags != nr || e->pc != r->m->frame->g.guest_RIP)
		return false;
	for (unsigned i = 0; i < mach_call_args(nr); i++)
		if (e->args[i] != run_arg(r, i))
			return false;
	return true;
}

/* In this order something else still lies where the recorded mapping went. */
static bool place_is_taken(const struct mach_run *r, const struct trc_leave *l)
{
	uint64_t at = (uint64_t)l->result;

	return !(run_arg(r, 3) & MAP_FIXED) && l->result > 0 &&
	       mem_overlaps(r->m->mem, at, at + run_arg(r, 1));
}

/*
 * The run failed while the thread was in this call, its last: it stays there, as
 * nobody knows how the call would have ended.
 */
static bool stays_inside(struct mach_run *r, struct run_thread *t, size_t i)
{
	for (size_t k = i + 1; k < t->recs.n; k++)
		if (t->recs.v[k]->type == TRC_ENTER || t->recs.v[k]->type == TRC_LEAVE)
			return false;
	t->s.rec = i + 1;
	t->s.life = LIFE_IN_CALL;
	r->m->insns++;
	r->time++;
	return true;
}

/* The recorded mapping of a file, elsewhere. */
static bool map_elsewhere(struct mach_run *r, struct run_thread *t, size_t i)
{
	const struct trc_leave *l = (const void *)t->recs.v[i + 1];
	struct trc_effects fx = trc_effects(l);
	uint64_t size = (run_arg(r, 1) + MEM_PAGE - 1) & ~(uint64_t)(MEM_PAGE - 1);
	uint64_t at = run_arg(r, 3) & MAP_ANONYMOUS ? 0 : exec_fresh_place(r, size);

	if (!at)
		return false;
	mem_map(r->m->mem, at, at + size, (unsigned)run_arg(r, 2), false);
	for (const struct trc_effect *e = trc_effect_next(&fx); e; e = trc_effect_next(&fx)) {
		uint64_t inside = e->address - (uint64_t)l->result;

		if (e->kind != TRC_EFFECT_FILE || inside > size || e->length > size - inside)
			return false;
		mem_poke(r->m->mem, at + inside, trc_effect_bytes(e), e->length);
	}
	t->s.rec = i + 2;
	exec_returns(r, (int64_t)at);
	return true;
}

/* Which argument of the recorded call is this address, or none. */
static int argument_at(const struct trc_enter *e, uint64_t address)
{
	for (unsigned i = 0; i < mach_call_args(e->rec.flags); i++)
		if (e->args[i] == address)
			return (int)i;
	return -1;
}

/* The next recorded call of this kind from here that came back; t->recs.n: none is near. */
static size_t next_like_it(const struct mach_run *r, const struct run_thread *t, uint64_t nr)
{
	for (size_t i = t->s.rec; i + 1 < t->recs.n && i < t->s.rec + LOOK_AHEAD; i++) {
		const struct trc_enter *e = (const void *)t->recs.v[i];

		if (e->rec.type == TRC_ENTER && e->rec.flags == nr &&
		    e->pc == r->m->frame->g.guest_RIP)
			return t->recs.v[i + 1]->type == TRC_LEAVE ? i : t->recs.n;
	}
	return t->recs.n;
}

/*
 * The recorded call with its results put elsewhere: arguments may differ where the kernel wrote
 * to them and nowhere else. In another order mappings lie elsewhere, and what was allocated there.
 */
static bool results_elsewhere(struct mach_run *r, struct run_thread *t, uint64_t nr)
{
	size_t at = next_like_it(r, t, nr);
	unsigned written = 0;

	if (at == t->recs.n)
		return false;
	const struct trc_enter *e = (const void *)t->recs.v[at];
	const struct trc_leave *l = (const void *)t->recs.v[at + 1];
	struct trc_effects fx = trc_effects(l);

	for (const struct trc_effect *f = trc_effect_next(&fx); f; f = trc_effect_next(&fx)) {
		int arg = argument_at(e, f->address);

		if (f->kind != TRC_EFFECT_WRITE || arg < 0)
			return false;
		written |= 1u << arg;
	}
	/* One that did nothing but return is done anew, or not at all: it may have made a mapping. */
	if (!written)
		return false;
	for (unsigned i = 0; i < mach_call_args(nr); i++)
		if (e->args[i] != run_arg(r, i) && !(written & 1u << i))
			return false;
	fx = trc_effects(l);
	for (const struct trc_effect *f = trc_effect_next(&fx); f; f = trc_effect_next(&fx))
		if (!mem_writable(r->m->mem, run_arg(r, argument_at(e, f->address)), f->length))
			return false;
	t->s.rec = at + 2;
	/* It is seen after the call, like what was recorded; the arguments are in their registers still. */
	exec_returns(r, l->result);
	fx = trc_effects(l);
	for (const struct trc_effect *f = trc_effect_next(&fx); f; f = trc_effect_next(&fx))
		run_kernel_wrote(r, t, run_arg(r, argument_at(e, f->address)), trc_effect_bytes(f), f->length);
	return true;
}

/* How that ends is known, recorded or not. */
static bool sleeps(uint64_t nr)
{
	return nr == SYS_nanosleep || nr == SYS_clock_nanosleep || nr == SYS_sched_yield;
}

/* The recorded call, if it lies ahead of this thread. */
static bool from_record(struct mach_run *r, struct run_thread *t, uint64_t nr)
{
	for (size_t i = t->s.rec; i < t->recs.n && i < t->s.rec + LOOK_AHEAD; i++) {
		if (!same_call(r, (const void *)t->recs.v[i], nr))
			continue;
		if (i + 1 >= t->recs.n || t->recs.v[i + 1]->type != TRC_LEAVE)
			return !sleeps(nr) && stays_inside(r, t, i);
		if (nr == SYS_mmap && place_is_taken(r, (const void *)t->recs.v[i + 1]))
			return map_elsewhere(r, t, i);
		t->s.rec = i;
		t->s.action = ACT_ENTER;
		run_perform(r, t);
		t->s.action = ACT_LEAVE;
		run_perform(r, t);
		t->s.action = ACT_RUN;
		return true;
	}
	return false;
}

void exec_syscall(struct mach_run *r, struct execution *x, struct run_thread *t)
{
	uint64_t nr = (uint32_t)r->m->frame->g.guest_RAX, pc = r->m->frame->g.guest_RIP;

	switch (nr) {
	case SYS_futex:
		futex(r, x, t);
		return;
	case SYS_exit:
		thread_exit(r, x, t);
		return;
	case SYS_exit_group:
		process_exit(r, x, t);
		return;
	case SYS_tgkill:
	case SYS_tkill:
	case SYS_kill: {
		int sig = (int)run_arg(r, nr == SYS_tgkill ? 2 : 1);

		if (sig == SIGABRT) {
			exec_failed(r, x, t->index, sig, pc + 2);
			return;
		}
		break;
	}
	default:
		break;
	}
	if (!from_record(r, t, nr) && !results_elsewhere(r, t, nr) && !exec_spawn(r, x, t, nr) &&
	    !exec_anew(r, x, t, nr)) {
		char *what = xasprintf("system call %llu with other arguments",
				       (unsigned long long)nr);

		exec_left(r, x, t->index, what);
		free(what);
	}
}

/* A thread that was inside a recorded call where the execution begins. */
void exec_adopt_call(struct mach_run *r, struct execution *x, struct run_thread *t)
{
	const struct trc_enter *e = t->s.call;

	if (e && (e->rec.flags == SYS_futex || (sleeps(e->rec.flags) && run_ended(t)))) {
		/* The call is made again, for real: the entry has had no effect yet. */
		t->s.life = LIFE_RUNNING;
		t->s.call = NULL;
		run_switch(r, t->index);
		r->m->frame->g.guest_RIP = e->pc;
		r->m->insns--;
		return;
	}
	if (run_head(t) && run_head(t)->type == TRC_LEAVE) {
		t->s.action = ACT_LEAVE;
		run_perform(r, t);
		return;
	}
	(void)x;
}
