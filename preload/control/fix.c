/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Advice applied to the running program: regions of code are made atomic by a lock of the fix's own, an order
 * is kept, a wait is repeated, a free is left out. Whatever thread comes to a point of the fix does
 * what the changed program would do there.
 *
 * A region begins before an instruction and ends behind another one, or when its function returns, however it
 * does: at a return the stack pointer tells that the frame is gone, be it by longjmp or an exception. While a thread waits for
 * a condition inside a region it holds no lock of the fix, as a mutex would be released there.
 *
 * A fix may have its lock go with a mutex of the program ("guard", "taken"): then whoever acquires that
 * mutex has taken the fix's lock before, so that holding the one is holding the other.
 */
#include "preload/control/fix.h"

#include "preload/interpose/real.h"
#include "preload/raw.h"
#include "preload/translate/translate.h"

#define INSN_MAX 15
#define FIX_CHECKS 8       /* reads that one condition is made of */
#define AGAIN_NS 20000000 /* a wait is looked at again so often, in case nobody is there to end it */

/* A region that a thread is in. */
struct stay {
	uint32_t item;
	uint32_t up, left; /* returns that do not end it; executions of its end to come */
	uint64_t sp;       /* above it lies what the region's frame returns to */
};

struct fix_thread {
	struct stay stay[FIX_NESTED];
	unsigned nstays;
	uint32_t waits[FIX_LOCKS];  /* how often it held them before it began to wait for a condition */
	struct {
		uint64_t pc, address, value;
		unsigned size;      /* bytes; 0: nothing was read there since the last wait */
	} read[FIX_CHECKS];         /* what its checks read */
	uint32_t asked[FIX_ITEMS];  /* how often it came to the target of an order */
	bool wake_all;              /* the signal it is about to send is to wake all */
};


static struct fix fix RAW_LARGE;
static struct fix_thread threads[CTL_THREADS] RAW_LARGE;
static bool applied;
static void (*next_exit)(struct tr_ctx *c);

bool ctl_fix_init(const char *path)
{
	const char *text = ctl_read_text(path);

	if (!text || !fix_parse(&fix, text)) {
		shim_degrade("the file named by fix= is no fix; nothing is applied");
		return false;
	}
	next_exit = ctl_thread_exit;
	ctl_thread_exit = ctl_fix_exit;
	return true;
}

/* ---- where it applies ---- */

/* The program's calls come to these; what they are called with is the first argument. */
static bool is_acquisition(uint64_t pc)
{
	return pc == (uint64_t)pthread_mutex_lock || pc == (uint64_t)pthread_rwlock_wrlock ||
	       pc == (uint64_t)pthread_rwlock_rdlock || pc == (uint64_t)pthread_spin_lock ||
	       pc == (uint64_t)mtx_lock;
}

static bool is_call(const struct insn *in)
{
	return in->cls == INSN_CALL || in->cls == INSN_CALL_IND;
}

/* Behind a call means when it has returned. */
static bool is_behind(enum fix_kind k)
{
	return k == FIX_END || k == FIX_SOURCE || k == FIX_FENCE;
}

static unsigned plan_point(struct fix_point *o, uint64_t pc, const struct insn *in, const struct ctl_module *m)
{
	if (o->back && pc == o->back)
		return CTL_CALLOUT_BEFORE;
	if (!m || o->module != m->hash || o->offset != pc - m->bias)
		return 0;
	if (is_behind(o->kind) && is_call(in))
		__atomic_store_n(&o->back, pc + in->len, __ATOMIC_RELAXED);
	__atomic_store_n(&o->pc, pc, __ATOMIC_RELEASE);
	if (!is_behind(o->kind))
		return CTL_CALLOUT_BEFORE;
	/* A jump has nothing behind it. */
	return is_call(in) ? 0 : in->cls == INSN_NORMAL ? CTL_CALLOUT_AFTER : CTL_CALLOUT_BEFORE;
}

static void resolve_objects(const struct ctl_module *m)
{
	for (unsigned i = 0; m && i < fix.nobjects; i++)
		if (fix.object[i].module == m->hash) {
			fix.object[i].address += m->bias;
			__atomic_store_n(&fix.object[i].module, 0, __ATOMIC_RELEASE);
		}
}

unsigned ctl_fix_plan(uint64_t pc, const struct insn *in)
{
	const struct ctl_module *m = ctl_module_at(pc);
	unsigned flags = 0;

	resolve_objects(m);
	for (unsigned i = 0; i < fix.npoints; i++)
		flags |= plan_point(&fix.point[i], pc, in, m);
	if ((fix.regions && in->cls == INSN_RET && m && m->own) || is_acquisition(pc))
		flags |= CTL_CALLOUT_BEFORE;
	return flags;
}

