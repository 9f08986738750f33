/*
 * Deadlocks: a cycle of lock owners, or every thread blocked.
 *
 * Cycle. A thread that is about to block first publishes what it waits for
 * (blocked_op, sequentially consistent), then follows owner after owner: of the
 * mutex it waits for, of the mutex that owner waits for, and so on, reading
 * owners from the locks themselves. If it comes back to itself, that is a
 * deadlock for certain: it stands still and holds the last lock of the chain,
 * so the thread before it cannot have got it, so that one stands still too, and
 * so on backwards. Whoever closes a cycle publishes last and sees all the others.
 * Timed waits are never published.
 *
 * All blocked. When as many threads are blocked as live, each wait is examined
 * (certain() below): certain, or might it have been woken an instant ago? If all
 * are certain it is a deadlock, reported at once. If not, a helper looks again
 * shortly (watch.c), with the kernel's word on who sleeps. So it does when a thread ends and
 * leaves only blocked ones behind. A raw futex (the translator sees the call) is never certain by
 * itself: what its word means is the program's business.
 *
 * Layouts of glibc's objects (x86-64, stable since 2.25) are in enum layout; objects of
 * threads other than the caller are read with raw_peek(), they may vanish.
 */
#include "preload/deadlock.h"

#include "preload/raw.h"
#include "preload/silence.h"
#include "preload/watch.h"

#include <errno.h>
#include <signal.h>

enum layout {
	MUTEX_OWNER = 8,
	MUTEX_KIND = 16,
	RWLOCK_WRITER = 24,
	RWLOCK_SHARED = 28,
	COND_WREFS = 36,
	BARRIER_IN = 0,     /* arrivals so far */
	BARRIER_ROUND = 4,  /* arrivals of all completed rounds */
	BARRIER_COUNT = 8,
	BARRIER_SHARED = 12,
	SEM_VALUE = 0,
	SEM_SHARED = 8,
};
#define KIND_ERRORCHECK 2
#define KIND_TYPE_MASK 3
#define KIND_SHARED 128

/*
 * Wake-ups (signal, broadcast, post), counted per slot of objects: begun at the
 * event, which comes before the real call, ended at the thread's next event. A
 * wait is unwoken only if none was under way when it began and none began since.
 */
#define WAKE_SLOTS 512
static struct {
	uint64_t begun, ended;
} wakes[WAKE_SLOTS] RAW_LARGE;

static uint32_t wake_slot(uint64_t object)
{
	return (uint32_t)((object >> 3 ^ object >> 12) % WAKE_SLOTS);
}

void deadlock_wake(struct shim_thread *t, uint64_t object)
{
	uint32_t slot = wake_slot(object);

	__atomic_add_fetch(&wakes[slot].begun, 1, __ATOMIC_SEQ_CST);
	t->waking = slot + 1;
}

void deadlock_wake_end(struct shim_thread *t)
{
	__atomic_add_fetch(&wakes[t->waking - 1].ended, 1, __ATOMIC_SEQ_CST);
	t->waking = 0;
}

static uint32_t peek32(uint64_t address, uint32_t missing)
{
	uint32_t v;

	return raw_peek(&v, address, sizeof v) == sizeof v ? v : missing;
}

static const struct shim_held *held_entry(const struct shim_thread *t, uint64_t object)
{
	for (uint32_t i = t->nheld; i-- > 0;)
		if (i < SHIM_HELD_MAX && t->held[i].object == object)
			return &t->held[i];
	return NULL;
}

/* A living thread that has the object on its list; one that is blocked itself, if any. */
static struct shim_thread *holder(uint64_t object, const struct shim_thread *but)
{
	struct shim_thread *found = NULL;

	for (unsigned i = 0, n = shim_nslots(); i < n; i++) {
		struct shim_thread *t = shim_slot(i);

		if (t->life == SHIM_FREE || t == but || !held_entry(t, object))
			continue;
		if (!found || t->blocked_op)
			found = t;
	}
	return found;
}

/*
 * Who holds what t waits for; NULL: nobody, or it cannot be said. mine: t is the
 * caller, so the object is there and need not be peeked at.
 */
static struct shim_thread *owner_of(const struct shim_thread *t, bool mine)
{
	uint64_t object = t->blocked_object;
	uint32_t tid;

#define READ(offset) \
	(mine ? *(const volatile uint32_t *)(object + (offset)) : peek32(object + (offset), 0))

