/*
 * The third execution: from the window's start every program read of a shared
 * location is a fresh symbol, and what is computed from it an expression.
 */
#include "analyzer/symtrace/extract_internal.h"

#include <string.h>
#include <sys/syscall.h>

/* Bits [8*low, 8*(low+size)) of whole replaced by part. */
static expr_id insert(struct expr_pool *p, expr_id whole, unsigned width, expr_id part,
		      unsigned low, unsigned size)
{
	expr_id e = part;

	if (low)
		e = expr_binary(p, EX_CONCAT, e, expr_extract(p, whole, 0, low * 8));
	if ((low + size) * 8 < width)
		e = expr_binary(p, EX_CONCAT,
				expr_extract(p, whole, (low + size) * 8,
					     width - (low + size) * 8), e);
	return e;
}

static uint64_t memory_at(struct ext *x, const struct ext_location *l)
{
	uint64_t v = 0;

	mach_read(x->run, l->start, &v, l->size);
	return v;
}

static uint64_t low_bits(uint64_t v, unsigned bits)
{
	return bits >= 64 ? v : v & ((1ull << bits) - 1);
}

/* Part of one access that lies in one location. */
struct piece {
	const struct mach_access *a;
	struct ext_location *l;
	unsigned low;  /* first byte inside the location */
	unsigned size;
	unsigned from; /* first byte inside the access */
	bool whole;    /* covers the location */
};

static expr_id fresh(struct ext *x, const struct piece *p, uint32_t var)
{
	const struct sym_thread *t = &x->trace->threads[p->a->thread];
	char *name = xasprintf("%s@%s.%zu", x->trace->vars[var].name, t->id, t->nevents);
	expr_id s = expr_symbol(x->trace->pool, p->l->size * 8u, name);

	free(name);
	return s;
}

static uint32_t add(struct ext *x, const struct piece *p, struct sym_event *e)
{
	const struct mach_access *a = p->a;
	uint64_t n = ext_is_part(x) ? 0 : ext_count(x, a->thread, a->pc, a->insn);

	return ext_event(x, a->thread, e, a->pc, n, a->insn);
}

static expr_id read_piece(struct ext *x, const struct piece *p)
{
	struct ext_thread *th = ext_thread(x, p->a->thread);
	uint64_t now = memory_at(x, p->l);
	uint32_t var = ext_location_var(x, p->l, p->a, now);
	uint64_t mask = low_bits(~0ull, p->size * 8) << p->low * 8;
	uint64_t bytes = low_bits(p->a->value >> p->from * 8, p->size * 8);
	struct sym_event e;

	sym_event_init(&e, p->a->flags & MACH_ATOMIC ? SYM_RMW : SYM_READ);
	e.target = var;
	e.symbol = fresh(x, p, var);
	e.has_seen = true;
	/* Not always what memory holds: see struct mach_forced. */
	e.seen = (now & ~mask) | bytes << p->low * 8;
	uint32_t index = add(x, p, &e);
	if (p->a->flags & MACH_ATOMIC)
		th->atomic = index;
	return expr_extract(x->trace->pool, e.symbol, p->low * 8, p->size * 8);
}

static void write_piece(struct ext *x, const struct piece *p, expr_id value)
{
	struct expr_pool *pool = x->trace->pool;
	struct ext_thread *th = ext_thread(x, p->a->thread);
	struct sym_thread *t = &x->trace->threads[p->a->thread];
	uint64_t before = memory_at(x, p->l);
	uint32_t var = ext_location_var(x, p->l, p->a, before);
	uint64_t bytes = low_bits(p->a->value >> p->from * 8, p->size * 8);
	expr_id part = value == EXPR_NONE ? expr_const(pool, p->size * 8, bytes) :
					    expr_extract(pool, value, p->from * 8, p->size * 8);
	unsigned width = p->l->size * 8u;
	uint64_t mask = low_bits(~0ull, p->size * 8) << p->low * 8;
	uint64_t after = (before & ~mask) | bytes << p->low * 8;

	if ((p->a->flags & MACH_ATOMIC) && th->atomic != SYM_NONE &&
	    t->events[th->atomic].target == var) {
		struct sym_event *rmw = &t->events[th->atomic];
		expr_id old = rmw->value == EXPR_NONE ? rmw->symbol : rmw->value;
		rmw->value = insert(pool, old, width, part, p->low, p->size);
		rmw->seen = after;
		return;
	}
	struct sym_event e;
	sym_event_init(&e, p->whole ? SYM_WRITE : SYM_RMW);
	e.target = var;
	if (!p->whole)
		e.symbol = fresh(x, p, var);
	e.value = p->whole ? part : insert(pool, e.symbol, width, part, p->low, p->size);
	e.has_seen = true;
	e.seen = after;
	add(x, p, &e);
}

