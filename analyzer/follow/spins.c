/*
 * Loops that wait: a thread reads the same words again and again, writes nothing, and leaves when somebody
 * has written them. How long it went round is in the record, at which moment of the others it left
 * is not; in between nothing carries a timestamp, and a thread that was taken off its processor
 * goes round a million times less than its clock says. Searching among a million reads finds nothing, but
 * such a loop says by itself what is wrong:
 *
 * - it goes round once more, and the record has it leave: it is early. It stands still before its reads
 *   (thread_state.waiting), and the others go on until the words have changed and it does leave.
 * - it leaves, and the record has it go round: the write is early. It is held (EDGE_LAZY) until the loop
 *   stands still.
 *
 * When that does not help an order is searched for, as after any other mismatch.
 */
#include "analyzer/follow/search.h"

#include <string.h>

#define TAIL 4096u             /* instructions of the thread that are looked at */
#define ROUNDS 4u              /* that it must have gone round, as far as can be seen there */
#define FAR_BACK 100000000u    /* instructions of the run, to see that much of the thread */
#define WRITE_BACK 300000000u  /* likewise, to find a write that came too early */
#define WAIT_INSNS 1000000000u /* of the others */

/* ---- is it a loop that waits? ---- */

struct seen_access {
	uint64_t insn, address;
	uint32_t size;
	bool write;
};

struct tail {
	uint64_t start; /* the number of the first instruction */
	uint64_t pcs[TAIL];
	size_t n;
	uint64_t stack_lo, stack_hi;
	VEC(struct seen_access) accesses; /* but for the thread's stack */
};

static void on_access(void *arg, struct mach *m, uint64_t pc, uint64_t address, unsigned size,
		      unsigned how, uint64_t value)
{
	struct tail *l = arg;

	(void)pc;
	(void)value;
	if (address < l->stack_lo || address >= l->stack_hi)
		vec_push(&l->accesses, (struct seen_access){ m->insns + (m->now_op ? m->now_op->insn : 0),
							     address, size, how & ACCESS_WRITE });
}

static uint64_t pc_of(const struct mach_run *r, const struct run_thread *t)
{
	return r->current == t->index ? r->m->frame->g.guest_RIP : t->s.cpu.g.guest_RIP;
}

/* A step of the thread's, one instruction at a time where its tail is. */
static err_t step_slowly(struct mach_run *r, struct run_thread *t, const struct log_step *s, struct tail *l)
{
	uint64_t now = mach_thread_insns(r, t->index), end = now + s->insns;

	if (now < l->start && end > l->start) {
		TRY(run_log_step(r, &(struct log_step){ t->index, ACT_RUN, l->start - now }));
		now = l->start;
	} else if (end <= l->start) {
		return run_log_step(r, s);
	}
	r->m->access = on_access;
	r->m->access_arg = l;
	for (err_t e; now < end && l->n < TAIL; now++) {
		l->pcs[l->n++] = pc_of(r, t);
		e = run_log_step(r, &(struct log_step){ t->index, ACT_RUN, 1 });
		if (e || now + 1 == end) {
			r->m->access = NULL;
			r->m->access_arg = NULL;
			return e;
		}
	}
	r->m->access = NULL;
	r->m->access_arg = NULL;
	return now < end ? err_new(ERR_INTERNAL, "a tail that is too long") : NULL;
}

/* Who stands still: the log does not tell, it is kept over an execution of the log. */
static struct spin *standing(const struct mach_run *r)
{
	struct spin *kept = xcalloc(r->nthreads + 1, sizeof *kept);

	for (size_t i = 0; i < r->nthreads; i++)
		if (r->threads[i].s.waiting)
			kept[i] = r->threads[i].s.spin;
	return kept;
}

static void stand_again(struct mach_run *r, struct spin *kept)
{
	for (size_t i = 0; i < r->nthreads; i++) {
		struct thread_state *s = &r->threads[i].s;

		s->waiting = kept[i].nwords && mach_thread_insns(r, (uint32_t)i) == kept[i].from;
		if (s->waiting)
			s->spin = kept[i];
	}
	free(kept);
}

