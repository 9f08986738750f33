/*
 * PCT: one thread runs at a time, the one with the highest priority that is
 * not blocked. Priorities are random; at DEPTH - 1 random steps (or, for the
 * demote strategy, at a chosen site) the running thread falls below all
 * others. With n threads and k steps a bug of depth d shows with probability
 * 1/(n k^(d-1)) at least, whatever the machine does.
 *
 * The token passes at callouts and at system calls that block. A thread that
 * keeps it without coming by (a spin loop, a call we do not know to block) loses
 * it after a while: progress comes before the guarantee. When that happens
 * again and again the run is let go.
 */
#include "preload/control/control.h"

#include "preload/raw.h"
#include "preload/translate/translate.h"
#include "preload/watch.h"

#include <linux/futex.h>
#include <linux/sched.h>
#include <time.h>

#define MAX_CHANGES 16
#define SLICE_US 10000
#define HOLD_US 50000     /* the longest one thread keeps the token while others want it */
#define MAX_FORCED 20     /* tokens taken away, then everybody runs */
#define SERIAL_SLICE_US 200000
#define SERIAL_HOLD_US 400000
#define BIRTH_US 3000     /* how long a parent waits for its child to show up */
#define WAKE_US 300       /* how long a waker waits for those it woke */
#define YIELD_US 50000    /* the same when it lets them go first */
#define NOBODY (-1)

enum state { GONE, RUNNABLE, BLOCKED };

struct slot {
	enum state state;
	int64_t priority;
	uint32_t turn;     /* futex */
	uint64_t births;   /* seen before its clone call; 0: not in one */
	uint64_t returns;  /* seen before its system call */
	bool wakes;        /* that is a wake */
	bool born;         /* counted in `births` */
	bool ended;
};

static struct slot slots[CTL_THREADS] RAW_LARGE;
static int owner = NOBODY;
static uint32_t lock;
static int64_t lowest;
static uint64_t progress, step;
static uint64_t owner_since; /* us; when the token last changed hands */
static uint64_t births = 1, returns; /* threads begun; waits returned from */
static uint64_t change[MAX_CHANGES];
static unsigned nchanges, forced;
static uint64_t slice_us = SLICE_US, hold_us = HOLD_US;
static uint32_t waiting;
static bool free_run;
static uint64_t idle_yields; /* by somebody when there was nobody to take over */
static bool yields; /* in the serial rest: who makes or wakes others lets them go first */
static bool serial; /* nobody is preempted: the rest of an enforced run, see ctl_serial_join() */

static void take(void)
{
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		raw(SYS_sched_yield);
}

