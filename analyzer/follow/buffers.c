/*
 * Store buffers. A processor's store becomes visible to the others a little later than it is
 * executed, and its thread goes on meanwhile; memory of the machine changes at once. So in a run
 * that was followed a load may have been forced to a value that no order of the accesses gives it
 * and that is nothing odd: the store that replaced the value was still on its way.
 *
 * Whether that explains a forced load is decided by executing the committed order once more. A
 * store may still be in its thread's buffer when
 *
 *   - the thread has executed no locked instruction, fence or system call since (they wait until
 *     the buffer is empty), took no ticket (the recorder's locked instruction),
 *   - nobody else has seen it, or a later store of the thread: stores leave the buffer in their
 *     order; and what was stored over it has not left its own buffer: memory holds the latter;
 *   - no more stores followed than a buffer holds.
 *
 * A forced load is explained when taking such stores back, latest first, gives its value. The run
 * is then an execution under total store order, and as exact as any.
 */
#include "analyzer/follow/buffers.h"

#include <string.h>

#define DEPTH 128u              /* stores; processors of today have 44 to 128 */
#define BEFORE 20000u           /* instructions before the first forced load: fills the buffers */
#define LOOK_AT_MOST 60000000u  /* instructions */
#define FILTER 4096u

struct buffered {
	uint64_t word, old;  /* address / 8, and what was there before */
	uint64_t order, pc;
	uint8_t mask;        /* a bit for each byte of the word */
	uint32_t over;       /* the thread whose buffered store it overwrites; NO_THREAD: none ... */
	uint64_t over_next;  /* ... which leaves before it does: up to this number */
};

/* Stores that may still be in a thread's buffer: numbers [first, next). */
struct buffer {
	struct buffered v[DEPTH];
	uint64_t first, next;
};

struct buffers {
	struct mach_run *r;
	struct buffer *of;      /* per thread */
	uint64_t order, tickets;
	uint16_t filter[FILTER]; /* how many buffered stores have this hash of their word */
};

static uint16_t *filter_of(struct buffers *b, uint64_t word)
{
	return &b->filter[word * 0x9e3779b97f4a7c15ull >> 52];
}

/* Everything before number `next` has left the buffer; and what that overwrote, before. */
static void left(struct buffers *b, struct buffer *t, uint64_t next)
{
	while (t->first < next) {
		const struct buffered s = t->v[t->first++ % DEPTH];

		(*filter_of(b, s.word))--;
		/* Of an earlier order than s: this comes to an end. */
		if (s.over != NO_THREAD)
			left(b, &b->of[s.over], s.over_next);
	}
}

/* Others' stores to these bytes were seen. */
static void seen(struct buffers *b, uint32_t by, uint64_t word, uint8_t mask)
{
	if (!*filter_of(b, word))
		return;
	for (uint32_t i = 0; i < b->r->nthreads; i++) {
		struct buffer *t = &b->of[i];

		for (uint64_t k = t->next; i != by && k-- > t->first;)
			if (t->v[k % DEPTH].word == word && t->v[k % DEPTH].mask & mask)
				left(b, t, k + 1);
	}
}

/* The store is made over others that are still buffered: those leave first. */
static void overwrites(struct buffers *b, uint32_t by, struct buffered *s)
{
	if (!*filter_of(b, s->word))
		return;
	for (uint32_t i = 0; i < b->r->nthreads; i++) {
		struct buffer *t = &b->of[i];

		for (uint64_t k = t->next; i != by && k-- > t->first;) {
			if (t->v[k % DEPTH].word != s->word || !(t->v[k % DEPTH].mask & s->mask))
				continue;
			if (s->over != NO_THREAD) {
				left(b, t, k + 1);
			} else {
				s->over = i;
				s->over_next = k + 1;
			}
			break;
		}
	}
}

static void put(struct buffers *b, struct buffer *t, const struct buffered *s)
{
	if (t->next - t->first == DEPTH)
		left(b, t, t->first + 1);
	t->v[t->next++ % DEPTH] = *s;
	(*filter_of(b, s->word))++;
}

/* The latest buffered store to these bytes before `order`; *who: its thread. */
static const struct buffered *latest(const struct buffers *b, uint64_t word, uint8_t mask,
				     uint64_t order, uint32_t *who)
{
	const struct buffered *best = NULL;

	for (uint32_t i = 0; i < b->r->nthreads; i++) {
		const struct buffer *t = &b->of[i];

		for (uint64_t k = t->first; k < t->next; k++) {
			const struct buffered *s = &t->v[k % DEPTH];

			if (s->word == word && s->mask & mask && s->order < order &&
			    (!best || s->order > best->order)) {
				best = s;
				*who = i;
			}
		}
	}
	return best;
}