/* From this byte of the access on; false: what lies there nobody shares. */
static bool piece_at(struct ext *x, const struct mach_access *a, unsigned from, struct piece *p)
{
	uint64_t address = a->address + from, end = a->address + a->size, cut = (address | 7) + 1;

	p->a = a;
	p->from = from;
	p->l = ext_location_at(x, address);
	if (p->l) {
		cut = p->l->start + p->l->size;
	} else {
		size_t next = ext_location_from(x, address);

		if (next < x->locations.n && x->locations.v[next].start < cut)
			cut = x->locations.v[next].start;
	}
	p->size = (unsigned)((end < cut ? end : cut) - address);
	if (!p->l)
		return false;
	p->low = (unsigned)(address - p->l->start);
	p->whole = p->low == 0 && p->size == p->l->size;
	return true;
}

/* The bytes of a read that nobody shares have the value that memory has for its thread. */
static expr_id own_piece(struct ext *x, const struct piece *p, expr_id value)
{
	if (value != EXPR_NONE)
		return expr_extract(x->trace->pool, value, p->from * 8, p->size * 8);
	return expr_const(x->trace->pool, p->size * 8,
			  low_bits(p->a->value >> p->from * 8, p->size * 8));
}

/* The interposed function's ret pops the address its caller goes on at. */
static void finish_release(struct ext_thread *th, const struct mach_access *a)
{
	if (th->wait_mutex && (a->flags & MACH_WRITE) && a->address == th->wait_mutex) {
		th->points.v[th->release_point].insn = a->insn;
		th->wait_mutex = 0;
	}
	if (!th->release_site || !(a->flags & MACH_READ) || a->size != 8 ||
	    a->value != th->release_site)
		return;
	th->points.v[th->release_point].insn = a->insn;
	th->release_site = 0;
}

/* What was read through a pointer is where a function begins: it is going to be called. */
static void note_virtual(struct ext *x, struct ext_thread *th, const struct mach_access *a)
{
	uint64_t offset;

	if (th->address_cond == EXPR_NONE || a->thread != x->failing || a->size != 8 ||
	    (a->flags & (MACH_WRITE | MACH_READ)) != MACH_READ || !level_is_own(x->level, a->pc))
		return;
	if (img_symbol(x->images, a->value, &offset) && !offset)
		th->last_virtual = (struct ext_decision){ th->address_cond, th->address_before, a->insn };
}

/*
 * Behind the gap a location holds what no event has written, until the first one does: reading it is
 * no event, it has the value that came out of the gap.
 */
static bool is_out_of_gap(const struct ext *x, const struct piece *p)
{
	const struct ext_middle *m = x->o->middle;

	if (!m || !m->gap_from || p->a->time < m->gap_to || p->l->written)
		return false;
	p->l->written = p->whole && (p->a->flags & MACH_WRITE);
	return !p->l->written;
}

static expr_id take_pieces(struct ext *x, const struct mach_access *a, expr_id value)
{
	expr_id result = EXPR_NONE;
	struct piece p;

	for (unsigned from = 0; from < a->size; from += p.size) {
		bool shared = piece_at(x, a, from, &p) && !is_out_of_gap(x, &p);

		if (a->flags & MACH_WRITE) {
			if (shared)
				write_piece(x, &p, value);
			continue;
		}
		expr_id e = shared ? read_piece(x, &p) : own_piece(x, &p, value);
		result = result == EXPR_NONE ? e :
			 expr_binary(x->trace->pool, EX_CONCAT, e, result);
	}
	return result;
}

