#include "analyzer/symtrace/extract_share_internal.h"

#include "analyzer/execute/orders.h"
#include "analyzer/symtrace/extract_text.h"

#include <sys/syscall.h>

enum {
	G_FOREIGN = 1, /* on the stack of another thread than the first that came */
	G_SPLIT = 2,   /* its bytes have owners of their own */
};

/* Masks have a bit per byte. */
struct granule {
	uint64_t key;    /* address / 8 + 1; 0: free */
	uint32_t thread; /* whose program code came first; G_SPLIT: index of splits[] */
	uint8_t mine;    /* touched by that ... */
	uint8_t multi;   /* ... by program code of two threads ... */
	uint8_t written; /* ... and by anyone, while more than one thread was alive */
	uint8_t flags;
};

/* Once two threads have touched different bytes: per byte the first that did, + 1; 0: none. */
struct split {
	uint32_t owner[8];
};

/* Descriptors of threads are no larger. */
#define MAX_DESCRIPTOR 4096u

struct share *share_new(struct img_set *images)
{
	struct share *s = xcalloc(1, sizeof *s);

	s->level = level_new(images);
	s->handed = handed_new();
	s->size = 1 << 14;
	s->table = xcalloc(s->size, sizeof *s->table);
	return s;
}

void share_free(struct share *s)
{
	if (!s)
		return;
	level_free(s->level);
	handed_free(s->handed);
	vec_free(&s->stacks);
	vec_free(&s->cancels);
	vec_free(&s->splits);
	free(s->table);
	free(s->shared);
	free(s);
}

static struct granule *find(struct granule *table, size_t size, uint64_t key)
{
	size_t i = share_home(key, size);

	while (table[i].key && table[i].key != key)
		i = (i + 1) & (size - 1);
	return &table[i];
}

static struct granule *granule_at(struct share *s, uint64_t address)
{
	uint64_t key = (address >> 3) + 1;
	struct granule *g = find(s->table, s->size, key);

	if (g->key)
		return g;
	if (s->used * 2 >= s->size) {
		struct granule *bigger = xcalloc(s->size * 2, sizeof *bigger);

		for (size_t i = 0; i < s->size; i++)
			if (s->table[i].key)
				*find(bigger, s->size * 2, s->table[i].key) = s->table[i];
		free(s->table);
		s->table = bigger;
		s->size *= 2;
		g = find(s->table, s->size, key);
	}
	s->used++;
	g->key = key;
	return g;
}

static struct stack *stack_of(struct share *s, uint32_t thread)
{
	while (s->stacks.n <= thread)
		vec_push(&s->stacks, (struct stack){ 0 });
	return &s->stacks.v[thread];
}

/* Seen for the first time: its stack is where its stack pointer is. */
static void meet(struct share *s, uint32_t thread, struct stack *k)
{
	uint64_t regs[TRC_NREGS];

	if (!mach_regs(s->run, thread, regs, NULL) ||
	    !mach_mapping(s->run, regs[TRC_RSP], &k->lo, &k->hi))
		k->hi = 1;
	if (!k->alive) {
		k->alive = true;
		s->alive++;
	}
}

/* Threads that run when the watch begins; one of them may never be seen doing anything. */
static void on_begin(void *arg)
{
	struct share *s = arg;
	uint64_t regs[TRC_NREGS];

	for (uint32_t i = 0; i < mach_thread_count(s->run); i++) {
		if (!mach_thread_alive(s->run, i))
			continue;
		meet(s, i, stack_of(s, i));
		if (mach_regs(s->run, i, regs, NULL))
			level_begin(s->level, i, regs[TRC_RIP]);
	}
}

static bool own_stack(struct share *s, uint32_t thread, uint64_t address)
{
	struct stack *k = stack_of(s, thread);

	if (!k->hi)
		meet(s, thread, k);
	return address >= k->lo && address < k->hi;
}

static bool foreign_stack(struct share *s, uint32_t thread, uint64_t address)
{
	for (size_t i = 0; i < s->stacks.n; i++)
		if (i != thread && s->stacks.v[i].alive && address >= s->stacks.v[i].lo &&
		    address < s->stacks.v[i].hi)
			return true;
	return false;
}