/* Takes back stores that others may still have in their buffers, until the load sees its value. */
bool buffers_explain(struct buffers *b, struct mach_forced *l)
{
	unsigned first = l->address % 8;
	uint8_t mask = (uint8_t)(((1u << l->size) - 1) << first);
	uint64_t now = 0, order = UINT64_MAX;
	const struct buffered *s;
	uint32_t who;

	l->buffered = false;
	if (first + l->size > 8)
		return false;
	memcpy((uint8_t *)&now + first, &l->memory, l->size);
	while ((s = latest(b, l->address / 8, mask, order, &who)) && who != l->thread) {
		for (unsigned i = 0; i < 8; i++)
			if (s->mask & 1u << i)
				((uint8_t *)&now)[i] = ((const uint8_t *)&s->old)[i];
		order = s->order;
		if (!memcmp((uint8_t *)&now + first, &l->value, l->size)) {
			l->buffered = true;
			l->store_thread = who;
			l->store_pc = s->pc;
			return true;
		}
	}
	return false;
}

static struct load_force *forced_here(const struct mach_run *r, uint64_t insn, uint64_t address)
{
	struct load_force *f = run_next_force(r, r->current);

	return f && f->used && !f->split && f->load.insn == insn && address <= f->load.address &&
			       address + 8 > f->load.address ? f : NULL;
}

static void on_piece(struct buffers *b, uint64_t pc, uint64_t address, unsigned size, unsigned how)
{
	struct mach_run *r = b->r;
	uint32_t who = r->current;
	struct buffered s = { .word = address / 8, .order = ++b->order, .pc = pc, .over = NO_THREAD,
			      .mask = (uint8_t)(((1u << size) - 1) << address % 8) };

	if (how & ACCESS_WRITE && !(how & ACCESS_LOCKED) &&
	    mem_peek(r->m->mem, s.word * 8, &s.old, 8)) {
		overwrites(b, who, &s);
		put(b, &b->of[who], &s);
	} else {
		seen(b, who, s.word, s.mask);
	}
}

void buffers_fence(struct buffers *b, uint32_t thread)
{
	left(b, &b->of[thread], b->of[thread].next);
}

void buffers_access(struct buffers *b, uint64_t pc, uint64_t address, unsigned size, unsigned how)
{
	struct mach_run *r = b->r;
	struct mach *m = r->m;
	uint64_t insn = m->insns + (m->now_op ? m->now_op->insn : 0);
	struct load_force *f = how & ACCESS_READ ? forced_here(r, insn, address) : NULL;
	unsigned first = 8 - address % 8 < size ? 8 - (unsigned)(address % 8) : size;

	if (how & ACCESS_LOCKED || r->res.locked != b->tickets)
		buffers_fence(b, r->current);
	b->tickets = r->res.locked;
	if (f) {
		buffers_explain(b, &f->load);
		return; /* it saw none of them */
	}
	on_piece(b, pc, address, first, how);
	if (first < size)
		on_piece(b, pc, address + first, size - first, how);
}

struct buffers *buffers_new(struct mach_run *r)
{
	struct buffers *b = xcalloc(1, sizeof *b);

	b->r = r;
	b->tickets = r->res.locked;
	b->of = xcalloc(r->nthreads, sizeof *b->of);
	return b;
}

void buffers_free(struct buffers *b)
{
	free(b ? b->of : NULL);
	free(b);
}

/* ---- the run that was followed, once more ---- */

static void on_fence(void *arg, struct mach *m)
{
	struct buffers *b = arg;

	(void)m;
	buffers_fence(b, b->r->current);
}

static void on_access(void *arg, struct mach *m, uint64_t pc, uint64_t address, unsigned size,
		      unsigned how, uint64_t value)
{
	(void)m;
	(void)value;
	buffers_access(arg, pc, address, size, how);
}

static err_t look(struct buffers *b, uint64_t from)
{
	struct mach_run *r = b->r;
	size_t log;

	TRY(run_go_to(r, from, &log));
	b->tickets = r->res.locked;
	for (; log < r->log.n; log++) {
		const struct log_step s = r->log.v[log];

		TRY(run_log_step(r, &s));
		if (s.action != ACT_RUN)
			buffers_fence(b, s.thread);
	}
	return NULL;
}

static bool first_forced(const struct mach_run *r, uint64_t *time)
{
	bool any = false;

	for (size_t i = 0; i < r->forces.n; i++) {
		const struct load_force *f = &r->forces.v[i];

		if (!f->used || f->split)
			continue;
		*time = any && *time < f->time ? *time : f->time;
		any = true;
	}
	return any;
}

void run_explain_forces(struct mach_run *r)
{
	struct buffers *b;
	uint64_t first = 0, from;
	struct checkpoint *end;

	if (!first_forced(r, &first) || r->asked_to_stop)
		return;
	from = run_checkpoint_time(r, first > BEFORE ? first - BEFORE : 0);
	if (r->time - from > LOOK_AT_MOST)
		return;
	b = buffers_new(r);
	r->edges.n = 0;
	end = checkpoint_take(r);
	r->m->access = on_access;
	r->m->fence = on_fence;
	r->m->access_arg = b;
	err_free(look(b, from));
	r->m->access = NULL;
	r->m->fence = NULL;
	r->m->access_arg = NULL;
	checkpoint_restore(r, end);
	checkpoint_free(r, end);
	buffers_free(b);
}