static expr_id on_access(void *arg, const struct mach_access *a, expr_id value)
{
	struct ext *x = arg;
	struct mach_access part;

	x->accessed = a->time;
	x->in_window = ext_is_inside(x, a->time);
	note_virtual(x, ext_thread(x, a->thread), a);
	ext_thread(x, a->thread)->address_cond = EXPR_NONE; /* that access did not fault */
	part.address = a->address;
	part.size = a->size;
	bool matters = ext_matters(x, a, &part);
	ext_heap_watch(x, a);
	ext_misuse_watch(x, a, part.address, part.size);
	ext_heap_watched(x, a);
	ext_left_watch(x, a);
	finish_release(ext_thread(x, a->thread), a);
	if (a->flags & MACH_WRITE)
		ext_sync_write(x, a);
	/* Every execution counts, also one on memory that nobody shares: the position of
	 * an event is found again in a live run by counting instructions, not events. */
	if (!ext_is_part(x))
		ext_count(x, a->thread, a->pc, a->insn);
	if (!matters || !x->in_window)
		return EXPR_NONE;
	if (part.size == a->size)
		return take_pieces(x, a, value);

	/* The rest of the block has no say in anything. */
	struct expr_pool *pool = x->trace->pool;
	unsigned low = (unsigned)(part.address - a->address), size = part.size;
	expr_id whole = expr_const(pool, a->size * 8u, a->value);
	if (value != EXPR_NONE)
		value = expr_extract(pool, value, low * 8, size * 8);
	return insert(pool, whole, a->size * 8u, take_pieces(x, &part, value), low, size);
}

static void on_atomic_end(void *arg, uint32_t thread, uint64_t pc)
{
	struct ext *x = arg;
	struct ext_thread *th = ext_thread(x, thread);
	struct sym_event e;

	/* Even on memory that nobody shares it drains the store buffer. Behind what is told of the others' going on
	 * it would stand alone: without the lock that it is done in, say. */
	if (x->in_window && th->atomic == SYM_NONE && level_is_own(x->level, pc) &&
	    !(x->until && mach_time(x->run) > x->until)) {
		uint64_t insn = mach_thread_insns(x->run, thread);

		sym_event_init(&e, SYM_FENCE);
		ext_event(x, thread, &e, pc, ext_is_part(x) ? 0 : ext_count(x, thread, pc, insn), insn);
	}
	th->atomic = SYM_NONE;
}

/* memcmp(), strcasecmp() ... */
static bool in_comparison(struct ext *x, uint32_t thread)
{
	const char *name = level_callee(x->level, thread);
	size_t n = strlen(name);

	return n > 3 && (!strcmp(name + n - 3, "cmp") || strstr(name, "cmp_"));
}

static void on_branch(void *arg, const struct mach_branch *b)
{
	struct ext *x = arg;
	struct ext_thread *th = ext_thread(x, b->thread);

	th->address_cond = EXPR_NONE;
	if (b->thread != x->failing && (b->cond == EXPR_NONE || ext_is_behind(x)))
		return;
	bool own = level_is_own(x->level, b->pc);
	if (b->thread == x->failing && own) {
		th->brink = b->insn;
		th->compared = th->comparing;
		th->comparing.cond = EXPR_NONE;
	}
	if (b->cond == EXPR_NONE)
		return;

	struct ext_decision d = { b->cond, x->trace->threads[b->thread].nconds, b->insn };
	enum ext_cond_added added = ext_add_cond(x, b->thread, b->cond, b->pc, false);

	if (added == COND_ADDED)
		th->last = d;
	if (added != COND_SAYS_NOTHING && own)
		th->last_own = d;
	else if (added != COND_SAYS_NOTHING && b->thread == x->failing && in_comparison(x, b->thread))
		th->comparing = d;
}

static void on_concretized(void *arg, uint32_t thread, uint64_t pc, expr_id cond, const char *why)
{
	struct ext *x = arg;
	struct ext_thread *th = ext_thread(x, thread);

	if (thread != x->failing && ext_is_behind(x))
		return;
	if (cond == EXPR_NONE) {
		char *s = xasprintf("A value read from shared memory went into an operation that "
				    "is not followed symbolically (%s); it keeps its recorded value.",
				    why);
		sym_add_assumption(x->trace, s);
		free(s);
		return;
	}
	/* What it faults by, if it does. */
	if (!strcmp(why, "address") || !strncmp(why, "bad di", 6)) {
		th->address_cond = cond;
		th->address_pc = pc;
		th->address_before = x->trace->threads[thread].nconds;
	}
	/* That a hash comes out the same no solver says but for the same values. */
	ext_add_cond(x, thread, cond, pc, !strcmp(why, "a long computation"));
}

static bool is_join(const struct trc_sync *rec)
{
	enum trc_op op = TRC_SYNC_OP(rec->rec.flags);

	return op == TRC_OP_JOIN || op == TRC_OP_TRYJOIN || op == TRC_OP_TIMEDJOIN;
}