/* ---- regions ---- */

static struct fix_thread *state_of(const struct shim_thread *t)
{
	return &threads[t->index % CTL_THREADS];
}

static void has_applied(void)
{
	if (!__atomic_exchange_n(&applied, true, __ATOMIC_RELAXED) && ctl.sites)
		__atomic_fetch_add(&ctl.sites->fixed, 1, __ATOMIC_RELAXED);
}

static struct stay *stay_in(struct fix_thread *f, uint32_t item)
{
	for (unsigned i = 0; i < f->nstays; i++)
		if (f->stay[i].item == item)
			return &f->stay[i];
	return NULL;
}

static void leave(const struct shim_thread *t, struct stay *s)
{
	struct fix_thread *f = state_of(t);
	uint32_t lock = fix.item[s->item].lock;

	*s = f->stay[--f->nstays];
	fix_lock_release(t, lock);
}

static void enter(struct tr_ctx *c, uint32_t item, bool anew)
{
	struct fix_thread *f = state_of(c->thread);
	const struct fix_item *i = &fix.item[item];
	struct stay *in = stay_in(f, item);

	/* Another round: what was begun before did not come to its end. */
	if (in && anew && i->count <= 1)
		leave(c->thread, in);
	else if (in)
		return;
	if (f->nstays == FIX_NESTED)
		return;
	has_applied();
	fix_lock_take(c, i->lock);
	f->stay[f->nstays++] = (struct stay){ item, i->up, i->count, c->regs[REG_RSP_] };
}

static void reach_end(const struct tr_ctx *c, uint32_t item)
{
	struct stay *s = stay_in(state_of(c->thread), item);

	if (s && s->left && !--s->left)
		leave(c->thread, s);
}

/* The frame that a region is in goes, or has gone. */
static void returns(const struct tr_ctx *c)
{
	struct fix_thread *f = state_of(c->thread);
	uint64_t sp = c->regs[REG_RSP_];

	for (unsigned i = f->nstays; i-- > 0;) {
		struct stay *s = &f->stay[i];

		if (sp < s->sp)
			continue;
		if (s->up) {
			s->up--;
			s->sp = sp + 8;
		} else {
			leave(c->thread, s);
		}
	}
}

/* ---- the program's own locks ---- */

static bool goes_with(uint64_t object, uint32_t *lock)
{
	for (unsigned i = 0, n = __atomic_load_n(&fix.nobjects, __ATOMIC_ACQUIRE); i < n; i++)
		if (!__atomic_load_n(&fix.object[i].module, __ATOMIC_ACQUIRE) && fix.object[i].address == object) {
			*lock = fix.object[i].lock;
			return true;
		}
	return false;
}

static void learn_object(uint32_t lock, uint64_t object)
{
	uint32_t known;
	unsigned n = fix.nobjects;

	if (goes_with(object, &known) || n == FIX_OBJECTS)
		return;
	fix.object[n] = (struct fix_object){ lock, 0, object };
	__atomic_store_n(&fix.nobjects, n + 1, __ATOMIC_RELEASE);
}

static void acquires(struct tr_ctx *c)
{
	uint32_t lock;

	if (goes_with(c->regs[REG_RDI_], &lock))
		fix_lock_take(c, lock);
}

/* ---- orders ---- */

