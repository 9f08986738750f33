/*
 * The table of threads.
 *
 * Slots hold living threads (and dead ones that nobody has joined yet); they are reused,
 * never unmapped, so the deadlock search may read them without the lock. Numbers
 * (struct shim_thread.index) are given out once, in order of creation.
 */
#include "preload/deadlock.h"
#include "preload/raw.h"
#include "preload/shim.h"
#include "preload/signals.h"
#include "preload/watch.h"

#include <asm/prctl.h>
#include <errno.h>

#define MAX_SLOTS 16384
#define TID_HASH 32768 /* what processes are usually limited to: no two with the same place */
#define SLAB_MAX 32u

static struct shim_thread *slots[MAX_SLOTS] RAW_LARGE;
static unsigned nslots;
/* Whoever had it last; a look-up that does not find it there goes through the slots. */
static struct shim_thread *by_tid[TID_HASH] RAW_LARGE;
static struct shim_thread *by_index[MAX_SLOTS] RAW_LARGE;
static struct shim_thread *by_pthread[MAX_SLOTS] RAW_LARGE;
/* How many slots there are of these lives: most often none, and then nobody looks for one. */
static unsigned nfree, nexiting;

__thread struct shim_thread *shim_own;
struct shim_thread *(*shim_self_hook)(void);

unsigned shim_nslots(void)
{
	return __atomic_load_n(&nslots, __ATOMIC_ACQUIRE);
}

struct shim_thread *shim_slot(unsigned i)
{
	return slots[i];
}

/*
 * Numbers that a flight recorder may give out again: those of threads that ended in an epoch that is gone by now. Else a
 * server with a thread for each connection would have more of them than a trace may.
 */
static struct {
	uint32_t index, epoch; /* when its slot became free */
} used[MAX_SLOTS] RAW_LARGE;
static unsigned used_from, nused;

static void give_back_index(uint32_t index)
{
	if (!rec_epoch || nused == MAX_SLOTS)
		return;
	used[(used_from + nused) % MAX_SLOTS].index = index;
	used[(used_from + nused++) % MAX_SLOTS].epoch = rec_epoch;
}

static uint32_t next_index(void)
{
	if (!nused || used[used_from].epoch >= rec_ring_oldest())
		return shim.nthreads++;
	uint32_t index = used[used_from].index;

	used_from = (used_from + 1) % MAX_SLOTS;
	nused--;
	return index;
}

/* Under the lock, but for LIVE to EXITING, which only the thread itself does. */
static void set_life(struct shim_thread *t, enum shim_life life)
{
	if (t->life == SHIM_FREE)
		nfree--;
	if (t->life == SHIM_EXITING)
		__atomic_sub_fetch(&nexiting, 1, __ATOMIC_RELAXED);
	if (life == SHIM_FREE)
		nfree++;
	if (life == SHIM_EXITING)
		__atomic_add_fetch(&nexiting, 1, __ATOMIC_RELAXED);
	t->life = life;
}

/* A page or two per slot, several mapped at a time; streams are mapped when the thread comes to life. */
static struct shim_thread *new_slot(void)
{
	const size_t len = (sizeof(struct shim_thread) + RAW_PAGE - 1) & ~(RAW_PAGE - 1);
	static uint8_t *room;
	static unsigned left;

	if (nslots == MAX_SLOTS)
		return NULL;
	if (!left) {
		left = nslots < 1 ? 1 : nslots > SLAB_MAX ? SLAB_MAX : nslots;
		room = raw_alloc(left * len);
		if (!room)
			room = raw_alloc((left = 1) * len);
		if (room && tr_own)
			tr_own(room, left * len);
	}
	if (!room) {
		left = 0;
		return NULL;
	}
	struct shim_thread *t = (struct shim_thread *)room;

	room += len;
	left--;
	slots[nslots] = t;
	nfree++;
	__atomic_store_n(&nslots, nslots + 1, __ATOMIC_RELEASE);
	return t;
}

/* Beginning where the last one was found: threads that come and go use the slots in turn. */
static struct shim_thread *find_free(void)
{
	static unsigned from;

	for (unsigned i = 0; nfree && i < nslots; i++, from++)
		if (slots[from % nslots]->life == SHIM_FREE)
			return slots[from++ % nslots];
	return new_slot();
}