/* Executes steps [c->log, n) of the log again and sees what the thread did last. */
static bool see_tail(struct mach_run *r, const struct checkpoint *c, size_t n, struct run_thread *t,
		     struct tail *l)
{
	uint64_t regs[TRC_NREGS];
	err_t e = NULL;

	if (mach_regs(r, t->index, regs, NULL))
		mach_mapping(r, regs[TRC_RSP], &l->stack_lo, &l->stack_hi);
	checkpoint_restore(r, c);
	r->log.n = n;
	for (size_t i = c->log; i < n && !e; i++) {
		const struct log_step s = r->log.v[i];

		e = s.thread == t->index && s.action == ACT_RUN ? step_slowly(r, t, &s, l) :
								  run_log_step(r, &s);
	}
	bool good = !e;

	err_free(e);
	return good;
}

/* Instructions per round of the loop whose branch stands at `last`, and that went round often enough; 0: it is none. */
static size_t period_at(const struct tail *l, size_t last)
{
	size_t period = 1;

	while (period <= last && l->pcs[last - period] != l->pcs[last])
		period++;
	if (period * ROUNDS > last)
		return 0;
	for (size_t i = 0; i < period * (ROUNDS - 1); i++)
		if (l->pcs[last - i] != l->pcs[last - i - period])
			return 0;
	return period;
}

/* Does the thread write anything in instructions [from, to) of this? */
static bool writes_in(const struct tail *l, size_t from, size_t to)
{
	for (size_t i = 0; i < l->accesses.n; i++) {
		const struct seen_access *a = &l->accesses.v[i];

		if (a->write && a->insn >= l->start + from && a->insn < l->start + to)
			return true;
	}
	return false;
}

static bool add_word(struct spin *s, const struct seen_access *a)
{
	for (size_t i = 0; i < s->nwords; i++)
		if (s->words[i].address == a->address && s->words[i].size == a->size)
			return true;
	if (s->nwords == SPIN_WORDS || a->size > 8)
		return false;
	s->words[s->nwords++] = (struct spin_word){ a->address, a->size, 0 };
	return true;
}

static const struct spin_branch *known(const struct mach_run *r, uint64_t pc)
{
	for (size_t i = 0; i < r->spins.n; i++)
		if (r->spins.v[i].pc == pc)
			return &r->spins.v[i];
	return NULL;
}

/* The branch at the end of this, by which a loop that waits goes on or is left; NULL: of none that is known. */
static const struct spin_branch *branch_of(struct mach_run *r, const struct tail *l)
{
	uint64_t pc = l->pcs[l->n - 1];

	for (size_t last = l->n; last-- > ROUNDS && !known(r, pc);) {
		size_t period = l->pcs[last] == pc ? period_at(l, last) : 0;

		if (period && !writes_in(l, last - period * (ROUNDS - 1), last))
			vec_push(&r->spins, (struct spin_branch){ pc, l->pcs[last - period + 1], period });
	}
	return known(r, pc);
}

/* What was read in the last round, behind what was written on the way into the loop? */
static bool read_words(const struct tail *l, size_t period, struct spin *s)
{
	uint64_t round = l->start + l->n - period;

	for (size_t i = 0; i < l->accesses.n; i++) {
		const struct seen_access *a = &l->accesses.v[i];

		if (a->insn < round)
			continue;
		if (a->write) {
			s->from = s->nwords = 0;
			continue;
		}
		if (!s->from)
			s->from = a->insn;
		if (!add_word(s, a))
			return false;
	}
	return s->nwords > 0;
}

/* Did the thread, which went wrong at the end of this and goes to `next`, wait there? */
static bool is_spin(struct mach_run *r, const struct tail *l, uint64_t next, struct spin *s)
{
	const struct spin_branch *b = l->n ? branch_of(r, l) : NULL;

	if (!b || b->period > l->n || !read_words(l, b->period, s))
		return false;
	s->left = b->stays != next;
	return true;
}

