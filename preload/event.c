/*
 * The native side of the record primitive: one call per interposed operation.
 *
 * The common case (lock, unlock) is a table look-up, a push or pop on the list of held
 * locks and 16 bytes written (quick()); everything else is out of line. Measured on a lock/unlock
 * loop: half of quick()'s time is rdtsc.
 */
#include "preload/event.h"

#include "preload/control/control.h"
#include "preload/deadlock.h"
#include "preload/raw.h"
#include "preload/shim.h"
#include "preload/translate/layout.h"

enum trait {
	ACQUIRES = 1,  /* DONE with success: the object is held now */
	RELEASES = 2,
	WAITS = 4,     /* BLOCK without a time-out: may be part of a deadlock */
	WAKES = 8,     /* may let a waiter of the object go on */
	SPECIAL = 16,  /* see special() */
};

static const uint8_t traits[TRC_OP_COUNT] = {
	[TRC_OP_NONE] = SPECIAL,
	[TRC_OP_CREATE] = SPECIAL,
	[TRC_OP_EXIT] = SPECIAL,
	[TRC_OP_JOIN] = SPECIAL | WAITS,
	[TRC_OP_TRYJOIN] = SPECIAL,
	[TRC_OP_TIMEDJOIN] = SPECIAL,
	[TRC_OP_DETACH] = SPECIAL,
	[TRC_OP_CANCEL] = SPECIAL,
	[TRC_OP_LOCK] = ACQUIRES | WAITS,
	[TRC_OP_TRYLOCK] = ACQUIRES,
	[TRC_OP_TIMEDLOCK] = ACQUIRES,
	[TRC_OP_UNLOCK] = RELEASES,
	[TRC_OP_RDLOCK] = ACQUIRES | WAITS,
	[TRC_OP_TRYRDLOCK] = ACQUIRES,
	[TRC_OP_TIMEDRDLOCK] = ACQUIRES,
	[TRC_OP_WRLOCK] = ACQUIRES | WAITS,
	[TRC_OP_TRYWRLOCK] = ACQUIRES,
	[TRC_OP_TIMEDWRLOCK] = ACQUIRES,
	[TRC_OP_RWUNLOCK] = RELEASES,
	[TRC_OP_SPINLOCK] = ACQUIRES | WAITS,
	[TRC_OP_SPINTRYLOCK] = ACQUIRES,
	[TRC_OP_SPINUNLOCK] = RELEASES,
	[TRC_OP_WAIT] = SPECIAL | WAITS,
	[TRC_OP_TIMEDWAIT] = SPECIAL,
	[TRC_OP_SIGNAL] = WAKES,
	[TRC_OP_BROADCAST] = WAKES,
	[TRC_OP_BARRIER] = WAITS,
	[TRC_OP_SEM_WAIT] = WAITS,
	[TRC_OP_SEM_POST] = WAKES,
	[TRC_OP_FORK] = SPECIAL,
	[TRC_OP_EXEC] = SPECIAL,
	[TRC_OP_SPAWN] = SPECIAL,
	[TRC_OP_PROCESS_EXIT] = SPECIAL,
	[TRC_OP_QUICK_EXIT] = SPECIAL,
	[TRC_OP_ASSERT] = SPECIAL,
	[TRC_OP_USER_FAIL] = SPECIAL,
	[TRC_OP_PANIC] = SPECIAL,
};

struct event {
	unsigned op, at;
	uint64_t object, site;
	long result;
	uint64_t thread, value;
};

static inline void held_push(struct shim_thread *t, uint64_t object, uint64_t site, unsigned op)
{
	uint32_t n = t->nheld;

	/* More than fit: the deadlock report will lack where they were taken. */
	if (n < SHIM_HELD_MAX) {
		t->held[n].object = object;
		t->held[n].site = site;
		t->held[n].op = op;
		t->nheld = n + 1;
	}
}

static void held_pop(struct shim_thread *t, uint64_t object)
{
	for (uint32_t i = t->nheld; i-- > 0;) {
		if (t->held[i].object != object)
			continue;
		t->nheld--;
		for (; i < t->nheld; i++)
			t->held[i] = t->held[i + 1];
		return;
	}
}

static void fill(struct trc_sync *r, const struct event *e)
{
	r->tsc = raw_tsc();
	r->object = e->object;
	r->site = e->site;
	r->result = (int32_t)e->result;
	r->thread = (uint32_t)e->thread;
	r->value = e->value;
}

