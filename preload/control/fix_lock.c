/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Locks of a fix's own, and waiting under a fix: never for ever. When nobody else can go on, or it takes too
 * long, the run ends as a deadlock under the fix, and says who waited for what.
 */
#include "preload/control/fix.h"

#include "preload/deadlock.h"
#include "preload/raw.h"
#include "preload/watch.h"

#include <linux/futex.h>
#include <time.h>

#define POLL_US 2000
/* Everybody else was blocked for so long: nobody is left to do what is waited for. */
#define STUCK_US 60000
/* Others run, or wait for something we do not see: no program that is tried takes so long by itself. */
#define PATIENCE_US 4000000

static struct {
	uint32_t owner; /* thread index + 1, a futex; 0: free */
	uint32_t depth;
} locks[FIX_LOCKS];
static uint32_t waiting; /* threads that wait here, of those that do not count as blocked */
static bool over;        /* the run has failed: nobody waits any more */

static bool nobody_can_go_on(void)
{
	return __atomic_load_n(&shim.nblocked, __ATOMIC_RELAXED) + __atomic_load_n(&waiting, __ATOMIC_RELAXED) >=
		       __atomic_load_n(&shim.nlive, __ATOMIC_RELAXED) &&
	       !watch_somebody_runs();
}

static void fail(struct shim_thread *t, bool stuck, const char *what, uint64_t number)
{
	struct shim_fault f = { 0 };
	uint64_t regs[TRC_NREGS] = { 0 }, saved;
	TEXT(text, 200);

	rec_lock(&saved);
	if (!shim.failed) {
		text_str(&text, CTL_FIX_DEADLOCK);
		text_str(&text, t->id);
		text_str(&text, " waits for ");
		text_str(&text, what);
		text_num(&text, (int64_t)number);
		text_str(&text, stuck ? ", and no other thread can continue" : ", for too long");
		regs[TRC_RIP] = t->last_site;
		regs[TRC_RSP] = t->last_sp;
		if (tr_path_pos)
			f.path_pos = tr_path_pos(t);
		shim_failure(TRC_FAIL_DEADLOCK, t, &f, regs, text.s, NULL, 0);
	}
	rec_unlock(&saved);
	__atomic_store_n(&over, true, __ATOMIC_SEQ_CST);
	if (shim_opt.deadlock == SHIM_DEADLOCK_ABORT)
		deadlock_die();
}

void fix_wake(uint32_t *word)
{
	raw(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 0x7fffffff);
}

bool fix_wait(struct fix_patience *p, struct shim_thread *t, uint32_t *word, uint32_t held, const char *what, uint64_t number)
{
	const struct timespec poll = { 0, POLL_US * 1000 };
	bool counted = __atomic_load_n(&t->blocked_op, __ATOMIC_RELAXED) != 0;
	uint64_t now = ctl_now_us(), seen;

	if (!p->begin)
		p->begin = p->stuck = now;
	if (__atomic_load_n(&over, __ATOMIC_ACQUIRE))
		return false;
	__atomic_fetch_add(&waiting, !counted, __ATOMIC_RELAXED);
	raw(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, held, &poll);
	now = ctl_now_us();
	seen = shim_all_events();
	if (seen != p->events || !nobody_can_go_on())
		p->stuck = now;
	p->events = seen;
	bool vain = now - p->stuck > STUCK_US;
	if ((vain || now - p->begin > PATIENCE_US) && __atomic_load_n(word, __ATOMIC_ACQUIRE) == held)
		fail(t, vain, what, number);
	__atomic_fetch_sub(&waiting, !counted, __ATOMIC_RELAXED);
	return !__atomic_load_n(&over, __ATOMIC_ACQUIRE);
}

bool fix_lock_is_mine(const struct shim_thread *t, uint32_t lock)
{
	return __atomic_load_n(&locks[lock].owner, __ATOMIC_RELAXED) == t->index + 1;
}

bool fix_lock_try(const struct shim_thread *t, uint32_t lock)
{
	uint32_t free_ = 0;

	if (!fix_lock_is_mine(t, lock) &&
	    !__atomic_compare_exchange_n(&locks[lock].owner, &free_, t->index + 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	locks[lock].depth++;
	return true;
}

static bool wait_for_it(struct shim_thread *t, uint32_t lock)
{
	uint32_t *word = &locks[lock].owner, owner;
	struct fix_patience p = { 0 };

	while (!fix_lock_try(t, lock))
		if ((owner = __atomic_load_n(word, __ATOMIC_ACQUIRE)) &&
		    !fix_wait(&p, t, word, owner, "lock ", lock))
			return false;
	return true;
}

/* Where one thread runs at a time, who waits lets the others. */
void fix_lock_take(struct tr_ctx *c, uint32_t lock)
{
	const uint64_t args[6] = { (uint64_t)&locks[lock].owner, FUTEX_WAIT };

	if (fix_lock_try(c->thread, lock))
		return;
	if (ctl_syscall_enter)
		ctl_syscall_enter(c, SYS_futex, args);
	wait_for_it(c->thread, lock);
	if (ctl_syscall_leave)
		ctl_syscall_leave(c, SYS_futex, 0);
}

void fix_lock_release(const struct shim_thread *t, uint32_t lock)
{
	if (!fix_lock_is_mine(t, lock) || --locks[lock].depth)
		return;
	__atomic_store_n(&locks[lock].owner, 0, __ATOMIC_RELEASE);
	fix_wake(&locks[lock].owner);
}

uint32_t fix_lock_release_all(const struct shim_thread *t, uint32_t lock)
{
	uint32_t depth = fix_lock_is_mine(t, lock) ? locks[lock].depth : 0;

	if (depth) {
		locks[lock].depth = 1;
		fix_lock_release(t, lock);
	}
	return depth;
}

void fix_lock_set_depth(uint32_t lock, uint32_t depth)
{
	locks[lock].depth = depth;
}

void fix_lock_take_again(struct shim_thread *t, uint32_t lock, uint32_t depth)
{
	if (wait_for_it(t, lock))
		locks[lock].depth = depth;
}

void fix_locks_forked(const struct shim_thread *t)
{
	waiting = 0;
	for (unsigned i = 0; i < FIX_LOCKS; i++)
		if (locks[i].owner && (!t || locks[i].owner != t->index + 1))
			locks[i].owner = locks[i].depth = 0;
}