	switch (t->blocked_op) {
	case TRC_OP_LOCK:
		tid = READ(MUTEX_OWNER);
		return tid ? shim_thread_by_tid(tid) : NULL;
	case TRC_OP_RDLOCK:
	case TRC_OP_WRLOCK:
		tid = READ(RWLOCK_WRITER);
		if (tid)
			return shim_thread_by_tid(tid);
		if (t->blocked_op == TRC_OP_RDLOCK)
			return NULL;
		/* One reader in the way is enough, and the worst is oneself. */
		return held_entry(t, object) ? shim_thread_by_tid(t->tid) : holder(object, NULL);
	case TRC_OP_SPINLOCK:
		return holder(object, NULL);
	case TRC_OP_JOIN:
		return shim_thread_joining(t);
	default:
		return NULL;
	}
#undef READ
}

/*
 * An error-checking mutex answers EDEADLK instead of blocking on itself; so do
 * join and the writer of a rwlock. A reader that wants to write does not get that.
 */
static bool refuses_self(const struct shim_thread *t)
{
	switch (t->blocked_op) {
	case TRC_OP_LOCK:
		return (t->blocked_value & KIND_TYPE_MASK) == KIND_ERRORCHECK;
	case TRC_OP_RDLOCK:
	case TRC_OP_WRLOCK:
		return peek32(t->blocked_object + RWLOCK_WRITER, t->tid) == t->tid;
	default:
		return t->blocked_op == TRC_OP_JOIN;
	}
}

/* Does following owners from t lead back to t? */
static bool find_cycle(struct shim_thread *t)
{
	struct shim_thread *at = t;
	unsigned limit = shim_nslots() + 1;

	while (limit--) {
		struct shim_thread *owner = owner_of(at, at == t);

		if (!owner || owner->life == SHIM_GONE)
			return false;
		if (owner == t)
			return at != t || !refuses_self(t);
		if (!__atomic_load_n(&owner->blocked_op, __ATOMIC_SEQ_CST))
			return false;
		at = owner;
	}
	return false;
}

/* ---- all blocked ---- */

static bool mutex_certain(const struct shim_thread *t)
{
	uint32_t tid = peek32(t->blocked_object + MUTEX_OWNER, 0);

	if (tid == t->tid) /* it got the mutex a moment ago, unless it had it before */
		return held_entry(t, t->blocked_object) && !refuses_self(t);
	struct shim_thread *owner = tid ? shim_thread_by_tid(tid) : NULL;

	/* About to wait on a condition: it is letting the mutex go this instant. */
	if (owner && owner->blocked_op == TRC_OP_WAIT && owner->blocked_value == t->blocked_object)
		return false;
	/* A dead owner never unlocks (robust mutexes are released by the kernel). */
	return tid && (owner || raw(SYS_tgkill, shim.pid, tid, 0) == -ESRCH);
}

static bool rwlock_certain(const struct shim_thread *t)
{
	uint32_t writer = peek32(t->blocked_object + RWLOCK_WRITER, 0);

	if (writer == t->tid || (!writer && t->blocked_op == TRC_OP_RDLOCK))
		return false;
	return holder(t->blocked_object, t) != NULL;
}

static bool join_certain(const struct shim_thread *t)
{
	struct shim_thread *other = shim_thread_joining(t);

	return other && other->life == SHIM_LIVE && other != t;
}

static bool unwoken(const struct shim_thread *t)
{
	return __atomic_load_n(&wakes[wake_slot(t->blocked_object)].begun, __ATOMIC_SEQ_CST) ==
	       t->blocked_wakes;
}

/*
 * Everybody who says to wait here must belong to the round that is still open.
 * The caller, if it is one of them, has not gone in yet.
 */
static bool barrier_certain(const struct shim_thread *t, const struct shim_thread *caller)
{
	uint32_t w[3] = { 0 }, waiting = 0;

	if (raw_peek(w, t->blocked_object, sizeof w) != sizeof w)
		return false;
	for (unsigned i = 0, n = shim_nslots(); i < n; i++) {
		struct shim_thread *o = shim_slot(i);

		waiting += o->life == SHIM_LIVE && o->blocked_op == TRC_OP_BARRIER &&
			   o->blocked_object == t->blocked_object && o != caller;
	}
	bool coming = caller && caller->blocked_op == TRC_OP_BARRIER &&
		      caller->blocked_object == t->blocked_object;

	return w[BARRIER_IN / 4] - w[BARRIER_ROUND / 4] == waiting &&
	       waiting + coming < w[BARRIER_COUNT / 4];
}

/* Could another process end this wait? */
static bool is_shared(const struct shim_thread *t)
{
	switch (t->blocked_op) {
	case TRC_OP_LOCK: return t->blocked_value & KIND_SHARED;
	case TRC_OP_RDLOCK:
	case TRC_OP_WRLOCK: return peek32(t->blocked_object + RWLOCK_SHARED, 1) & 0xff;
	case TRC_OP_WAIT: return peek32(t->blocked_object + COND_WREFS, 1) & 1;
	case TRC_OP_SEM_WAIT: return peek32(t->blocked_object + SEM_SHARED, 1);
	case TRC_OP_BARRIER: return peek32(t->blocked_object + BARRIER_SHARED, 1);
	default: return false;
	}
}