/* "T0.2" + ".1"; an id that would not fit ends in '~' and the index is all that is unique. */
static void make_id(struct shim_thread *t, const struct shim_thread *parent)
{
	struct raw_text id = { t->id, 0, sizeof t->id };

	if (!parent) {
		text_str(&id, "T0");
		return;
	}
	text_str(&id, parent->id);
	if (id.n && id.s[id.n - 1] == '~')
		return;
	if (id.n + 12 > id.cap) {
		text_str(&id, "~");
		return;
	}
	text_str(&id, ".");
	text_num(&id, t->ordinal);
}

/* Under the lock. A clean slot with number and name, not yet alive. */
static struct shim_thread *take_slot(struct shim_thread *parent)
{
	struct shim_thread *t = find_free();

	if (!t)
		return NULL;
	void *alt_stack = t->alt_stack;

	memset(t, 0, sizeof *t); /* still free: life is 0 */
	t->alt_stack = alt_stack;
	t->index = next_index();
	by_index[t->index % MAX_SLOTS] = t;
	t->parent = parent ? parent->index : t->index;
	t->ordinal = parent ? ++parent->nchildren : 0;
	make_id(t, parent);
	t->rec.dead = t->path.dead = true;
	return t;
}

static void write_thread(const struct shim_thread *t)
{
	struct trc_thread *r = rec_begin(&rec_process, sizeof *r);

	if (!r)
		return;
	r->thread = t->index;
	r->parent = t->parent;
	r->ordinal = t->ordinal;
	r->tid = t->tid;
	r->tsc = t->born;
	r->pthread = t->pthread;
	rec_commit(&rec_process, r, TRC_THREAD, 0, sizeof *r);
}

/* Under the lock. */
static void has_tid(struct shim_thread *t, uint32_t tid)
{
	t->tid = tid;
	by_tid[tid % TID_HASH] = t;
	t->born = raw_tsc();
	t->nsaid = 0;
	write_thread(t);
}

/* Under the lock. tid 0: not known yet, see shim_thread_tid(). */
static void come_alive(struct shim_thread *t, uint32_t tid)
{
	set_life(t, SHIM_LIVE);
	t->naming = false;
	memset(t->named, 0, sizeof t->named);
	__atomic_add_fetch(&shim.nlive, 1, __ATOMIC_SEQ_CST);
	if (tid)
		has_tid(t, tid);
	rec_open(&t->rec, TRC_STREAM_THREAD, t->index);
}

static bool is_dead(uint32_t tid)
{
	return raw(SYS_tgkill, shim.pid, tid, 0) == -ESRCH;
}

/* Under the lock: threads that said good-bye and have left the kernel by now. */
static void reap(void)
{
	for (unsigned i = 0; i < nslots && __atomic_load_n(&nexiting, __ATOMIC_RELAXED); i++)
		if (slots[i]->life == SHIM_EXITING && is_dead(slots[i]->tid))
			shim_thread_exit(slots[i]);
}

struct shim_thread *shim_thread_reserve(struct shim_thread *parent, uint64_t key)
{
	uint64_t saved;

	rec_lock(&saved);
	reap();
	struct shim_thread *t = take_slot(parent);

	if (t) {
		set_life(t, SHIM_RESERVED);
		t->key = key;
		t->hidden_mask = parent->hidden_mask;
		parent->pending = t;
		parent->pending_index = t->index;
	}
	rec_unlock(&saved);
	if (!t)
		shim_degrade("more threads than the shim can follow; some are not recorded");
	return t;
}

/* pthread_create failed: as if it had never been tried. */
void shim_thread_unreserve(struct shim_thread *t)
{
	uint64_t saved;

	rec_lock(&saved);
	if (t->life == SHIM_RESERVED) {
		struct shim_thread *parent = shim_thread_at(t->parent);

		if (parent && parent->nchildren == t->ordinal)
			parent->nchildren--;
		if (shim.nthreads == t->index + 1)
			shim.nthreads--;
		else
			give_back_index(t->index);
		set_life(t, SHIM_FREE);
	}
	rec_unlock(&saved);
}

/* Sync mode: the new thread itself picks up its reservation. */
struct shim_thread *shim_thread_claim(uint64_t key, uint64_t pthread)
{
	struct shim_thread *t = NULL;
	uint64_t saved;

	rec_lock(&saved);
	for (unsigned i = nslots; i-- > 0 && !t;)
		if (slots[i]->life == SHIM_RESERVED && slots[i]->key == key)
			t = slots[i];
	if (t) {
		shim_thread_set_pthread(t, pthread);
		come_alive(t, (uint32_t)raw(SYS_gettid));
		shim_own = t;
	}
	rec_unlock(&saved);
	if (t)
		signals_thread_start(t);
	return t;
}

struct shim_thread *shim_thread_new(struct shim_thread *parent, uint32_t tid)
{
	uint64_t saved;