static void write_whole(struct shim_thread *t, unsigned op_at, const struct event *e)
{
	struct trc_sync *r = rec_begin(&t->rec, sizeof *r);

	if (!r)
		return;
	fill(r, e);
	rec_commit(&t->rec, r, TRC_SYNC, op_at, sizeof *r);
}

static __attribute__((noinline)) void write_named(struct shim_thread *t, unsigned op_at,
						  uint32_t slot, uint64_t object, uint64_t site,
						  uint64_t value)
{
	struct trc_sync_named *r = rec_begin(&t->rec, sizeof *r);
	const struct event e = { .object = object, .site = site, .thread = SHIM_NO_THREAD,
				 .value = value };

	t->named[slot] = (struct shim_named){ object, site, value, op_at };
	if (!r)
		return;
	fill(&r->sync, &e);
	r->slot = slot;
	rec_commit(&t->rec, r, TRC_SYNC, op_at, sizeof *r);
}

/* As in tr_enter_event. */
static uint32_t slot_of(unsigned op_at, uint64_t object, uint64_t site)
{
	return (uint32_t)(object >> 3 ^ site ^ site >> 7 ^ op_at * 5) % TRC_SYNC_SLOTS;
}

/*
 * Which thread had the last event on an object, by hash; index + 1. Only a hint: a thread that reads
 * what another is about to overwrite leaves out one timestamp, and the other has its own.
 */
#define USERS 1024
extern uint32_t shim_users[USERS];
uint32_t shim_users[USERS] RAW_LARGE; /* tr_enter_event looks, too */

static inline uint32_t *user_of(uint64_t object)
{
	return &shim_users[(object >> 3 ^ object >> 13) % USERS];
}

static inline bool is_alone(const struct shim_thread *t, uint64_t object)
{
	uint32_t *user = user_of(object), me = t->index + 1;

	if (__atomic_load_n(user, __ATOMIC_RELAXED) == me)
		return true;
	__atomic_store_n(user, me, __ATOMIC_RELAXED);
	return false;
}

/*
 * A repetition needs no timestamp where the path says what was before it, nobody else uses the
 * object and the clock was read a moment ago: 256 bytes of path are a few
 * thousand instructions. rdtsc takes 12-25 ns in a VM, as much as all the rest here.
 */
#define CLOCK_STEP 256

static inline bool needs_no_time(struct shim_thread *t, uint64_t object)
{
	if (!t->path_ptr || !is_alone(t, object))
		return false;
	uint64_t at = *t->path_ptr;

	if (at - t->clock_at < CLOCK_STEP)
		return true;
	t->clock_at = at;
	return false;
}

/* `timed`: this one must have a timestamp. */
static inline __attribute__((always_inline)) void
write_again(struct shim_thread *t, uint32_t slot, uint64_t object, bool timed)
{
	if (!timed && needs_no_time(t, object)) {
		rec_again(&t->rec, slot);
		return;
	}
	struct trc_again *r = rec_begin(&t->rec, sizeof *r);

	if (!r)
		return;
	r->tsc = raw_tsc();
	rec_commit(&t->rec, r, TRC_AGAIN, slot, sizeof *r);
}

/*
 * An operation that succeeded and is about no other thread. Handlers of the program may come
 * between looking at a slot and writing the record: their operations are written whole.
 */
static inline __attribute__((always_inline)) void
write_plain(struct shim_thread *t, unsigned op_at, uint64_t object, uint64_t site, uint64_t value,
	    bool timed)
{
	uint32_t slot = slot_of(op_at, object, site);
	const struct shim_named *n = &t->named[slot];

	t->naming = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(n->object == object && n->site == site && n->value == value &&
			     n->op_at == op_at, 1)) {
		write_again(t, slot, object, timed);
	} else {
		write_named(t, op_at, slot, object, site, value);
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->naming = false;
}

static void write_sync(struct shim_thread *t, unsigned op_at, const struct event *e)
{
	t->nevents++;
	if (!e->result && (uint32_t)e->thread == SHIM_NO_THREAD && !t->naming)
		write_plain(t, op_at, e->object, e->site, e->value, true);
	else
		write_whole(t, op_at, e);
}

static void write_child(struct shim_thread *t, unsigned how, uint32_t pid)
{
	uint64_t saved;

	rec_lock(&saved);
	struct trc_child *r = rec_begin(&rec_process, sizeof *r);

	if (r) {
		r->tsc = raw_tsc();
		r->thread = t->index;
		r->pid = pid;
		rec_commit(&rec_process, r, TRC_CHILD, how, sizeof *r);
	}
	rec_unlock(&saved);
}