static void release(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static struct slot *slot_of(const struct tr_ctx *c, int *index)
{
	*index = (int)c->thread->index;
	return *index < CTL_THREADS && !free_run ? &slots[*index] : NULL;
}

static void give_turn(int i)
{
	__atomic_store_n(&slots[i].turn, 1, __ATOMIC_RELEASE);
	raw(SYS_futex, &slots[i].turn, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1);
}

/* Locked. */
static void choose(void)
{
	int best = NOBODY;

	if (serial && owner != NOBODY && slots[owner].state == RUNNABLE)
		return;
	for (int i = 0; i < CTL_THREADS && (uint32_t)i < shim.nthreads; i++)
		if (slots[i].state == RUNNABLE &&
		    (best == NOBODY || slots[i].priority > slots[best].priority))
			best = i;
	if (best == owner)
		return;
	owner = best;
	owner_since = ctl_now_us();
	progress++;
	if (best != NOBODY)
		give_turn(best);
}

static void let_go(void)
{
	__atomic_store_n(&free_run, true, __ATOMIC_SEQ_CST);
	for (int i = 0; i < CTL_THREADS && (uint32_t)i < shim.nthreads; i++)
		if (slots[i].state != GONE)
			give_turn(i);
}

static bool may_run(int i)
{
	return __atomic_load_n(&owner, __ATOMIC_ACQUIRE) == i ||
	       __atomic_load_n(&free_run, __ATOMIC_ACQUIRE);
}

/*
 * The owner made no progress for a slice: it blocks where we do not see it,
 * or computes. Or it has passed many sites, for long: it may spin until
 * somebody does something who is waiting for the token.
 */
static void force(int me, uint64_t seen)
{
	take();
	if (owner == NOBODY) {
		choose();
	} else if (owner != me && (progress == seen || ctl_now_us() - owner_since > hold_us)) {
		slots[owner].priority = --lowest;
		if (serial)
			owner = NOBODY;
		choose();
		if (++forced > MAX_FORCED)
			let_go();
	}
	release();
}

static void wait_turn(int me)
{
	uint64_t seen = progress, from = ctl_now_us();

	__atomic_fetch_add(&waiting, 1, __ATOMIC_RELAXED);
	while (!may_run(me)) {
		/* Time only to see whether the owner keeps it: many who look take the time they are to save. */
		struct timespec t = { 0, (long)slice_us / 5 * 1000 };

		__atomic_store_n(&slots[me].turn, 0, __ATOMIC_SEQ_CST);
		if (may_run(me))
			break;
		raw(SYS_futex, &slots[me].turn, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &t);
		uint64_t now = ctl_now_us();
		bool moved = progress != seen;
		if (owner == NOBODY || (!moved && now - from > slice_us) || now - owner_since > hold_us)
			force(me, seen);
		if (moved) {
			seen = progress;
			from = now;
		}
	}
	__atomic_fetch_sub(&waiting, 1, __ATOMIC_RELAXED);
}

static void demote(int me)
{
	take();
	slots[me].priority = --lowest;
	choose();
	release();
	wait_turn(me);
}

void ctl_pct_step(struct tr_ctx *c)
{
	int me;
	struct slot *s = slot_of(c, &me);

	if (!s || s->state != RUNNABLE)
		return;
	if (!may_run(me))
		wait_turn(me);
	progress++;
	if (shim.nlive < 2)
		return;
	uint64_t n = step++;
	for (unsigned i = 0; i < nchanges; i++)
		if (change[i] == n)
			demote(me);
}

void ctl_pct_demote(struct tr_ctx *c)
{
	int me;
	struct slot *s = slot_of(c, &me);

	if (s && s->state == RUNNABLE)
		demote(me);
}

static bool may_block(long nr, const uint64_t args[6])
{
	switch (nr) {
	case SYS_futex: {
		int op = (int)args[1] & 127;
		return op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET || op == FUTEX_LOCK_PI ||
		       op == FUTEX_WAIT_REQUEUE_PI;
	}
	case SYS_read: case SYS_readv: case SYS_recvfrom: case SYS_recvmsg: case SYS_accept:
	case SYS_accept4: case SYS_connect: case SYS_poll: case SYS_ppoll: case SYS_select:
	case SYS_pselect6: case SYS_epoll_wait: case SYS_epoll_pwait: case SYS_nanosleep:
	case SYS_clock_nanosleep: case SYS_wait4: case SYS_waitid: case SYS_pause:
	case SYS_rt_sigtimedwait: case SYS_rt_sigsuspend: case SYS_flock: case SYS_sched_yield:
		return true;
	default:
		return false;
	}
}

static bool makes_thread(long nr, const uint64_t args[6])
{
	/* clone3's first argument is a structure whose first word holds the flags. */
	uint64_t flags = 0;

	if (nr == SYS_clone)
		flags = args[0];
	else if (nr == SYS_clone3 && !tr_copy(&flags, (const void *)args[0], sizeof flags))
		return false;
	return flags & CLONE_THREAD;
}

static void enter(struct tr_ctx *c, long nr, const uint64_t args[6])
{
	int me;
	struct slot *s = slot_of(c, &me);

	if (!s || s->state != RUNNABLE)
		return;
	if (!may_run(me))
		wait_turn(me);
	progress++;
	s->births = makes_thread(nr, args) ? births : 0;
	s->returns = __atomic_load_n(&returns, __ATOMIC_ACQUIRE);
	s->wakes = nr == SYS_futex && ((int)args[1] & 127) == FUTEX_WAKE;
	if (!may_block(nr, args))
		return;
	take();
	if (nr == SYS_sched_yield || nr == SYS_nanosleep || nr == SYS_clock_nanosleep)
		s->priority = --lowest;
	s->state = BLOCKED;
	choose();
	idle_yields += nr == SYS_sched_yield && owner == NOBODY;
	release();
}

static void await(const uint64_t *counter, uint64_t value, uint64_t us)
{
	uint64_t until = ctl_now_us() + us;

	while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < value && ctl_now_us() < until)
		raw(SYS_sched_yield);
}

/*
 * Whoever this call woke or made must have shown up before the next choice,
 * else the race between the two decides who runs.
 */
static void await_others(struct slot *s, long nr, long result)
{
	if (s->births && result > 0)
		await(&births, s->births + 1, yields ? YIELD_US : BIRTH_US);
	s->births = 0;
	if (nr == SYS_futex && result > 0 && s->state == RUNNABLE)
		await(&returns, returns + 1, WAKE_US);
}

/*
 * Did this call wake others? They are there when nobody runs any more: also who was about to
 * sleep when it was woken, and so is not in the call's result.
 */
static bool woke_others(const struct slot *s)
{
	uint64_t until = ctl_now_us() + YIELD_US;

	while (watch_somebody_runs() && ctl_now_us() < until)
		raw(SYS_sched_yield);
	return __atomic_load_n(&returns, __ATOMIC_ACQUIRE) != s->returns;
}