	rec_lock(&saved);
	reap();
	struct shim_thread *t = parent ? parent->pending : NULL;

	if (t && t->life == SHIM_RESERVED)
		parent->pending = NULL;
	else
		t = take_slot(parent);
	if (t)
		come_alive(t, tid);
	rec_unlock(&saved);
	if (!t)
		shim_degrade("more threads than the shim can follow; some are not recorded");
	return t;
}

void shim_thread_tid(struct shim_thread *t, uint32_t tid)
{
	uint64_t saved;

	rec_lock(&saved);
	has_tid(t, tid);
	rec_unlock(&saved);
}

/* pthread_self() as libc computes it: the thread control block points to itself. */
static uint64_t own_pthread(void)
{
	uint64_t fs = 0, tcb = 0;

	/* It may have none: made by a bare clone(). */
	raw(SYS_arch_prctl, ARCH_GET_FS, &fs);
	if (fs)
		raw_peek(&tcb, fs + 16, sizeof tcb);
	return tcb;
}

/* A thread that nobody saw being made (raw clone, or made inside libc): a child of T0. */
static struct shim_thread *adopt(void)
{
	struct shim_thread *main_thread = shim_thread_at(0);

	shim_own = shim_thread_new(main_thread, (uint32_t)raw(SYS_gettid));
	if (shim_own && main_thread)
		shim_note(false, "a thread was made without pthread_create: a child of T0");
	if (shim_own) {
		shim_thread_set_pthread(shim_own, own_pthread());
		signals_thread_start(shim_own);
	}
	return shim_own;
}

struct shim_thread *shim_self_known(void)
{
	/* A helper has the thread-locals and %gs of whoever started it. */
	if (watch_is_helper())
		return NULL;
	return shim_self_hook ? shim_self_hook() : shim_own;
}

struct shim_thread *shim_self(void)
{
	if (shim_self_hook)
		return shim_self_hook();
	if (__builtin_expect(shim_own != NULL, 1))
		return shim_own;
	return adopt();
}

void shim_thread_leaving(struct shim_thread *t)
{
	if (t->life != SHIM_LIVE)
		return;
	set_life(t, SHIM_EXITING);
	__atomic_sub_fetch(&shim.nlive, 1, __ATOMIC_SEQ_CST);
	deadlock_leave(t);
}

void shim_thread_exit(struct shim_thread *t)
{
	uint64_t saved;

	rec_lock(&saved);
	shim_thread_leaving(t);
	if (t->life == SHIM_EXITING) {
		rec_close(&t->rec);
		if (by_tid[t->tid % TID_HASH] == t)
			by_tid[t->tid % TID_HASH] = NULL;
		signals_thread_end(t);
		set_life(t, t->detached ? SHIM_FREE : SHIM_GONE);
		if (t->detached)
			give_back_index(t->index);
	}
	rec_unlock(&saved);
}

void shim_thread_settled(struct shim_thread *t)
{
	uint64_t saved;

	rec_lock(&saved);
	t->detached = true;
	if (t->life == SHIM_GONE) {
		set_life(t, SHIM_FREE);
		give_back_index(t->index);
	}
	rec_unlock(&saved);
}

struct shim_thread *shim_thread_at(uint32_t index)
{
	struct shim_thread *t = by_index[index % MAX_SLOTS];

	if (t && t->index == index && t->life != SHIM_FREE)
		return t;
	for (unsigned i = 0, n = shim_nslots(); i < n; i++)
		if (slots[i]->index == index && slots[i]->life != SHIM_FREE)
			return slots[i];
	return NULL;
}

struct shim_thread *shim_thread_by_tid(uint32_t tid)
{
	struct shim_thread *t = by_tid[tid % TID_HASH];

	if (t && t->tid == tid)
		return t;
	for (unsigned i = 0, n = shim_nslots(); i < n; i++)
		if (slots[i]->tid == tid && slots[i]->life != SHIM_FREE)
			return slots[i];
	return NULL;
}

uint64_t shim_all_events(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0, n = shim_nslots(); i < n; i++)
		sum += __atomic_load_n(&slots[i]->nevents, __ATOMIC_SEQ_CST) + slots[i]->index;
	return sum;
}

static struct shim_thread **pthread_place(uint64_t pthread)
{
	return &by_pthread[(pthread >> 12 ^ pthread >> 6) % MAX_SLOTS];
}

void shim_thread_set_pthread(struct shim_thread *t, uint64_t pthread)
{
	static uint64_t clock;

	if (t->pthread == pthread)
		return; /* from its creator or from itself */
	t->pthread_since = __atomic_add_fetch(&clock, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&t->pthread, pthread, __ATOMIC_RELEASE);
	*pthread_place(pthread) = t;
}

