// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The flight recorder (options ring=, last=): checkpoints, and from each of them on an epoch of its own.
 *
 * ---- What a checkpoint is
 *
 * All threads at one instant: registers, memory, and where on its path each is. From then on streams go to the files of
 * the next epoch (record/ring.c), which can be followed from there without anything that was recorded before. Nothing is reset that
 * would keep two epochs from being read as one: positions, tickets, the order of system calls and generations go on.
 *
 * ---- When
 *
 * A thread that makes a system call or fills a chunk of its path looks at the clock and at what the epoch has become
 * (tr_epoch_look, tr_epoch_turn). So there is no thread and no timer of ours, and a program that sleeps writes no checkpoints.
 * The thread takes it at its next boundary, in tr_deliver().
 *
 * ---- Where the others are
 *
 * Parked: at a boundary, on their native stack, where they have saved their vector registers. A signal that the program cannot block
 * leads them there, as in stop.c. Or *resting*: in a system call that may take any time. These are not disturbed: an interrupted
 * call would have to be made again, and its time-out would begin anew. They have all but their vector registers
 * in their context, and whoever comes back waits until the checkpoint is over, then notes those before the call's return (the
 * first record in the new epoch is TRC_START). What the kernel writes meanwhile is in the call's record, too, so it does not matter
 * whether the checkpoint holds it. No signal of ours ever meets a thread in such a call: whoever is about to enter one says
 * so first and then looks whether it should park; the thread that takes the checkpoint asks first and then looks who rests.
 *
 * Who does neither within STOP_NS has something else to do (another process's vfork, a turn to wait for in an enforced order):
 * then there is no checkpoint now, and it is tried again later.
 *
 * ---- What it costs
 *
 * Threads stand still while the streams are sealed and the process is copied (epoch_child.c), which writes memory. Files of the new epoch
 * are made when there is something to write, so threads that sleep cost nothing but their record in the checkpoint.
 */
#include "preload/raw.h"
#include "preload/record/stream.h"
#include "preload/translate/emit.h"
#include "preload/translate/epoch.h"
#include "preload/translate/pages.h"

#include <asm/prctl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <time.h>

#define STOP_SIGNAL 11
#define PAUSE_NS 50000l
#define STOP_NS 100000000ull /* how long the others may take */
#define ASK_EVERY 40u        /* pauses */
#define AGAIN_MS 50u         /* later, when it could not be taken */
#define LATER_MAX 6u         /* doublings of the time until the next try */
#define MISSING_MIN (1ul << 20) /* bytes more than was guessed too small; then twice as many */

struct tr_epochs tr_epochs = { .due = UINT64_MAX };

/* What a parked thread has put down for the checkpoint. */
struct tr_parked {
	uint8_t *xsave;
	uint32_t xsave_len;
	uint64_t fs_base;
};

static uint32_t asking; /* a lock: somebody is being sent a signal */
static uint32_t settling; /* a lock: somebody looks whether the copy has ended. Nobody waits for it who holds another one */
static uint8_t *nowhere; /* an inaccessible page: where the path goes until its file is made */
static uint32_t pause_us; /* of the last checkpoint */
static uint64_t not_before; /* tsc: one could not be taken, also a full ring has to wait for the next try */

/* Bytes, for saying how large the next checkpoint will be. */
static struct {
	uint64_t all;      /* of one that holds all memory, when nothing is known of pages */
	uint64_t besides;  /* of the last one, what were no pages: threads, mappings, the streams' beginnings */
	uint64_t resident; /* at the last one */
	uint64_t missing;  /* one that was guessed too small could not be written: so much more */
	bool seen;         /* how the last one ended */
	unsigned in_vain;  /* so many in a row could not be written: the next one is tried later */
	struct rec_ring_next next; /* as it was begun */
} sizes;

static uint64_t resident(void)
{
	char buf[96];
	uint64_t n[3] = { 0 };
	const char *p = buf;

	if (raw_slurp("/proc/thread-self/statm", buf, sizeof buf) <= 0)
		return 0;
	for (unsigned i = 0; i < 3; i++, p += *p == ' ')
		for (; *p >= '0' && *p <= '9'; p++)
			n[i] = 10 * n[i] + (uint64_t)(*p - '0');
	return (n[1] > n[2] ? n[1] - n[2] : 0) * RAW_PAGE;
}

static uint64_t ticks(uint64_t ms)
{
	return ms * (rec_tsc_hz() / 1000);
}

/* As long as it may be; less, where only a part of that is kept. */
static uint64_t epoch_ms(void)
{
	uint64_t part = shim_opt.last_ms / 4;

	return part && part < shim_opt.epoch_ms ? part : shim_opt.epoch_ms ? shim_opt.epoch_ms : 1;
}

static void due_in(uint64_t ms)
{
	__atomic_store_n(&tr_epochs.due, raw_tsc() + ticks(ms), __ATOMIC_RELAXED);
}

void tr_epochs_start(struct tr_ctx *c)
{
	tr_epochs.stopping = asking = settling = 0;
	not_before = 0;
	tr_epochs.save = tr_epochs.taking = false;
	tr_epochs.due = UINT64_MAX;
	tr_epoch_write_start();
	c->epoch = rec_epoch;
	if (!rec_epoch)
		return;
	if (!nowhere) {
		nowhere = tr_alloc(RAW_PAGE);
		if (nowhere && raw_failed(raw(SYS_mprotect, nowhere, RAW_PAGE, PROT_NONE)))
			nowhere = NULL;
	}
	memset(&sizes, 0, sizeof sizes);
	sizes.all = rec_total();
	sizes.resident = resident();
	sizes.seen = true;
	rec_ring_first();
	if (nowhere)
		due_in(epoch_ms());
}

void tr_epoch_save(struct tr_ctx *c)
{
	if (!rec_epoch || tr_epochs.due == UINT64_MAX)
		return; /* nothing to save; or one is being taken, and whoever asks asks again */
	c->nudged = true;
	__atomic_store_n(&tr_epochs.save, true, __ATOMIC_RELAXED);
	__atomic_store_n(&tr_epochs.due, 0, __ATOMIC_RELAXED);
}

void tr_epoch_turn(struct tr_ctx *c)
{
	uint64_t due = __atomic_load_n(&tr_epochs.due, __ATOMIC_RELAXED);

	uint64_t now = raw_tsc();

	if (due == UINT64_MAX || (now < due && (now < not_before || !rec_ring_full())))
		return;
	__atomic_store_n(&tr_epochs.due, 0, __ATOMIC_RELAXED);
	c->pending = 1;
}

/* ---- the others ---- */

static void wait_until_over(void)
{
	while (__atomic_load_n(&tr_epochs.stopping, __ATOMIC_SEQ_CST))
		raw(SYS_futex, &tr_epochs.stopping, FUTEX_WAIT_PRIVATE, 1, 0);
}

static struct tr_parked put_down(struct tr_ctx *c, uint8_t *area)
{
	struct tr_parked p = { .xsave = area };

	p.xsave_len = tr_xsave(c, area);
	raw(SYS_arch_prctl, ARCH_GET_FS, &p.fs_base);
	return p;
}

/* Until nobody wants it any more: whoever asks next may have seen us parked still. */
static void park(struct tr_ctx *c)
{
	_Alignas(64) uint8_t area[TR_XSAVE_MAX];
	struct tr_parked p = put_down(c, area);

	do {
		__atomic_store_n(&c->parked, &p, __ATOMIC_SEQ_CST);
		wait_until_over();
		__atomic_store_n(&c->parked, NULL, __ATOMIC_SEQ_CST);
	} while (__atomic_load_n(&tr_epochs.stopping, __ATOMIC_SEQ_CST));
	c->epoch = rec_epoch;
}

/* False: it is to park instead of making the call. */
bool tr_epoch_rest(struct tr_ctx *c)
{
	__atomic_store_n(&c->resting, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&tr_epochs.stopping, __ATOMIC_SEQ_CST))
		return true;
	__atomic_store_n(&c->resting, 0, __ATOMIC_SEQ_CST);
	c->pending = 1;
	return false;
}