static void split(struct share *s, struct granule *g)
{
	struct split p = { { 0 } };

	for (unsigned i = 0; i < 8; i++)
		if (g->mine >> i & 1)
			p.owner[i] = g->thread + 1;
	g->thread = (uint32_t)s->splits.n;
	g->flags |= G_SPLIT;
	vec_push(&s->splits, p);
}

static void touch_split(struct share *s, struct granule *g, uint32_t thread, uint8_t bytes)
{
	uint32_t *owner = s->splits.v[g->thread].owner;

	for (unsigned i = 0; i < 8; i++) {
		if (!(bytes >> i & 1))
			continue;
		if (!owner[i])
			owner[i] = thread + 1;
		else if (owner[i] != thread + 1)
			g->multi |= (uint8_t)(1u << i);
	}
	g->mine |= bytes;
}

/* Program code of thread touches these bytes. */
static void touch_program(struct share *s, struct granule *g, uint32_t thread, uint64_t address,
			  uint8_t bytes)
{
	if (!g->mine) {
		g->thread = thread;
		/* Its owner need not be seen touching it: it lives there. */
		if (foreign_stack(s, thread, address))
			g->flags |= G_FOREIGN;
	}
	if (g->flags & G_FOREIGN) {
		g->mine |= bytes;
		g->multi |= bytes;
		g->written |= bytes;
		return;
	}
	if (g->flags & G_SPLIT) {
		touch_split(s, g, thread, bytes);
		return;
	}
	if (g->thread == thread) {
		g->mine |= bytes;
		return;
	}
	g->multi |= bytes & g->mine;
	if (bytes & ~g->mine) {
		split(s, g);
		touch_split(s, g, thread, bytes);
	}
}

static void touch(struct share *s, const struct mach_access *a, uint64_t address, unsigned size,
		  bool program)
{
	struct granule *g = granule_at(s, address);
	uint8_t bytes = share_bytes_of(address, size);

	if ((a->flags & MACH_WRITE) && s->alive > 1)
		g->written |= bytes;
	if (program)
		touch_program(s, g, a->thread, address, bytes);
}

static void on_sync(void *arg, uint32_t thread, const struct trc_sync *rec)
{
	struct share *s = arg;

	for (size_t i = 0; i < s->cancels.n; i++)
		if (s->cancels.v[i].by == thread)
			s->cancels.v[i].open = false;
	if (rec->rec.flags == (TRC_OP_CANCEL | TRC_AT_DONE << 12) && rec->thread != UINT32_MAX)
		vec_push(&s->cancels, (struct cancel){ .descriptor = rec->object, .by = thread,
						       .target = rec->thread, .open = true });
}

/*
 * Threads speak to each other through the C library here. Where it keeps that a thread is
 * cancelled is its secret, but pthread_cancel() has to change it in one step, before
 * it does anything else to the other's descriptor.
 */
static void watch_cancel(struct share *s, const struct mach_access *a)
{
	for (size_t i = s->cancels.n; i-- > 0;) {
		struct cancel *c = &s->cancels.v[i];

		if (!c->open || c->by != a->thread || a->address - c->descriptor >= MAX_DESCRIPTOR)
			continue;
		c->word = a->address;
		c->open = false;
		struct granule *g = granule_at(s, a->address);
		g->multi |= share_bytes_of(a->address, a->size);
		g->written |= share_bytes_of(a->address, a->size);
		return;
	}
}

uint32_t share_cancelled(const struct share *s, uint64_t address)
{
	for (size_t i = s->cancels.n; i-- > 0;)
		if (s->cancels.v[i].word && address - s->cancels.v[i].word < sizeof(int))
			return s->cancels.v[i].target;
	return SYM_NONE;
}