/* The latest state to go back to from which enough of the thread is seen; NULL: none. */
static const struct checkpoint *base_for(const struct mach_run *r, uint32_t thread)
{
	const struct search *s = r->search;
	const struct checkpoint *c = NULL;

	for (size_t i = s ? s->nbases : 0; i-- > 0 && s->bases[i].c->time + FAR_BACK > r->time;) {
		c = s->bases[i].c;
		if (c->threads[thread].cpu.insns + TAIL <= mach_thread_insns(r, thread))
			break;
	}
	return c;
}

/* The thread went wrong at a branch, and the log ends there. Everything stays as it is. */
static bool find_spin(struct mach_run *r, const struct checkpoint *c, struct run_thread *t, struct spin *s)
{
	struct tail *l = xcalloc(1, sizeof *l);
	uint64_t base = c->threads[t->index].cpu.insns;

	*s = (struct spin){ .insn = mach_thread_insns(r, t->index), .until = r->time + WAIT_INSNS };
	l->start = s->insn > base + TAIL ? s->insn - TAIL : base;
	struct spin *kept = standing(r);
	bool good = see_tail(r, c, r->log.n, t, l) && is_spin(r, l, pc_of(r, t), s);

	stand_again(r, kept);
	vec_free(&l->accesses);
	free(l);
	return good;
}

/* ---- it is early ---- */

struct steps {
	VEC(struct log_step) v;
};

/* Executes these steps from the checkpoint on, but for what `thread` does behind its instruction `insn`: they
 * become the log. */
static bool execute_but(struct mach_run *r, const struct checkpoint *c, const struct steps *steps, uint32_t thread,
			uint64_t insn)
{
	err_t e = NULL;

	checkpoint_restore(r, c);
	for (size_t i = 0; i < steps->v.n && !e; i++) {
		struct log_step s = steps->v.v[i];
		uint64_t now = mach_thread_insns(r, thread);

		if (s.thread == thread && s.action == ACT_RUN && now + s.insns > insn) {
			s.insns = insn - now;
			if (!s.insns)
				continue;
		} else if (s.thread == thread && now >= insn) {
			return false; /* it does more than go round there */
		}
		e = run_log_step(r, &s);
		vec_push(&r->log, s);
	}
	bool good = !e;

	err_free(e);
	return good;
}

/*
 * Takes back what the thread did behind its instruction `insn`, which wrote nothing: the others, who may have gone on
 * since, stay where they are.
 */
static bool take_back(struct mach_run *r, const struct checkpoint *c, uint32_t thread, uint64_t insn)
{
	struct spin *kept = standing(r);
	struct steps steps = { 0 };
	bool good;

	for (size_t i = c->log; i < r->log.n; i++)
		vec_push(&steps.v, r->log.v[i]);
	good = execute_but(r, c, &steps, thread, insn) && mach_thread_insns(r, thread) == insn;
	if (!good)
		execute_but(r, c, &steps, thread, UINT64_MAX);
	stand_again(r, kept);
	vec_free(&steps.v);
	return good;
}

static bool have_changed(struct mach_run *r, struct spin *s)
{
	bool changed = false;

	for (size_t i = 0; i < s->nwords; i++) {
		struct spin_word *w = &s->words[i];
		uint64_t now = 0;

		mem_peek(r->m->mem, w->address, &now, w->size);
		changed |= now != w->value;
		w->value = now;
	}
	return changed;
}

/* It stands before the reads of its last round. */
static bool stand_still(struct mach_run *r, const struct checkpoint *c, struct run_thread *t, struct spin *s)
{
	if (!take_back(r, c, t->index, s->from))
		return false;
	have_changed(r, s);
	t->s.action = ACT_RUN;
	t->s.spin = *s;
	t->s.waiting = true;
	return true;
}

/* The words have changed: does it leave now? Else it goes on waiting. */
static void try_to_leave(struct mach_run *r, struct run_thread *t)
{
	struct checkpoint *c = checkpoint_take(r);
	size_t n = r->log.n;
	enum action a;

	t->s.waiting = false;
	a = run_turn(r, t, t->s.spin.insn - t->s.spin.from);
	if (a == ACT_MISMATCH) {
		checkpoint_restore(r, c);
		r->log.n = n;
	}
	checkpoint_free(r, c);
}

bool run_spins_wait(const struct mach_run *r)
{
	for (size_t i = 0; i < r->nthreads; i++)
		if (r->threads[i].s.waiting)
			return true;
	return false;
}