void tr_epoch_rested(struct tr_ctx *c)
{
	__atomic_store_n(&c->resting, 0, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&tr_epochs.stopping, __ATOMIC_SEQ_CST)) {
		__atomic_store_n(&c->resting, 1, __ATOMIC_SEQ_CST);
		wait_until_over();
		__atomic_store_n(&c->resting, 0, __ATOMIC_SEQ_CST);
	}
	if (c->epoch == rec_epoch)
		return;
	c->epoch = rec_epoch;
	tr_record_start(c);
}

/*
 * A signal that is still pending at an exec, or when the program's own handlers come back, would end the program. So who is about to do
 * either is not asked any more; what was sent before arrives at the next return from the kernel.
 */
static void ask_one(const struct tr_ctx *c)
{
	const struct tr_siginfo si = { .signo = STOP_SIGNAL, .code = TR_PARK };

	while (__atomic_exchange_n(&asking, 1, __ATOMIC_ACQUIRE))
		raw(SYS_sched_yield);
	if (!c->unasked && c->thread && c->thread->tid)
		raw(SYS_rt_tgsigqueueinfo, shim.pid, c->thread->tid, STOP_SIGNAL, &si);
	__atomic_store_n(&asking, 0, __ATOMIC_RELEASE);
}

void tr_epoch_unasked(struct tr_ctx *c, bool unasked)
{
	if (!rec_epoch)
		return;
	while (__atomic_exchange_n(&asking, 1, __ATOMIC_ACQUIRE))
		raw(SYS_sched_yield);
	c->unasked = unasked;
	__atomic_store_n(&asking, 0, __ATOMIC_RELEASE);
	raw(SYS_getppid);
}