static void leave(struct tr_ctx *c, long nr, long result)
{
	int me;
	struct slot *s = slot_of(c, &me);

	if (!s || s->state == GONE)
		return;
	bool makes = s->births && result > 0;
	bool waker = yields && s->state == RUNNABLE && may_run(me) && (makes || (s->wakes && woke_others(s)));
	await_others(s, nr, result);
	take();
	if (s->state == BLOCKED)
		returns++;
	s->state = RUNNABLE;
	if (waker && owner == me) {
		s->priority = --lowest;
		owner = NOBODY;
	}
	choose();
	release();
	if (!may_run(me))
		wait_turn(me);
}

/* Locked. */
static void be_born(struct slot *s)
{
	births += !s->born;
	s->born = true;
}

static void begin(struct tr_ctx *c)
{
	int me;
	struct slot *s = slot_of(c, &me);

	if (!s)
		return;
	take();
	s->priority = (int64_t)(ctl_random(ctl.seed, (uint64_t)me + 1) >> 2) + 1;
	s->state = RUNNABLE;
	choose();
	be_born(s);
	release();
	wait_turn(me);
}

static void end(struct tr_ctx *c)
{
	int me;
	struct slot *s = slot_of(c, &me);

	if (!s)
		return;
	take();
	s->state = GONE;
	s->ended = true;
	choose();
	release();
}

void ctl_pct_end(void)
{
	bool some = __atomic_load_n(&waiting, __ATOMIC_RELAXED) > 0;

	take();
	let_go();
	release();
	if (some)
		ctl_linger();
}

void ctl_pct_forked(void)
{
	lock = waiting = 0;
	let_go();
}

/*
 * The rest of an enforced run: a thread joins those that run one at a time, none of
 * them preempted but when it keeps the others waiting for long. Low ranks go first.
 */
void ctl_serial_join(struct tr_ctx *c, unsigned rank)
{
	int me;
	struct slot *s = slot_of(c, &me);

	if (!s || s->state == RUNNABLE)
		return;
	take();
	s->priority = -(int64_t)rank;
	s->state = RUNNABLE;
	choose();
	be_born(s);
	release();
	wait_turn(me);
}

/* A new thread is there, though it may have to wait for something else before it joins. */
void ctl_serial_arrive(struct tr_ctx *c)
{
	int me;
	struct slot *s = slot_of(c, &me);

	if (!s)
		return;
	take();
	be_born(s);
	release();
}

/* Whoever has not joined yet, behind all others; not while it ends. */
void ctl_serial_join_late(struct tr_ctx *c)
{
	int me;
	struct slot *s = slot_of(c, &me);

	if (s && s->state == GONE && !s->ended)
		ctl_serial_join(c, CTL_MAX_EDGES);
}

static bool change_state(struct tr_ctx *c, enum state from, enum state to, int *me)
{
	struct slot *s = slot_of(c, me);

	if (!s || s->state != from)
		return false;
	take();
	s->state = to;
	choose();
	release();
	return true;
}

/* It waits for something else than its turn: another one may run. */
void ctl_serial_pause(struct tr_ctx *c)
{
	int me;

	change_state(c, RUNNABLE, BLOCKED, &me);
}

void ctl_serial_resume(struct tr_ctx *c)
{
	int me;

	if (change_state(c, BLOCKED, RUNNABLE, &me))
		wait_turn(me);
}

uint64_t ctl_serial_yields(void)
{
	return __atomic_load_n(&idle_yields, __ATOMIC_RELAXED);
}

void ctl_serial_init(bool yields_to_woken)
{
	serial = true;
	yields = yields_to_woken;
	slice_us = SERIAL_SLICE_US;
	hold_us = SERIAL_HOLD_US;
	lowest = -CTL_MAX_EDGES;
	ctl_thread_exit = end;
	ctl_syscall_enter = enter;
	ctl_syscall_leave = leave;
}

void ctl_pct_init(uint64_t depth, uint64_t steps)
{
	nchanges = depth > MAX_CHANGES ? MAX_CHANGES : depth ? (unsigned)depth - 1 : 0;
	for (unsigned i = 0; i < nchanges; i++)
		change[i] = ctl_random(ctl.seed, 1000 + i) % (steps ? steps : 1);
	/* Main is there already. */
	slots[0].priority = (int64_t)(ctl_random(ctl.seed, 1) >> 2) + 1;
	slots[0].state = RUNNABLE;
	owner = 0;
	ctl_thread_start = begin;
	ctl_thread_exit = end;
	ctl_syscall_enter = enter;
	ctl_syscall_leave = leave;
}