static expr_id on_access(void *arg, const struct mach_access *a, expr_id value)
{
	struct share *s = arg;
	struct mach_access part;

	(void)value;
	s->accesses++;
	if (s->cancels.n && (a->flags & MACH_ATOMIC) && (a->flags & MACH_WRITE))
		watch_cancel(s, a);
	bool kernel = a->flags & MACH_KERNEL;
	bool program = !kernel && level_is_program(s->level, a->thread, a->pc);
	if (program && level_scan(s->level, a->thread)) {
		part = text_part(s->level, s->run, a);
		a = &part;
	}
	if (!a->size || own_stack(s, a->thread, a->address) || level_is_shadow(s->level, a->address))
		return EXPR_NONE;
	touch(s, a, a->address, a->size, program);
	uint64_t next = (a->address | 7) + 1, end = a->address + a->size;
	if (end > next)
		touch(s, a, next, (unsigned)(end - next), program);
	return EXPR_NONE;
}

static uint8_t shared_bytes(const struct granule *g)
{
	return g->multi & g->written;
}

static void forget_granule(struct share *s, struct granule *g)
{
	uint8_t keep = shared_bytes(g);

	if (!keep)
		g->flags = 0;
	for (unsigned i = 0; (g->flags & G_SPLIT) && i < 8; i++)
		if (!(keep >> i & 1))
			s->splits.v[g->thread].owner[i] = 0;
	g->mine &= keep;
	g->multi = g->written = keep;
}

/* What is mapped there now is not what other threads may have touched there before. */
static void forget(struct share *s, uint64_t start, uint64_t end)
{
	if ((end - start) >> 3 > s->size) {
		for (size_t i = 0; i < s->size; i++) {
			struct granule *g = &s->table[i];

			if (g->key && g->key - 1 >= start >> 3 && g->key - 1 < end >> 3)
				forget_granule(s, g);
		}
		return;
	}
	for (uint64_t at = start; at < end; at += 8) {
		struct granule *g = find(s->table, s->size, (at >> 3) + 1);

		if (g->key)
			forget_granule(s, g);
	}
}

static void on_syscall(void *arg, uint32_t thread, const struct trc_enter *enter,
		       const struct trc_leave *leave)
{
	(void)thread;
	if (!leave || leave->result < 0)
		return;
	if (enter->rec.flags == SYS_munmap)
		forget(arg, enter->args[0], enter->args[0] + enter->args[1]);
	else if (enter->rec.flags == SYS_mmap)
		forget(arg, (uint64_t)leave->result, (uint64_t)leave->result + enter->args[1]);
}

static void on_start(void *arg, uint32_t thread, uint32_t parent)
{
	struct share *s = arg;
	struct stack *k = stack_of(s, thread);

	(void)parent;
	if (!k->alive)
		s->alive++;
	*k = (struct stack){ .alive = true };
}

static void on_exit_thread(void *arg, uint32_t thread)
{
	struct share *s = arg;
	struct stack *k = stack_of(s, thread);

	if (k->alive)
		s->alive--;
	k->alive = false;
}

static bool on_stop(void *arg)
{
	struct share *s = arg;

	return s->stop && s->stop(s->stop_arg);
}

static void keep_shared(struct share *s)
{
	uint64_t n = share_count(s);

	free(s->shared);
	for (s->nshared = 64; s->nshared < 4 * n;)
		s->nshared *= 2;
	s->shared = xcalloc(s->nshared, sizeof *s->shared);
	for (size_t i = 0; i < s->size; i++) {
		const struct granule *g = &s->table[i];

		if (shared_bytes(g))
			*share_part(s, g->key) = (struct part){ .key = g->key, .shared = shared_bytes(g) };
	}
}

err_t share_watch(struct share *s, struct mach_run *run, uint64_t from, uint64_t onward_insns,
		  bool (*stop)(void *), void *stop_arg)
{
	struct mach_hooks hooks = {
		.arg = s,
		.begin = from ? on_begin : NULL,
		.access = on_access,
		.sync = on_sync,
		.syscall = on_syscall,
		.thread_start = on_start,
		.thread_exit = on_exit_thread,
		.stop = on_stop,
		.onward_insns = onward_insns,
		.go_onward = mach_go_onward,
	};

	s->run = run;
	s->stop = stop;
	s->stop_arg = stop_arg;
	err_t e = mach_again(run, from, &hooks, NULL);
	keep_shared(s);
	return e;
}

uint64_t share_count(const struct share *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->size; i++)
		n += shared_bytes(&s->table[i]) != 0;
	return n;
}

uint64_t share_accesses(const struct share *s)
{
	return s->accesses;
}