enum others { OTHERS_STILL, OTHERS_MOVE, OTHERS_NEVER };

static bool is_still(const struct tr_ctx *c)
{
	return __atomic_load_n(&c->parked, __ATOMIC_SEQ_CST) || __atomic_load_n(&c->resting, __ATOMIC_SEQ_CST);
}

static enum others look_at_others(const struct tr_ctx *self, bool ask)
{
	enum others all = OTHERS_STILL;

	for (struct tr_ctx *c = __atomic_load_n(&tr.contexts, __ATOMIC_ACQUIRE); c; c = c->next) {
		if (c == self || !__atomic_load_n(&c->alive, __ATOMIC_ACQUIRE))
			continue;
		if (c->native || c->vfork_child || c->own_process)
			return OTHERS_NEVER;
		if (is_still(c))
			continue;
		all = OTHERS_MOVE;
		if (ask)
			ask_one(c);
	}
	return all;
}

static bool others_stop(const struct tr_ctx *self)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	uint64_t until = raw_nsec(CLOCK_MONOTONIC) + STOP_NS;
	enum others now = OTHERS_MOVE;

	for (unsigned i = 0; now == OTHERS_MOVE && raw_nsec(CLOCK_MONOTONIC) < until; i++) {
		now = look_at_others(self, i % ASK_EVERY == 0);
		if (now == OTHERS_MOVE)
			raw(SYS_nanosleep, &pause, 0);
	}
	return now == OTHERS_STILL;
}

/* ---- the checkpoint ---- */

static size_t used_of(const struct rec_stream *s)
{
	return s->map.head && s->pos ? (size_t)(s->pos - (uint8_t *)(s->map.head + 1)) : 0;
}

/* A stream that has been given up has another try. */
static void renew(struct tr_ctx *c)
{
	struct shim_thread *t = c->thread;

	tr_unclobber(c, c->ptr, c->regs);
	tr_profile_stop(c);
	rec_renew(&t->path, c->path_dead ? 0 : (size_t)(c->ptr - (uint64_t)c->path_begin));
	c->path_begin = c->path_end = nowhere;
	c->ptr = (uint64_t)nowhere;
	c->path_dead = false;
	c->ticket = 0;
	rec_renew(&t->rec, used_of(&t->rec));
	memset(t->named, 0, sizeof t->named);
	t->clock_at = 0;
	t->path_ptr = &c->ptr;
}

static bool is_alive(const struct tr_ctx *c)
{
	return __atomic_load_n(&c->alive, __ATOMIC_ACQUIRE) && c->thread;
}

static void write_state(struct rec_stream *out, const struct tr_ctx *c)
{
	const struct tr_parked *p = c->parked;
	size_t size = sizeof(struct trc_state) + (p ? p->xsave_len : 0);
	struct trc_state *r = rec_begin(out, size);

	if (!r)
		return;
	r->thread = c->thread->index;
	r->generation = c->generation;
	r->path_pos = tr_pos(c);
	r->tsc = raw_tsc();
	memcpy(r->regs, c->regs, sizeof c->regs);
	r->regs[TRC_RIP] = c->pc;
	r->regs[TRC_RFLAGS] = c->rflags;
	r->fs_base = p ? p->fs_base : c->fs_base;
	r->gs_base = c->native_gs;
	r->clear_tid = c->clear_tid;
	r->xsave_len = p ? p->xsave_len : 0;
	if (p)
		memcpy(r->xsave, p->xsave, p->xsave_len);
	rec_commit(out, r, TRC_STATE, p ? 0 : TRC_STATE_IN_CALL, size);
}