/* Whoever has it now: libc reuses the values of threads that are gone. */
struct shim_thread *shim_thread_by_pthread(uint64_t pthread)
{
	struct shim_thread *found = *pthread_place(pthread);

	if (found && found->pthread == pthread && found->life != SHIM_FREE)
		return found; /* nobody has got it since */
	found = NULL;
	for (unsigned i = 0, n = shim_nslots(); i < n; i++) {
		struct shim_thread *t = slots[i];

		if (t->pthread == pthread && t->life != SHIM_FREE &&
		    (!found || t->pthread_since > found->pthread_since))
			found = t;
	}
	return found;
}

struct shim_thread *shim_thread_joining(const struct shim_thread *t)
{
	return t->joining ? shim_thread_at(t->joining - 1) : NULL;
}

static bool is_being_joined(const struct shim_thread *t)
{
	for (unsigned i = 0, n = shim_nslots(); i < n; i++)
		if (slots[i]->life == SHIM_LIVE && slots[i]->joining == t->index + 1)
			return true;
	return false;
}

/* The first that had it and that nobody else is joining: a later one has it only because of that. */
struct shim_thread *shim_thread_tryjoined(uint64_t pthread)
{
	struct shim_thread *found = NULL;

	for (unsigned i = 0, n = shim_nslots(); i < n; i++) {
		struct shim_thread *t = slots[i];

		if (t->pthread == pthread && t->life != SHIM_FREE && !is_being_joined(t) &&
		    (!found || t->pthread_since < found->pthread_since))
			found = t;
	}
	return found;
}

static void write_id(const struct shim_thread *t)
{
	size_t len = strlen(t->id), size = sizeof(struct trc_thread_id) + len;
	struct trc_thread_id *r = rec_begin(&rec_process, size);

	if (!r)
		return;
	r->thread = t->index;
	r->id_len = (uint32_t)len;
	memcpy(r->id, t->id, len);
	rec_commit(&rec_process, r, TRC_THREAD_ID, 0, size);
}

void shim_threads_again(void)
{
	for (unsigned i = 0; i < nslots; i++) {
		struct shim_thread *t = slots[i];

		if (t->life == SHIM_FREE || t->life == SHIM_RESERVED)
			continue;
		write_thread(t);
		write_id(t);
		if (t->name[0])
			shim_thread_name(t, t->name, strlen(t->name));
	}
}

void shim_thread_name(struct shim_thread *t, const char *name, size_t len)
{
	size_t size = sizeof(struct trc_thread_name) + len;
	uint64_t saved;

	rec_lock(&saved);
	if (rec_epoch && name != t->name && len < sizeof t->name) {
		memcpy(t->name, name, len);
		t->name[len] = 0;
	}
	struct trc_thread_name *r = rec_begin(&rec_process, size);

	if (r) {
		r->thread = t->index;
		r->name_len = (uint32_t)len;
		memcpy(r->name, name, len);
		rec_commit(&rec_process, r, TRC_THREAD_NAME, 0, size);
	}
	rec_unlock(&saved);
}

/* Nobody but the caller is left. The parent's files must not be written to any more. */
void shim_threads_forget(void)
{
	struct shim_thread *me = shim_self_known();

	shim.nthreads = shim.nlive = shim.nblocked = nused = 0;
	for (unsigned i = 0; i < nslots; i++) {
		struct shim_thread *t = slots[i];

		if (t->life != SHIM_FREE) {
			rec_forget(&t->rec);
			rec_forget(&t->path);
		}
		set_life(t, t == me ? SHIM_RESERVED : SHIM_FREE);
	}
	memset(by_tid, 0, sizeof by_tid);
}

bool shim_threads_main(void)
{
	struct shim_thread *me = shim_self_known();
	uint64_t saved;

	rec_lock(&saved);
	shim.nthreads = shim.nlive = shim.nblocked = nused = 0;
	if (me) {
		me->index = me->parent = shim.nthreads++;
		by_index[me->index] = me;
		me->ordinal = me->nchildren = me->blocked_op = 0;
		me->nevents = 0;
		me->joining = 0;
		me->pending = NULL;
		make_id(me, NULL);
	} else {
		me = shim_own = take_slot(NULL);
	}
	if (me) {
		me->pthread = own_pthread();
		come_alive(me, (uint32_t)raw(SYS_gettid));
	}
	rec_unlock(&saved);
	return me != NULL;
}