/* Looked up before the wait, and remembered behind it. */
static struct shim_thread *joins(struct shim_thread *t, const struct event *e)
{
	struct shim_thread *other;

	if (e->at == TRC_AT_BLOCK) {
		other = shim_thread_by_pthread(e->object);
		t->joining = other ? other->index + 1 : 0;
		return other;
	}
	other = shim_thread_joining(t);
	t->joining = 0;
	return other;
}

/* What must be known before the record is written: the other thread's number. */
static void special_before(struct shim_thread *t, struct event *e)
{
	struct shim_thread *other;

	switch (e->op) {
	case TRC_OP_CREATE:
		if (e->at == TRC_AT_BEGIN) {
			other = shim_thread_reserve(t, e->value);
			if (other)
				other->detached = e->thread;
			t->pending = other;
			t->pending_index = other ? other->index : SHIM_NO_THREAD;
		}
		e->thread = t->pending_index;
		break;
	case TRC_OP_JOIN:
	case TRC_OP_TIMEDJOIN:
		other = joins(t, e);
		e->thread = other ? other->index : SHIM_NO_THREAD;
		break;
	case TRC_OP_TRYJOIN:
		other = shim_thread_tryjoined(e->object);
		e->thread = other ? other->index : SHIM_NO_THREAD;
		break;
	case TRC_OP_DETACH:
	case TRC_OP_CANCEL:
		other = shim_thread_by_pthread(e->object);
		e->thread = other ? other->index : SHIM_NO_THREAD;
		if (other && e->op == TRC_OP_CANCEL)
			other->cancelled = true;
		break;
	case TRC_OP_WAIT:
	case TRC_OP_TIMEDWAIT:
		if (e->at == TRC_AT_BLOCK)
			held_pop(t, e->value);
		break;
	}
}

static void created(struct shim_thread *t, const struct event *e)
{
	struct shim_thread *other = shim_thread_at(t->pending_index);

	t->pending = NULL;
	if (!other)
		return;
	if (e->result)
		shim_thread_unreserve(other);
	else
		shim_thread_set_pthread(other, e->object);
}

static void joined(const struct event *e)
{
	struct shim_thread *other = shim_thread_at((uint32_t)e->thread);

	if (!other || e->result || e->at != TRC_AT_DONE)
		return;
	if (e->op != TRC_OP_DETACH)
		shim_thread_exit(other);
	shim_thread_settled(other);
}

static void process_exit(const struct shim_thread *t, const struct event *e)
{
	/* The translator sees the system call itself, and later; unless it has let this thread go
	 * (while another stays in a system call: so the mode is still what it was). */
	bool unseen = shim_opt.mode == SHIM_MODE_SYNC || (tr_is_native && tr_is_native(t));

	if (unseen && e->at == TRC_AT_DONE)
		shim_process_end(0, (int)e->result);
}

static void user_failure(struct shim_thread *t, const struct event *e)
{
	struct shim_fault f = { 0 };
	uint64_t regs[TRC_NREGS] = { 0 };

	regs[TRC_RIP] = e->site;
	regs[TRC_RSP] = e->value;
	if (tr_path_pos)
		f.path_pos = tr_path_pos(t);
	if (e->op == TRC_OP_ASSERT)
		shim_failure_assert(t, &f, regs, (const struct shim_assertion *)e->object);
	else if (e->op == TRC_OP_PANIC)
		shim_failure_panic(t, &f, regs, e->object);
	else
		shim_failure_user(t, &f, regs, (const char *)e->object);
}