static void write_tickets(struct rec_stream *out)
{
	const uint32_t *shards = (const uint32_t *)(uint64_t)(tr_low + LOW_SHARDS);
	const unsigned step = 64 / sizeof *shards;
	uint32_t n = 0;

	for (unsigned i = 0; i < TRC_SHARDS; i++)
		n += shards[i * step] != 0;
	size_t size = sizeof(struct trc_tickets) + n * sizeof(struct trc_shard_ticket);
	struct trc_tickets *r = rec_begin(out, size);

	if (!r)
		return;
	r->n = 0;
	r->pad = 0;
	for (unsigned i = 0; i < TRC_SHARDS && r->n < n; i++)
		if (shards[i * step])
			r->shards[r->n++] = (struct trc_shard_ticket){ i, shards[i * step] / 2 };
	rec_commit(out, r, TRC_TICKETS, 0, size);
}

static void write_carried(struct rec_stream *out, const struct shim_thread *t, unsigned op_at, const struct shim_held *what,
			  uint64_t value)
{
	struct trc_carried *r = rec_begin(out, sizeof *r);

	if (!r)
		return;
	r->sync.tsc = raw_tsc();
	r->sync.object = what->object;
	r->sync.site = what->site;
	r->sync.result = 0;
	r->sync.thread = t->joining ? t->joining - 1 : UINT32_MAX;
	r->sync.value = value;
	r->by = t->index;
	r->pad = 0;
	rec_commit(out, r, TRC_CARRIED, op_at, sizeof *r);
}

/* What it waits for is not known of waits with a time-out. */
static void write_all_carried(struct rec_stream *out, const struct shim_thread *t)
{
	uint32_t n = t->nheld < SHIM_HELD_MAX ? t->nheld : SHIM_HELD_MAX;
	struct shim_held waits = { .object = t->blocked_object, .site = t->blocked_site };

	for (uint32_t i = 0; i < n; i++)
		write_carried(out, t, SHIM_AT(t->held[i].op == TRC_OP_WAIT ? TRC_OP_LOCK : t->held[i].op, TRC_AT_DONE), &t->held[i], 0);
	if (t->blocked_op)
		write_carried(out, t, SHIM_AT(t->blocked_op, TRC_AT_BLOCK), &waits, t->blocked_value);
}

void tr_epoch_states(struct rec_stream *out)
{
	for (const struct tr_ctx *c = tr.contexts; c; c = c->next)
		if (is_alive(c)) {
			write_state(out, c);
			write_all_carried(out, c->thread);
		}
	write_tickets(out);
}

static void begin_process_stream(void)
{
	struct trc_epoch *r;

	rec_renew(&rec_process, used_of(&rec_process));
	rec_identity_again();
	rec_identity_clock();
	rec_modules_forget();
	rec_modules(0, 0);
	shim_threads_again();
	r = rec_begin(&rec_process, sizeof *r);
	if (!r)
		return;
	r->tsc = raw_tsc();
	r->epoch = rec_epoch;
	r->pause = pause_us;
	rec_commit(&rec_process, r, TRC_EPOCH, 0, sizeof *r);
}

static void checkpoint(struct tr_ctx *self)
{
	uint64_t saved, before = rec_total();

	rec_lock(&saved);
	rec_ring_begin();
	for (struct tr_ctx *c = tr.contexts; c; c = c->next)
		if (is_alive(c))
			renew(c);
	begin_process_stream();
	if (__atomic_exchange_n(&tr_epochs.save, false, __ATOMIC_RELAXED) && !rec_ring_save())
		shim_note(false, "what there is could not be saved");
	uint64_t files = rec_total() - before;

	tr_lock();
	sizes.resident = resident();
	tr_epoch_write(&sizes.next, sizes.resident + sizes.all);
	tr_unlock();
	sizes.besides = files;
	sizes.seen = false;
	self->epoch = rec_epoch;
	rec_unlock(&saved);
}

/* Failures are explained from what is there: no epoch begins behind one. */
static bool may_take(void)
{
	return !tr.detached && !tr.stopping && shim.state == SHIM_RECORDING && !shim.failed && *shim_here;
}