static bool is_named(const struct shim_thread *t, unsigned i)
{
	const char *a = t->id, *b = fix.named[i].id;

	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static struct shim_thread *living(unsigned i)
{
	for (unsigned k = 0, n = shim_nslots(); k < n; k++) {
		struct shim_thread *t = shim_slot(k);

		if ((t->life == SHIM_LIVE || t->life == SHIM_RESERVED) && is_named(t, i))
			return t;
	}
	return NULL;
}

static void happened(const struct shim_thread *t, uint32_t item)
{
	for (unsigned i = 0; i < fix.nnamed; i++)
		if (fix.named[i].item == item && is_named(t, i))
			__atomic_fetch_add(&fix.named[i].done, 1, __ATOMIC_ACQ_REL);
	__atomic_fetch_add(&fix.item[item].done, 1, __ATOMIC_ACQ_REL);
	fix_wake(&fix.item[item].done);
}

/* Who has ended does nothing any more; but one that is yet to be made will. */
static bool has_happened(const struct shim_thread *me, uint32_t item, uint32_t times)
{
	const struct fix_item *o = &fix.item[item];
	bool by_all = true;

	for (unsigned i = 0; i < fix.nnamed && o->each; i++)
		if (fix.named[i].item == item && !is_named(me, i) && living(i))
			by_all &= __atomic_load_n(&fix.named[i].done, __ATOMIC_ACQUIRE) >= times;
	return by_all && __atomic_load_n(&o->done, __ATOMIC_ACQUIRE) > 0;
}

/* Who does the first part itself waits for the others to have done it as often; who does not, as often as it comes here. */
static uint32_t times_of(const struct shim_thread *t, uint32_t item)
{
	uint32_t asked = ++state_of(t)->asked[item];

	for (unsigned i = 0; i < fix.nnamed; i++)
		if (fix.named[i].item == item && is_named(t, i) && fix.named[i].done)
			return fix.named[i].done;
	return asked;
}

/* A thread that ends wakes nobody here, so it is looked for again and again. */
static void wait_for_source(struct tr_ctx *c, uint32_t item)
{
	struct fix_item *o = &fix.item[item];
	const uint64_t args[6] = { (uint64_t)&o->done, 0 /* FUTEX_WAIT */ };
	uint32_t times = times_of(c->thread, item), done;
	struct fix_patience p = { 0 };
	bool waits = false;

	has_applied();
	while (done = __atomic_load_n(&o->done, __ATOMIC_ACQUIRE), !has_happened(c->thread, item, times)) {
		if (!waits && ctl_syscall_enter)
			ctl_syscall_enter(c, SYS_futex, args);
		waits = true;
		if (!fix_wait(&p, c->thread, &o->done, done, "the first part of order ", item))
			break;
	}
	if (waits && ctl_syscall_leave)
		ctl_syscall_leave(c, SYS_futex, 0);
}

static void wait_for_threads(struct tr_ctx *c)
{
	static uint32_t never;
	const uint64_t args[6] = { (uint64_t)&never, 0 };

	has_applied();
	for (unsigned i = 0; i < fix.nnamed; i++) {
		struct fix_patience p = { 0 };

		if (fix.named[i].item != FIX_ITEMS || is_named(c->thread, i) || !living(i))
			continue;
		if (ctl_syscall_enter)
			ctl_syscall_enter(c, SYS_futex, args);
		while (living(i) && fix_wait(&p, c->thread, &never, 0, "the end of joined thread ", i))
			;
		if (ctl_syscall_leave)
			ctl_syscall_leave(c, SYS_futex, 0);
	}
}

/* Remembers what this instruction is about to read. */
static void check(const struct tr_ctx *c, uint64_t pc)
{
	struct fix_thread *f = state_of(c->thread);
	const uint8_t *code = (const uint8_t *)pc;
	struct insn in;
	unsigned i = 0;

	while (i < FIX_CHECKS && f->read[i].size && f->read[i].pc != pc)
		i++;
	if (i == FIX_CHECKS || !insn_decode(&in, code, INSN_MAX, pc) || !(in.flags & INSN_MEM) || in.flags & INSN_USES_FS)
		return;
	unsigned size = insn_memory_size(&in);
	f->read[i].pc = pc;
	f->read[i].address = tr_operand_address(&in, pc, code, c);
	f->read[i].value = 0;
	f->read[i].size = size && size <= sizeof f->read[i].value &&
			  tr_copy(&f->read[i].value, (const void *)f->read[i].address, size) ? size : 0;
}

/* ---- at run time ---- */

static void at_point(struct tr_ctx *c, struct fix_point *o)
{
	switch (o->kind) {
	case FIX_BEGIN: case FIX_ENTER:
		enter(c, o->item, o->kind == FIX_BEGIN);
		break;
	case FIX_END:
		reach_end(c, o->item);
		break;
	case FIX_TAKEN:
		learn_object(o->item, c->regs[REG_RDI_]);
		break;
	case FIX_SOURCE:
		happened(c->thread, o->item);
		break;
	case FIX_TARGET:
		wait_for_source(c, o->item);
		break;
	case FIX_JOIN:
		wait_for_threads(c);
		break;
	case FIX_CHECK:
		check(c, o->pc);
		break;
	case FIX_KEEP:
		/* Nothing is freed by free(NULL), and by delete. */
		has_applied();
		c->regs[REG_RDI_] = 0;
		break;
	case FIX_FENCE:
		has_applied();
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		break;
	case FIX_WAKE_ALL:
		state_of(c->thread)->wake_all = true;
		break;
	default:
		break;
	}
}

/* Ends come before begins: one region may follow another at the same place. */
static bool is_first(enum fix_kind k)
{
	return k == FIX_END || k == FIX_SOURCE;
}

static void points_at(struct tr_ctx *c, uint64_t pc, enum ctl_at at, bool first)
{
	for (unsigned i = 0; i < fix.npoints; i++) {
		struct fix_point *o = &fix.point[i];
		uint64_t mine = __atomic_load_n(&o->pc, __ATOMIC_ACQUIRE);

		if (is_first(o->kind) != first)
			continue;
		if (o->back ? o->back == pc && at == CTL_AT_BEFORE : mine == pc && (at == CTL_AT_AFTER) == is_behind(o->kind))
			at_point(c, o);
	}
}

void ctl_fix(struct tr_ctx *c, uint64_t pc, enum ctl_at at)
{
	points_at(c, pc, at, true);
	if (at == CTL_AT_BEFORE && is_acquisition(pc))
		acquires(c);
	if (at == CTL_AT_BEFORE && fix.regions && state_of(c->thread)->nstays) {
		const uint8_t *op = (const uint8_t *)pc;

		op += *op == 0xf2 || *op == 0xf3; /* with a prefix that does nothing there */
		if (*op == 0xc3 || *op == 0xc2)
			returns(c);
	}
	points_at(c, pc, at, false);
}

/* Of all that led to the wait nothing has changed. */
static bool is_unchanged(const struct fix_thread *f)
{
	bool some = false;

	for (unsigned i = 0; i < FIX_CHECKS && f->read[i].size; i++) {
		uint64_t now = 0;

		if (!tr_copy(&now, (const void *)f->read[i].address, f->read[i].size) || now != f->read[i].value)
			return false;
		some = true;
	}
	return some;
}

/* What it waits for has not come: it waits again, as a loop around the wait would. */
static void wait_again(struct shim_thread *t, pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	struct fix_thread *f = state_of(t);
	struct fix_patience p = { 0 };
	uint32_t never = 0;

	while (is_unchanged(f)) {
		struct timespec until = { 0 };

		has_applied();
		raw(SYS_clock_gettime, CLOCK_REALTIME, &until);
		until.tv_nsec += AGAIN_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		REAL(cond_timedwait)(cond, mutex, &until);
		if (is_unchanged(f) && !fix_wait(&p, t, &never, 0, "what its condition is about, at check ", 0))
			break;
	}
	for (unsigned i = 0; i < FIX_CHECKS; i++)
		f->read[i].size = 0;
}

/* As often as it held the fix's locks before, it holds them again; the mutex first: else who holds the one may want the other. */
static void wait_ends(struct shim_thread *t, pthread_mutex_t *mutex)
{
	struct fix_thread *f = state_of(t);

	for (uint32_t i = 0; i < FIX_LOCKS; i++) {
		uint32_t depth = f->waits[i];

		f->waits[i] = 0;
		if (!depth)
			continue;
		if (!fix_lock_try(t, i)) {
			REAL(pthread_mutex_unlock)(mutex);
			fix_lock_take_again(t, i, depth);
			REAL(pthread_mutex_lock)(mutex);
		} else {
			fix_lock_set_depth(i, depth);
		}
	}
}

static void wait_begins(struct shim_thread *t)
{
	for (uint32_t i = 0; i < FIX_LOCKS; i++)
		state_of(t)->waits[i] = fix_lock_release_all(t, i);
}

void ctl_fix_event(struct shim_thread *t, unsigned op_at, uint64_t object, uint64_t value)
{
	unsigned op = TRC_SYNC_OP(op_at), at = TRC_SYNC_AT(op_at);
	uint32_t lock;

	switch (op) {
	case TRC_OP_UNLOCK: case TRC_OP_RWUNLOCK: case TRC_OP_SPINUNLOCK:
		if (at == TRC_AT_DONE && goes_with(object, &lock))
			fix_lock_release(t, lock);
		break;
	case TRC_OP_WAIT: case TRC_OP_TIMEDWAIT:
		if (at == TRC_AT_BLOCK)
			wait_begins(t);
		else if (at == TRC_AT_DONE && fix.checks)
			wait_again(t, (pthread_cond_t *)object, (pthread_mutex_t *)value);
		if (at == TRC_AT_DONE)
			wait_ends(t, (pthread_mutex_t *)value);
		break;
	case TRC_OP_SIGNAL:
		if (state_of(t)->wake_all) {
			state_of(t)->wake_all = false;
			has_applied();
			REAL(cond_broadcast)((pthread_cond_t *)object);
		}
		break;
	default:
		break;
	}
}

/* Whoever ends inside a region has left it. */
void ctl_fix_exit(struct tr_ctx *c)
{
	struct fix_thread *f = state_of(c->thread);

	f->nstays = 0;
	for (uint32_t i = 0; i < FIX_LOCKS; i++)
		fix_lock_release_all(c->thread, i);
	if (next_exit)
		next_exit(c);
}

void ctl_fix_forked(void)
{
	fix_locks_forked(shim_self_known());
}