static void special_after(struct shim_thread *t, const struct event *e)
{
	switch (e->op) {
	case TRC_OP_CREATE:
		if (e->at == TRC_AT_DONE)
			created(t, e);
		break;
	case TRC_OP_EXIT:
		shim_thread_leaving(t);
		break;
	case TRC_OP_JOIN:
	case TRC_OP_TRYJOIN:
	case TRC_OP_TIMEDJOIN:
	case TRC_OP_DETACH:
		joined(e);
		break;
	case TRC_OP_WAIT:
	case TRC_OP_TIMEDWAIT:
		if (e->at == TRC_AT_DONE)
			held_push(t, e->value, e->site, TRC_OP_WAIT);
		break;
	case TRC_OP_FORK:
		if (e->at == TRC_AT_DONE && e->result > 0)
			write_child(t, 0, (uint32_t)e->result);
		break;
	case TRC_OP_SPAWN:
		if (e->at == TRC_AT_DONE && !e->result)
			write_child(t, 2, (uint32_t)e->value);
		break;
	case TRC_OP_EXEC:
		/* The translator sees the system call itself, and each place where execvp() looks. */
		if (shim_opt.mode == SHIM_MODE_PATH && !tr_is_native(t))
			break;
		if (e->at == TRC_AT_BEGIN)
			shim_exec_begin((const char *)e->object);
		else
			shim_exec_failed();
		break;
	case TRC_OP_PROCESS_EXIT:
	case TRC_OP_QUICK_EXIT:
		process_exit(t, e);
		break;
	case TRC_OP_ASSERT:
	case TRC_OP_USER_FAIL:
	case TRC_OP_PANIC:
		user_failure(t, e);
		break;
	}
}

/* A vfork child runs on our memory until it execs or exits: that is not this process's end. */
static bool is_of_child(unsigned op)
{
	return (op == TRC_OP_EXEC || op == TRC_OP_PROCESS_EXIT || op == TRC_OP_QUICK_EXIT) &&
	       *shim_here && shim_is_other_process();
}

/* Not recording, or a fork since the last event. True: go on with this event. */
static bool unusual(unsigned op, unsigned at)
{
	if (shim.state == SHIM_OFF)
		return false;
	if (shim.state == SHIM_ENDED && op == TRC_OP_EXEC && at == TRC_AT_DONE &&
	    shim_opt.mode == SHIM_MODE_SYNC)
		shim_exec_failed();
	if (!*shim_here)
		shim_after_fork();
	if (shim.state == SHIM_DORMANT) {
		/* Most forked children only exec or exit: those leave no trace. */
		if (op == TRC_OP_EXEC || op == TRC_OP_PROCESS_EXIT || op == TRC_OP_FORK ||
		    op == TRC_OP_NONE)
			return false;
		if (!shim_start_trace())
			return false;
	}
	return shim.state == SHIM_RECORDING;
}

/* In path mode the translator made the thread's struct at the clone system call. */
static struct shim_thread *thread_main(uint64_t key, uint64_t pthread)
{
	if (shim_self_hook) {
		struct shim_thread *t = shim_self();

		if (t)
			shim_thread_set_pthread(t, pthread);
		return t;
	}
	struct shim_thread *t = shim_thread_claim(key, pthread);

	return t ? t : shim_self();
}

/* The next event of a thread: what it was about to do, or waited for, is behind it. */
static void no_longer(struct shim_thread *t)
{
	if (t->blocked_op)
		deadlock_unblock(t);
	if (t->waking)
		deadlock_wake_end(t);
}

static inline uint64_t stack_pointer(void)
{
	uint64_t sp;

	__asm__ volatile("movq %%rsp, %0" : "=r"(sp));
	return sp;
}

/* A lock or unlock, and the like, that has nothing to wait for. */
static inline __attribute__((always_inline)) void
quick(struct shim_thread *t, unsigned op, uint64_t object, uint64_t site, uint64_t value)
{
	unsigned trait = traits[op];

	if (trait & RELEASES) {
		if (__builtin_expect(t->nheld && t->held[t->nheld - 1].object == object, 1))
			t->nheld--;
		else
			held_pop(t, object);
	}
	t->last_site = site;
	/* In path mode we run on the translator's stack; it knows the program's. */
	if (shim_opt.mode == SHIM_MODE_SYNC)
		t->last_sp = stack_pointer();
	t->nevents++;
	write_plain(t, op, object, site, value, false);
	if (trait & ACQUIRES)
		held_push(t, object, site, op);
}