static bool take(struct tr_ctx *c)
{
	_Alignas(64) uint8_t area[TR_XSAVE_MAX];
	struct tr_parked p = put_down(c, area);
	uint64_t since = raw_nsec(CLOCK_MONOTONIC);

	__atomic_store_n(&tr_epochs.stopping, 1, __ATOMIC_SEQ_CST);
	bool taken = others_stop(c) && may_take();

	if (taken) {
		c->parked = &p;
		checkpoint(c);
		c->parked = NULL;
		pause_us = (uint32_t)((raw_nsec(CLOCK_MONOTONIC) - since) / 1000);
	}
	__atomic_store_n(&tr_epochs.stopping, 0, __ATOMIC_SEQ_CST);
	raw(SYS_futex, &tr_epochs.stopping, FUTEX_WAKE_PRIVATE, INT32_MAX);
	return taken;
}

/* So much more, or less, than at the last checkpoint. */
static uint64_t as_of_now(uint64_t bytes, int64_t grown)
{
	return grown >= 0 || (uint64_t)-grown < bytes ? bytes + (uint64_t)grown : 0;
}

/* The ring is full: a checkpoint that is whole by now lets older epochs go. Who waits for a lock of ours must not meet somebody in here. */
void tr_epoch_settle(void)
{
	if (!rec_epoch || __atomic_exchange_n(&settling, 1, __ATOMIC_ACQUIRE))
		return;
	tr_epoch_writing();
	__atomic_store_n(&settling, 0, __ATOMIC_RELEASE);
}

/* What the last checkpoint has come to says how large the next one will be. */
static void guess_sizes(struct rec_ring_need *need)
{
	uint64_t now = resident();
	int64_t grown = now && sizes.resident ? (int64_t)(now - sizes.resident) : 0; /* behind a chroot nobody says */
	struct tr_pages_known k;
	bool is_short;
	uint64_t written = tr_epoch_written(sizes.next.bytes, &is_short), pages;

	if (!sizes.seen) {
		sizes.missing = is_short ? 2 * sizes.missing + MISSING_MIN : 0;
		sizes.in_vain = tr_epoch_failed() ? sizes.in_vain + 1 : 0;
	}
	sizes.seen = true;
	need->known = tr_pages_known(&k);
	need->guessed = !(is_short && tr_pages_tried(&k));
	if (need->guessed && !need->known) {
		sizes.all = written > sizes.all ? written : sizes.all;
		need->all = as_of_now(sizes.all, grown) + sizes.besides;
		return;
	}
	pages = !sizes.next.since ? k.all : sizes.next.since == sizes.next.base ? k.recent : k.changed;
	uint64_t besides = sizes.besides + sizes.missing + (!is_short && written > pages ? written - pages : 0);
	uint64_t more = besides + (grown > 0 ? (uint64_t)grown : 0);

	sizes.all = k.all;
	need->all = as_of_now(k.all, grown) + besides;
	need->recent = k.recent + k.changed / 4 + more;
	need->last = k.changed + k.changed / 4 + more;
}

/* Files are removed, and looked for, before anybody has to wait. */
static bool is_prepared(void)
{
	struct rec_ring_need need = { 0 };
	struct rec_ring_next next;

	if (!may_take())
		return false;
	while (__atomic_exchange_n(&settling, 1, __ATOMIC_ACQUIRE))
		raw(SYS_sched_yield);
	bool writing = tr_epoch_writing();

	__atomic_store_n(&settling, 0, __ATOMIC_RELEASE);
	if (writing)
		return false;
	guess_sizes(&need);
	if (!rec_ring_prepare(&need, &next))
		return false;
	sizes.next = next;
	return true;
}

void tr_epoch_boundary(struct tr_ctx *c)
{
	if (c->native || c->vfork_child || c->own_process || !rec_epoch)
		return;
	if (__atomic_load_n(&tr_epochs.stopping, __ATOMIC_SEQ_CST))
		park(c);
	if (raw_tsc() < __atomic_load_n(&tr_epochs.due, __ATOMIC_RELAXED))
		return;
	if (__atomic_exchange_n(&tr_epochs.taking, true, __ATOMIC_ACQUIRE))
		return; /* somebody else does */
	__atomic_store_n(&tr_epochs.due, UINT64_MAX, __ATOMIC_RELAXED);
	bool taken = is_prepared() && take(c);

	uint64_t wait = (taken || epoch_ms() < AGAIN_MS ? epoch_ms() : AGAIN_MS)
			<< (sizes.in_vain < LATER_MAX ? sizes.in_vain : LATER_MAX);

	__atomic_store_n(&not_before, raw_tsc() + (taken && !sizes.in_vain ? 0 : ticks(wait)), __ATOMIC_RELAXED);
	due_in(wait);
	__atomic_store_n(&tr_epochs.taking, false, __ATOMIC_RELEASE);
}