static void give_up(struct run_thread *t)
{
	t->s.waiting = false;
	t->spun_out = t->s.spin.insn;
}

void run_spins_look(struct mach_run *r)
{
	for (size_t i = 0; i < r->nthreads; i++) {
		struct run_thread *t = &r->threads[i];

		if (t->s.waiting && have_changed(r, &t->s.spin))
			try_to_leave(r, t);
		if (t->s.waiting && r->time > t->s.spin.until)
			give_up(t);
	}
}

bool run_spins_give_up(struct mach_run *r)
{
	bool any = false;

	for (size_t i = 0; i < r->nthreads; i++)
		if (r->threads[i].s.waiting) {
			give_up(&r->threads[i]);
			any = true;
		}
	return any;
}

/* ---- the write is early ---- */

struct early {
	const struct spin *spin;
	struct mach_run *r;
	uint32_t reader, writer; /* NO_THREAD: none found */
	uint64_t insn;
};

static void on_write(void *arg, struct mach *m, uint64_t pc, uint64_t address, unsigned size,
		     unsigned how, uint64_t value)
{
	struct early *e = arg;

	(void)pc;
	(void)value;
	if (!(how & ACCESS_WRITE) || e->r->current == e->reader)
		return;
	for (size_t i = 0; i < e->spin->nwords; i++) {
		const struct spin_word *w = &e->spin->words[i];

		if (address < w->address + w->size && w->address < address + size) {
			e->writer = e->r->current;
			e->insn = m->insns + (m->now_op ? m->now_op->insn : 0);
		}
	}
}

/* The last write between this base and the next one, or the end of the log. */
static bool find_write(struct mach_run *r, const struct checkpoint *c, size_t end, struct early *e)
{
	size_t n = r->log.n;
	err_t bad = NULL;

	e->writer = NO_THREAD;
	checkpoint_restore(r, c);
	r->log.n = n;
	for (size_t i = c->log; i < end && !bad; i++) {
		const struct log_step s = r->log.v[i];

		r->m->access = on_write;
		r->m->access_arg = e;
		bad = run_log_step(r, &s);
		r->m->access = NULL;
		r->m->access_arg = NULL;
	}
	bool good = !bad;

	err_free(bad);
	return good && e->writer != NO_THREAD;
}

static bool is_held(const struct mach_run *r, const struct order_edge *e)
{
	for (size_t i = 0; i < r->edges.n; i++)
		if (!memcmp(&r->edges.v[i], e, sizeof *e))
			return true;
	return false;
}

/* Goes back to before the write and holds it until the loop stands still; false: it is where it was. */
static bool hold_write(struct mach_run *r, struct run_thread *t, const struct spin *s)
{
	struct early e = { .spin = s, .r = r, .reader = t->index };
	size_t n = r->log.n, end = n;
	const struct checkpoint *now = checkpoint_take(r);
	bool found = false;

	for (size_t i = r->search->nbases; i-- > 0 && !found;) {
		const struct checkpoint *c = r->search->bases[i].c;

		if (c->time + WRITE_BACK < r->time)
			break;
		found = find_write(r, c, end, &e);
		end = c->log;
		checkpoint_restore(r, now);
		if (found) {
			struct order_edge edge = { .thread = e.writer, .other = t->index, .insn = e.insn,
						   .other_insn = EDGE_LAZY };

			found = !is_held(r, &edge);
			if (found) {
				search_restore(r, i);
				vec_push(&r->edges, edge);
			}
			break;
		}
	}
	checkpoint_free(r, (struct checkpoint *)now);
	return found;
}

bool run_spin(struct mach_run *r, struct run_thread *t)
{
	const struct checkpoint *c;
	struct spin s;

	if (r->nthreads < 2 || r->mismatch_load || !search_is_idle(r))
		return false;
	if (t->spun_out == mach_thread_insns(r, t->index))
		return false;
	c = base_for(r, t->index);
	if (!c || !find_spin(r, c, t, &s))
		return false;
	return s.left ? hold_write(r, t, &s) : stand_still(r, c, t, &s);
}