static bool certain(const struct shim_thread *t, const struct shim_thread *caller)
{
	if (t->cancelled && t->blocked_op != TRC_OP_LOCK)
		return false;
	switch (t->blocked_op) {
	case TRC_OP_LOCK: return mutex_certain(t);
	case TRC_OP_RDLOCK:
	case TRC_OP_WRLOCK: return rwlock_certain(t);
	case TRC_OP_SPINLOCK: return holder(t->blocked_object, NULL) != NULL;
	case TRC_OP_JOIN: return join_certain(t);
	case TRC_OP_WAIT: return unwoken(t);
	case TRC_OP_SEM_WAIT: return unwoken(t) && !peek32(t->blocked_object + SEM_VALUE, 1);
	case TRC_OP_BARRIER: return barrier_certain(t, caller);
	default: return false;
	}
}

/* Has the program handlers of its own? One may post a semaphore. Those the kernel has of ours do not count. */
static bool has_handlers(void)
{
	const uint64_t faults = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) |
				1ull << (SIGFPE - 1) | 1ull << (SIGILL - 1) |
				1ull << (SIGABRT - 1) | 1ull << (SIGSYS - 1) |
				1ull << (SIGTRAP - 1) | 1ull << (SIGPIPE - 1) |
				3ull << 31; /* libc's own 32, 33 */

	for (int sig = 1; sig <= 64; sig++) {
		struct {
			uint64_t handler, flags, restorer, mask;
		} now;

		if (faults >> (sig - 1) & 1)
			continue;
		if (raw(SYS_rt_sigaction, sig, NULL, &now, sizeof now.mask))
			return true;
		if (now.handler > 1 && !(tr_stands_in && tr_stands_in(sig, now.handler)))
			return true;
	}
	return false;
}

/* caller: the thread that is just about to block, NULL when all are seen asleep. */
static enum deadlock_verdict all_blocked(const struct shim_thread *caller)
{
	bool asleep = !caller;
	enum deadlock_verdict verdict = DEADLOCK_YES;
	uint32_t live = 0;
	bool handlers_wake = false; /* a signal handler may post a semaphore, or wake a futex */

	for (unsigned i = 0, n = shim_nslots(); i < n; i++) {
		struct shim_thread *t = shim_slot(i);

		/* Who was on its way out is gone when the kernel's count is right, below. */
		if (t->life == SHIM_RESERVED || (t->life == SHIM_EXITING && !asleep))
			verdict = DEADLOCK_MAYBE;
		if (t->life != SHIM_LIVE)
			continue;
		live++;
		if (!__atomic_load_n(&t->blocked_op, __ATOMIC_SEQ_CST) || is_shared(t))
			return DEADLOCK_NO;
		handlers_wake |= t->blocked_op == TRC_OP_SEM_WAIT || t->blocked_op == TRC_OP_FUTEX;
		if (!asleep && verdict == DEADLOCK_YES && !certain(t, caller))
			verdict = DEADLOCK_MAYBE;
	}
	if (!live)
		return DEADLOCK_NO;
	if (verdict == DEADLOCK_YES || asleep) {
		if (watch_kernel_threads() != live + shim.nhelpers)
			return asleep ? DEADLOCK_NO : DEADLOCK_MAYBE;
		if (handlers_wake && has_handlers())
			return DEADLOCK_NO;
	}
	return verdict;
}

/*
 * Without lock or system call: most often somebody runs, or was woken a moment ago.
 * Producer and consumer come here at every turn.
 */
static enum deadlock_verdict first_look(void)
{
	for (unsigned i = 0, n = shim_nslots(); i < n; i++) {
		struct shim_thread *t = shim_slot(i);
		uint32_t op = __atomic_load_n(&t->blocked_op, __ATOMIC_SEQ_CST);

		if (t->life == SHIM_RESERVED) /* before all the others are looked at in vain */
			return DEADLOCK_MAYBE;
		if (t->life != SHIM_LIVE)
			continue;
		if (!op)
			return DEADLOCK_NO;
		if ((op == TRC_OP_WAIT || op == TRC_OP_SEM_WAIT) && !unwoken(t))
			return DEADLOCK_MAYBE;
	}
	return DEADLOCK_YES;
}

/* Who waits for a thread that has said good-bye looks at no other: there may be thousands, one joined after the other. */
static enum deadlock_verdict first_look_of(const struct shim_thread *caller)
{
	const struct shim_thread *other = shim_thread_joining(caller);