static __attribute__((noinline)) long any_event(unsigned op_at, uint64_t object, uint64_t site,
						long result, uint64_t thread, uint64_t value)
{
	struct event e = { TRC_SYNC_OP(op_at), TRC_SYNC_AT(op_at), object, site,
			   result, thread, value };
	unsigned trait = traits[e.op];

	bool usual = shim.state == SHIM_RECORDING && *shim_here;

	if (__builtin_expect(!usual, 0) && !unusual(e.op, e.at))
		return result;
	struct shim_thread *t = e.op == TRC_OP_THREAD_MAIN ? thread_main(value, object) :
							     shim_self();

	if (!t)
		return result;
	if (__builtin_expect(t->blocked_op | t->waking, 0))
		no_longer(t);
	if (__builtin_expect(ctl.active, 0))
		ctl_event(t, op_at, object, value);
	if (trait & SPECIAL && is_of_child(e.op))
		return result;
	/* pthread_exit() said it; unwinding then came to the thread's first frame. */
	if (e.op == TRC_OP_EXIT && t->life == SHIM_EXITING)
		return result;
	if (e.op == TRC_OP_NONE) {
		struct shim_thread *named = shim_thread_by_pthread(object);

		if (named)
			shim_thread_name(named, (const char *)value, thread);
		return result;
	}
	if (trait & RELEASES)
		held_pop(t, object);
	if (trait & SPECIAL)
		special_before(t, &e);
	if (trait & WAKES)
		deadlock_wake(t, object);
	if (site)
		t->last_site = site;
	/* In path mode we run on the translator's stack; it knows the program's. */
	if (shim_opt.mode == SHIM_MODE_SYNC)
		t->last_sp = (uint64_t)&e;
	write_sync(t, op_at, &e);
	if (e.at == TRC_AT_BLOCK) {
		if (trait & WAITS)
			deadlock_block(t, e.op, object, site, value);
	} else if (trait & ACQUIRES && (result == 0 || result == SHIM_EOWNERDEAD)) {
		held_push(t, object, site, e.op);
	}
	if (trait & SPECIAL)
		special_after(t, &e);
	return result;
}

/*
 * tr_enter_event, in assembly, does in path mode the lock or unlock that is like an earlier one and needs
 * no timestamp: what quick() does, without saving a register.
 */
#define AT(field, offset) _Static_assert(offsetof(struct shim_thread, field) == (offset), "layout.h")
AT(rec.pos, THREAD_POS);
AT(rec.end, THREAD_END);
AT(rec.again, THREAD_AGAIN);
AT(rec.again_at, THREAD_AGAIN_AT);
AT(rec.again_end, THREAD_AGAIN_END);
AT(nevents, THREAD_NEVENTS);
AT(blocked_op, THREAD_BUSY);
AT(waking, THREAD_BUSY + 4);
AT(nheld, THREAD_NHELD);
AT(last_site, THREAD_LAST_SITE);
AT(held, THREAD_HELD);
AT(held[0].object, THREAD_HELD);
AT(held[0].site, THREAD_HELD + 8);
AT(held[0].op, THREAD_HELD + 16);
AT(held[1], THREAD_HELD + 24);
AT(clock_at, THREAD_CLOCK_AT);
AT(named[0].object, THREAD_NAMED);
AT(named[0].site, THREAD_NAMED + 8);
AT(named[0].value, THREAD_NAMED + 16);
AT(named[0].op_at, THREAD_NAMED + 24);
AT(named[1], THREAD_NAMED + 32);
AT(index, THREAD_INDEX);
_Static_assert(SHIM_HELD_MAX == THREAD_HELD_MAX && TRC_SYNC_SLOTS == EVENT_SLOTS &&
	       CLOCK_STEP == EVENT_CLOCK_STEP && USERS == EVENT_USERS, "layout.h");
_Static_assert(TRC_OP_LOCK == EVENT_LOCK && TRC_OP_UNLOCK == EVENT_UNLOCK && TRC_AT_DONE == 0 &&
	       TRC_AGAIN == EVENT_AGAIN && TRC_AGAINS == EVENT_AGAINS && SHIM_RECORDING == STATE_RECORDING, "layout.h");
_Static_assert(offsetof(struct ctl, active) == 0 && offsetof(struct shim_process, state) == 0 &&
	       (uint32_t)SHIM_NO_THREAD == UINT32_MAX, "entry.S");

long shim_event_native(unsigned op_at, uint64_t object, uint64_t site, long result,
		       uint64_t thread, uint64_t value)
{
	unsigned op = TRC_SYNC_OP(op_at);

	/* op_at == op: at TRC_AT_DONE */
	if (__builtin_expect(traits[op] & (ACQUIRES | RELEASES) && op_at == op && !result &&
			     shim.state == SHIM_RECORDING && *shim_here && !ctl.active, 1)) {
		struct shim_thread *t = shim_self_hook ? shim_self_hook() : shim_own;

		if (__builtin_expect(t && !(t->blocked_op | t->waking) && !t->naming, 1)) {
			quick(t, op, object, site, value);
			return 0;
		}
	}
	return any_event(op_at, object, site, result, thread, value);
}