static void on_sync(void *arg, uint32_t thread, const struct trc_sync *rec)
{
	struct ext *x = arg;

	x->in_window = ext_is_inside(x, ext_now(x));
	if (x->until && mach_time(x->run) > x->until)
		return;
	/* The failure lies behind everything that the window's threads do. */
	x->in_window |= ext_is_behind(x) && is_join(rec);
	ext_destroyed_watch(x, thread, rec);
	ext_sync(x, thread, rec);
	ext_time(x, thread, rec->tsc);
}

/* Fresh memory took the place of what lay there: for known locations that is a write. */
static void remapped(struct ext *x, uint32_t thread, const struct trc_enter *enter,
		     uint64_t start, uint64_t end)
{
	for (size_t i = ext_location_from(x, start); i < x->locations.n; i++) {
		struct ext_location *l = &x->locations.v[i];
		struct mach_access a = { .thread = thread, .size = l->size,
					 .flags = MACH_WRITE | MACH_KERNEL, .pc = enter->pc,
					 .address = l->start, .value = memory_at(x, l),
					 .insn = mach_thread_insns(x->run, thread),
					 .time = mach_time(x->run) };
		struct piece p;

		if (l->start >= end)
			break;
		if (l->var != SYM_NONE && piece_at(x, &a, 0, &p))
			write_piece(x, &p, EXPR_NONE);
	}
}

static void on_syscall(void *arg, uint32_t thread, const struct trc_enter *enter,
		       const struct trc_leave *leave)
{
	struct ext *x = arg;

	if (leave && x->started > 1 && ext_may_wait(enter->rec.flags) && mach_time(x->run) >= x->from)
		x->kernel_waits = true;
	ext_time(x, thread, leave ? leave->tsc : enter->tsc);
	ext_signals_call(x, thread, enter, leave != NULL);
	ext_inside_call(x, thread, enter, leave != NULL);
	if (leave) {
		ext_closed_watch(x, thread, enter, leave);
		ext_files_call(x, thread, enter, leave);
	}
	if (leave && enter->rec.flags == SYS_mmap && leave->result > 0 && ext_is_inside(x, ext_now(x)))
		remapped(x, thread, enter, (uint64_t)leave->result,
			 (uint64_t)leave->result + enter->args[1]);
}

static void on_signal(void *arg, uint32_t thread, const struct trc_signal *rec)
{
	ext_signals_delivered(arg, thread, rec->rec.flags);
}

static void on_start(void *arg, uint32_t thread, uint32_t parent)
{
	struct ext *x = arg;
	struct sym_event e;

	x->in_window = ext_is_inside(x, ext_now(x));
	ext_thread(x, thread)->started = true;
	x->started++;
	ext_birth_note(x, thread, parent);
	/* A thread born before the window has no start event: it simply runs. */
	if (!x->in_window || thread == 0)
		return;
	sym_event_init(&e, SYM_START);
	ext_event(x, thread, &e, 0, 0, 0);
}

static void on_exit_thread(void *arg, uint32_t thread)
{
	struct ext *x = arg;
	struct sym_event e;

	if (mach_time(x->run) < x->from || x->trace->threads[thread].nevents == 0)
		return;
	sym_event_init(&e, SYM_EXIT);
	ext_event(x, thread, &e, 0, 0, mach_thread_insns(x->run, thread));
}

static bool on_stop(void *arg)
{
	return ext_stop(arg);
}

static void on_onward(void *arg)
{
	ext_onward(arg);
}

err_t ext_build(struct ext *x)
{
	struct mach_hooks hooks = {
		.arg = x,
		.begin = ext_prelude,
		.access = on_access,
		.atomic_end = on_atomic_end,
		.branch = on_branch,
		.concretized = on_concretized,
		.sync = on_sync,
		.syscall = on_syscall,
		.signal = on_signal,
		.thread_start = on_start,
		.thread_exit = on_exit_thread,
		.stop = on_stop,
		.onward_insns = ext_onward_insns(x),
		.onward = on_onward, .go_onward = mach_go_onward,
		.symbols_from = share_count(x->share) ? x->from : UINT64_MAX,
	};

	x->phase = "building symbolic traces";
	x->started = 1; /* the main thread */
	TRY(mach_again(x->run, x->base, &hooks, x->trace->pool));
	if (x->misused_fd.kind)
		sym_add_assumption(x->trace, "System calls give their recorded results in every order: that a "
					     "descriptor would still be open in another one is not known here.");
	if (x->kernel_waits)
		sym_add_assumption(x->trace,
				   "System calls give their recorded results in every order: that a thread "
				   "waits for another through a pipe, socket or file is not known here.");
	return NULL;
}
