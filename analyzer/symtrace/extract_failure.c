/* Where the run failed, and under which condition: the last thing that is added to a symbolic trace. */
#include "analyzer/symtrace/extract_internal.h"
#include "analyzer/trace_image.h"

#include <string.h>

static const enum sym_failure_kind kind_of[] = {
	[TRC_FAIL_ASSERT] = SYM_FAIL_ASSERT,     [TRC_FAIL_ABORT] = SYM_FAIL_ABORT,
	[TRC_FAIL_SIGNAL] = SYM_FAIL_SIGNAL,     [TRC_FAIL_EXCEPTION] = SYM_FAIL_EXCEPTION,
	[TRC_FAIL_DEADLOCK] = SYM_FAIL_DEADLOCK, [TRC_FAIL_HANG] = SYM_FAIL_HANG,
	[TRC_FAIL_EXIT] = SYM_FAIL_EXIT,         [TRC_FAIL_USER] = SYM_FAIL_USER,
};

/* Where the failing thread stood when the record ended. */
static uint64_t failed_insn(const struct ext *x)
{
	return x->onward ? x->failed_insn : mach_thread_insns(x->run, x->failing);
}

static void remove_cond(struct sym_thread *t, size_t i)
{
	memmove(&t->conds[i], &t->conds[i + 1], (t->nconds - i - 1) * sizeof *t->conds);
	t->nconds--;
}

struct writes {
	const struct sym_trace *t;
	uint32_t thread;
	bool found;
};

/* Somebody else writes, after this thread has begun, what it read there. */
static void find_writes(void *arg, uint64_t symbol)
{
	struct writes *w = arg;
	const struct sym_event *read = ext_reader(w->t, w->thread, symbol);
	const struct sym_event *first = w->t->threads[w->thread].events;

	for (size_t i = 0; read && i < w->t->nthreads; i++)
		for (size_t k = 0; i != w->thread && k < w->t->threads[i].nevents && !w->found; k++) {
			const struct sym_event *e = &w->t->threads[i].events[k];

			w->found = (e->op == SYM_WRITE || e->op == SYM_RMW) && e->target == read->target &&
				   e->step > first->step;
		}
}

/*
 * The last branch towards the failure, or a virtual call behind it, where the object's class was
 * changed under way: its destructor runs.
 */
static struct ext_decision last_decision(struct ext *x, const struct ext_thread *th)
{
	struct ext_decision d = !x->failing_in_runtime && th->last_own.cond != EXPR_NONE ? th->last_own :
												   th->last;
	struct writes w = { x->trace, x->failing, false };

	if (!x->failing_in_runtime && th->compared.cond != EXPR_NONE && th->compared.insn > d.insn)
		d = th->compared;
	if (th->last_virtual.cond == EXPR_NONE || (d.cond != EXPR_NONE && d.insn > th->last_virtual.insn))
		return d;
	expr_symbols(x->trace->pool, th->last_virtual.cond, find_writes, &w);
	return w.found ? th->last_virtual : d;
}

/* A bad pointer fails by its address, a division by its divisor, everything else by the last
 * branch towards it. */
static expr_id failure_condition(struct ext *x, struct sym_thread *t, enum sym_failure_kind kind)
{
	struct ext_thread *th = ext_thread(x, x->failing);
	uint64_t pc = x->t->failure->regs[TRC_RIP];

	if (kind == SYM_FAIL_SIGNAL && th->address_cond != EXPR_NONE && th->address_pc == pc) {
		for (size_t i = t->nconds; i > 0; i--)
			if (t->conds[i - 1].cond == th->address_cond) {
				remove_cond(t, i - 1);
				break;
			}
		x->fate = (struct mach_point){ x->failing, failed_insn(x) };
		return th->address_cond;
	}
	/* What libraries test on the way down (how many digits has the number in the
	 * message?) does not decide; but heap corruption is found by the heap. */
	struct ext_decision d = last_decision(x, th);

	if (d.cond == EXPR_NONE || d.before > t->nconds)
		return EXPR_NONE;
	t->nconds = d.before; /* those after it hold because it was decided */
	x->fate = (struct mach_point){ x->failing, d.insn };
	if (!x->failing_in_runtime && th->brink > d.insn)
		x->brink = (struct mach_point){ x->failing, th->brink };
	return d.cond;
}

static void add_fail_event(struct ext *x)
{
	const struct trc_failure *f = x->t->failure;
	/* Only a signal strikes at an instruction; the others are calls, known by
	 * their return address, which may lie behind the function's end. */
	uint64_t pc = f->regs[TRC_RIP] - (f->rec.flags != TRC_FAIL_SIGNAL);
	struct sym_event e;

	sym_event_init(&e, SYM_FAIL);
	uint32_t i = ext_event(x, x->failing, &e, pc, 0, failed_insn(x));
	if (x->onward)
		x->trace->threads[x->failing].events[i].step = x->failed_step;
}

static bool in_cycle(const struct trc *t, uint32_t thread)
{
	bool cycle = false, listed = false;

	for (size_t i = 0; i < t->blocked.n; i++)
		cycle |= t->blocked.v[i]->cycle != 0;
	for (size_t i = 0; i < t->blocked.n; i++)
		listed |= t->blocked.v[i]->thread == thread && (!cycle || t->blocked.v[i]->cycle);
	return listed;
}

static void add_blocked(struct ext *x)
{
	struct sym_failure *f = &x->trace->failure;

	for (uint32_t i = 0; i < x->threads.n; i++) {
		if (!in_cycle(x->t, i))
			continue;
		uint32_t e = ext_sync_pending(x, i);
		if (e == SYM_NONE)
			continue;
		f->blocked = xrealloc(f->blocked, (f->nblocked + 1) * sizeof *f->blocked);
		f->blocked[f->nblocked++] = (struct sym_blocked){ i, e };
	}
	if (f->nblocked)
		f->thread = f->blocked[0].thread;
}

void ext_failure(struct ext *x)
{
	const struct trc_failure *rec = x->t->failure;
	struct sym_failure *f = &x->trace->failure;

	if (!rec || rec->rec.flags >= sizeof kind_of / sizeof *kind_of) {
		f->thread = SYM_NONE;
		return;
	}
	f->kind = kind_of[rec->rec.flags];
	f->thread = rec->thread;
	f->text = trace_failure_text(rec);
	if (f->kind == SYM_FAIL_DEADLOCK || f->kind == SYM_FAIL_HANG) {
		x->in_window = true;
		add_blocked(x);
		/* The schedule side knows one kind of "nobody can go on". */
		if (f->nblocked)
			f->kind = SYM_FAIL_DEADLOCK;
		return;
	}
	if (x->failing == SYM_NONE)
		return;
	add_fail_event(x);
	f->condition = failure_condition(x, &x->trace->threads[x->failing], f->kind);
}
