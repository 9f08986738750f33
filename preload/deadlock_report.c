/* What is written and said about a deadlock or a hang. */
#include "preload/asleep.h"
#include "preload/deadlock.h"
#include "preload/raw.h"

#include <signal.h>

#define MOST_TOLD 8 /* threads that the text names */

static const char *const waits_for[TRC_OP_COUNT] = {
	[TRC_OP_LOCK] = "mutex", [TRC_OP_RDLOCK] = "rwlock", [TRC_OP_WRLOCK] = "rwlock",
	[TRC_OP_SPINLOCK] = "spin lock", [TRC_OP_JOIN] = "the end of", [TRC_OP_WAIT] = "condition",
	[TRC_OP_SEM_WAIT] = "semaphore", [TRC_OP_BARRIER] = "barrier",
};

static void describe(struct raw_text *text, const struct shim_thread *t)
{
	struct shim_thread *owner = deadlock_owner(t);

	text_str(text, t->id);
	if (!t->blocked_op) {
		asleep_describe(text, t);
		return;
	}
	if (t->blocked_op == TRC_OP_FUTEX) {
		asleep_describe_futex(text, t->blocked_object);
		return;
	}
	text_str(text, " waits for ");
	text_str(text, waits_for[t->blocked_op] ? waits_for[t->blocked_op] : "something");
	text_str(text, " ");
	if (t->blocked_op == TRC_OP_JOIN) {
		text_str(text, owner ? owner->id : "a thread");
		return;
	}
	text_hex(text, t->blocked_object);
	if (owner) {
		text_str(text, " held by ");
		text_str(text, owner->id);
	}
}

static void write_blocked(const struct shim_thread *t, bool cycle)
{
	struct trc_blocked *r = rec_begin(&rec_process, sizeof *r);
	struct shim_thread *owner = deadlock_owner(t);
	const struct shim_held *held = owner ? deadlock_held(owner, t->blocked_object) : NULL;

	if (!r)
		return;
	r->thread = t->index;
	r->op = (uint16_t)t->blocked_op;
	r->cycle = cycle;
	r->object = t->blocked_object;
	r->site = t->blocked_site;
	r->owner = owner ? owner->index : SHIM_NO_THREAD;
	r->owner_site = held ? held->site : 0;
	rec_commit(&rec_process, r, TRC_BLOCKED, 0, sizeof *r);
}

static bool in_cycle(const struct shim_thread *t, struct shim_thread *start)
{
	struct shim_thread *at = start;

	for (unsigned limit = shim_nslots() + 1; start && at && limit--;) {
		if (at == t)
			return true;
		at = deadlock_owner(at);
		if (at == start)
			break;
	}
	return false;
}

void deadlock_die(void)
{
	struct {
		void *handler;
		unsigned long flags, restorer, mask;
	} dfl = { 0 };
	uint64_t mask = 1ull << (SIGABRT - 1);

	shim_process_end(1, SIGABRT);
	raw(SYS_rt_sigaction, SIGABRT, &dfl, NULL, 8);
	raw(SYS_rt_sigprocmask, SIG_UNBLOCK, &mask, NULL, 8);
	/* Process-directed: a helper thread with all signals blocked may be the one to say it. */
	raw(SYS_kill, shim.pid, SIGABRT);
}

/* start: a member of the cycle, or NULL when all threads are blocked. */
static void report(enum trc_failure_kind kind, struct shim_thread *t, struct shim_thread *start)
{
	struct shim_fault f = { 0 };
	uint64_t regs[TRC_NREGS] = { 0 }, saved;
	char buf[800];
	struct raw_text text = { buf, 0, sizeof buf };
	unsigned told = 0;

	rec_lock(&saved);
	/* A handler of the program that stands still: what it handles is the failure. */
	shim_failure_settle(true);
	if (!shim.failed) {
		text_str(&text, kind == TRC_FAIL_HANG ? "hang: no event for the time hang= gives" :
				start ? "deadlock" : "deadlock: all threads are blocked");
		for (unsigned i = 0, n = shim_nslots(); i < n; i++) {
			struct shim_thread *o = shim_slot(i);

			if (o->life != SHIM_LIVE || (start && !in_cycle(o, start)) || told++ >= MOST_TOLD)
				continue;
			text_str(&text, told == 1 ? ": " : "; ");
			describe(&text, o);
		}
		if (told > MOST_TOLD) {
			text_str(&text, "; and ");
			text_num(&text, told - MOST_TOLD);
			text_str(&text, " more");
		}
		regs[TRC_RIP] = t ? t->blocked_site : 0;
		regs[TRC_RSP] = t ? t->last_sp : 0;
		if (t && tr_path_pos)
			f.path_pos = tr_path_pos(t);
		shim_failure(kind, t, &f, regs, text.s, NULL, 0);
		for (unsigned i = 0, n = shim_nslots(); i < n; i++) {
			struct shim_thread *o = shim_slot(i);

			if (o->life == SHIM_LIVE && o->blocked_op)
				write_blocked(o, start && in_cycle(o, start));
		}
		shim.deadlocked = true;
		if (shim_opt.deadlock == SHIM_DEADLOCK_WAIT)
			shim_say(0, "the program is left waiting, as it would be without csched; its trace can be explained now "
				    "(--deadlock=abort ends such a run)");
	}
	rec_unlock(&saved);
	if (shim_opt.deadlock == SHIM_DEADLOCK_ABORT)
		deadlock_die();
}

void deadlock_report_cycle(struct shim_thread *t)
{
	report(TRC_FAIL_DEADLOCK, t, t);
}

/* The thread to name: the first that is blocked. */
static struct shim_thread *somebody(void)
{
	for (unsigned i = 0, n = shim_nslots(); i < n; i++)
		if (shim_slot(i)->life == SHIM_LIVE && shim_slot(i)->blocked_op)
			return shim_slot(i);
	return NULL;
}

void deadlock_report_all(void)
{
	report(TRC_FAIL_DEADLOCK, somebody(), NULL);
}

void deadlock_report_hang(void)
{
	report(TRC_FAIL_HANG, somebody(), NULL);
}

void deadlock_withdraw(struct shim_thread *t)
{
	uint64_t saved;
	TEXT(line, 160);

	rec_lock(&saved);
	if (shim.deadlocked) {
		shim_failure_withdraw();
		text_str(&line, "that was no deadlock: ");
		text_str(&line, t->id);
		text_str(&line, " went on");
		shim_say(0, line.s);
	}
	rec_unlock(&saved);
}