	if (caller->blocked_op != TRC_OP_JOIN || !other || other->life == SHIM_LIVE || other->life == SHIM_RESERVED)
		return first_look();
	return other->life == SHIM_EXITING ? DEADLOCK_MAYBE : DEADLOCK_NO;
}

enum deadlock_verdict deadlock_all_blocked(const struct shim_thread *caller)
{
	enum deadlock_verdict first = caller ? first_look_of(caller) : DEADLOCK_YES;
	uint64_t saved;

	if (first != DEADLOCK_YES)
		return first;

	rec_lock(&saved);
	uint64_t events = shim_all_events();
	enum deadlock_verdict v = all_blocked(caller);

	/* The threads were examined one after the other: true only if nothing moved meanwhile. */
	if (v == DEADLOCK_YES && shim_all_events() != events)
		v = DEADLOCK_MAYBE;
	rec_unlock(&saved);
	return v;
}

/* ---- publishing ---- */

/*
 * Hundreds that were woken together and are joined one after the other all seem blocked as long as they have not had their
 * turn: not each of them looks at all the others, when somebody does so anyway.
 */
#define MANY 100u
static bool leave_it_to_helper(uint32_t threads)
{
	return threads > MANY && watch_is_looking();
}

void deadlock_block(struct shim_thread *t, unsigned op, uint64_t object, uint64_t site,
		    uint64_t value)
{
	uint64_t pc;

	silence_enter();
	if (!tr_whereabouts || !tr_whereabouts(t, &t->last_sp, &pc))
		t->last_sp = (uint64_t)__builtin_frame_address(0);
	t->blocked_object = object;
	t->blocked_site = site;
	t->blocked_value = value;
	/* ended first: what ends in between must not look like nothing under way */
	uint64_t ended = __atomic_load_n(&wakes[wake_slot(object)].ended, __ATOMIC_SEQ_CST);
	uint64_t begun = __atomic_load_n(&wakes[wake_slot(object)].begun, __ATOMIC_SEQ_CST);

	t->blocked_wakes = begun == ended ? begun : UINT64_MAX;
	/* Posted since it tried: it will not wait. */
	if (op == TRC_OP_SEM_WAIT && *(const volatile uint32_t *)(object + SEM_VALUE))
		t->blocked_wakes = UINT64_MAX;
	__atomic_store_n(&t->blocked_op, op, __ATOMIC_SEQ_CST);
	uint32_t blocked = __atomic_add_fetch(&shim.nblocked, 1, __ATOMIC_SEQ_CST);

	if (__atomic_load_n(&shim.failed, __ATOMIC_RELAXED)) {
		/* the first one stands */
	} else if (op != TRC_OP_WAIT && op != TRC_OP_SEM_WAIT && op != TRC_OP_BARRIER && op != TRC_OP_FUTEX && find_cycle(t)) {
		deadlock_report_cycle(t);
	} else if (blocked >= __atomic_load_n(&shim.nlive, __ATOMIC_SEQ_CST)) {
		enum deadlock_verdict v = leave_it_to_helper(blocked) ? DEADLOCK_MAYBE : deadlock_all_blocked(t);

		if (v == DEADLOCK_YES)
			deadlock_report_all();
		else if (v == DEADLOCK_MAYBE)
			watch_suspect();
	}
	silence_leave();
}

void deadlock_unblock(struct shim_thread *t)
{
	__atomic_store_n(&t->blocked_op, 0, __ATOMIC_SEQ_CST);
	__atomic_sub_fetch(&shim.nblocked, 1, __ATOMIC_SEQ_CST);
	if (__builtin_expect(shim.deadlocked, 0))
		deadlock_withdraw(t);
}

/* Its end wakes somebody? Then that one will come by again. */
static bool is_joined(const struct shim_thread *t)
{
	for (unsigned i = 0, n = shim_nslots(); i < n; i++) {
		const struct shim_thread *o = shim_slot(i);

		if (o->life == SHIM_LIVE && o->blocked_op == TRC_OP_JOIN &&
		    shim_thread_joining(o) == t)
			return true;
	}
	return false;
}

void deadlock_leave(const struct shim_thread *t)
{
	uint32_t live = __atomic_load_n(&shim.nlive, __ATOMIC_SEQ_CST);

	if (live && __atomic_load_n(&shim.nblocked, __ATOMIC_SEQ_CST) >= live &&
	    !__atomic_load_n(&shim.failed, __ATOMIC_RELAXED) && (leave_it_to_helper(live) || !is_joined(t)))
		watch_suspect();
}

struct shim_thread *deadlock_owner(const struct shim_thread *t)
{
	return owner_of(t, false);
}

const struct shim_held *deadlock_held(const struct shim_thread *t, uint64_t object)
{
	return held_entry(t, object);
}
