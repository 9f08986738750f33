/*
 * Points of another order, translated: "the n-th execution of this pc by this
 * thread", "the n-th inside of waits at this site", "the n-th call of this kind from this
 * site" (see execute.c).
 */
#include "analyzer/execute/execute.h"

#include <signal.h>
#include <string.h>

static uint64_t mix(uint64_t a, uint64_t b)
{
	return (a * 0x9e3779b97f4a7c15ull ^ b) * 0xc2b2ae3d27d4eb4full;
}

/* n-th execution of a place by a thread; an open hash that only grows */
struct count {
	uint64_t place; /* 0: empty */
	uint32_t thread;
	uint64_t n, insn;
};

static struct count *count_at(struct counts *c, uint32_t thread, uint64_t place)
{
	size_t i;

	if (2 * (c->n + 1) > c->cap) {
		struct counts old = *c;

		c->cap = old.cap ? 2 * old.cap : 1024;
		c->v = xcalloc(c->cap, sizeof *c->v);
		c->n = 0;
		for (size_t k = 0; k < old.cap; k++)
			if (old.v[k].place)
				*count_at(c, old.v[k].thread, old.v[k].place) = old.v[k];
		free(old.v);
	}
	i = (size_t)(mix(place, thread) >> 24) & (c->cap - 1);
	while (c->v[i].place && (c->v[i].place != place || c->v[i].thread != thread))
		i = (i + 1) & (c->cap - 1);
	if (!c->v[i].place) {
		c->v[i] = (struct count){ place, thread, 0, UINT64_MAX };
		c->n++;
	}
	return &c->v[i];
}

/* Places of recorded operations must not look like pcs. */
uint64_t exec_event_place(unsigned op_at, uint64_t site)
{
	return mix(site, op_at) | 1ull << 63;
}

static bool is_pc(uint64_t place)
{
	return !(place >> 63);
}

/*
 * How often the C library passes an instruction of its own depends on the order: an unlock that
 * nobody waits for is done elsewhere. The one inside the third wait at this site is always the same.
 */
static struct count *count_inside(struct execution *x, uint32_t thread, uint64_t place, uint64_t inside)
{
	return count_at(&x->counts, thread, is_pc(place) && inside ? mix(place, inside) | 1 : place);
}

static void note_decider(struct exec_point *p, uint32_t thread, uint64_t insn, const struct exec_point *at)
{
	if (thread == p->thread && insn == p->insn) {
		p->place = at->place;
		p->inside = at->inside;
		p->nth = at->nth;
	}
}

void exec_passed(struct execution *x, uint32_t thread, uint64_t place, uint64_t insn)
{
	struct exec_point at = { .place = place,
				 .inside = is_pc(place) ? x->unfinished[thread].place : 0 };
	struct count *c = count_inside(x, thread, place, at.inside);

	if (c->insn == insn)
		return; /* another access of the same instruction */
	c->insn = insn;
	at.nth = ++c->n;
	for (size_t i = x->first_of[thread]; i < x->npoints; i = x->points[i].next) {
		struct exec_point *p = &x->points[i];

		if (p->insn > insn)
			break;
		if (p->insn == insn && !p->place) {
			p->place = place;
			p->inside = at.inside;
			p->nth = at.nth;
		}
		x->first_of[thread] = p->next;
	}
	note_decider(&x->fate, thread, insn, &at);
	note_decider(&x->brink, thread, insn, &at);
}

/* Only where the fate is one: of branches no point is made. */
static void on_branch(void *arg, const struct mach_branch *b)
{
	struct execution *x = arg;

	if (b->thread != x->fate.thread)
		return;
	exec_passed(x, b->thread, b->pc, b->insn);
	if (b->insn == x->fate.insn)
		x->fate_next = b->target;
	else if (b->insn == x->brink.insn)
		x->brink_next = b->target;
}

static void on_access(void *arg, struct mach *m, uint64_t pc, uint64_t address, unsigned size,
		      unsigned how, uint64_t value)
{
	struct mach_run *r = arg;

	(void)address;
	(void)size;
	(void)how;
	(void)value;
	if (m->now_op)
		exec_passed(r->execution, r->current, pc, m->insns + m->now_op->insn);
}

/* What pthread_once() calls is the program's code like any other. */
void exec_inside(uint64_t *inside, unsigned op_at, uint64_t site)
{
	bool within = TRC_SYNC_AT(op_at) == TRC_AT_BLOCK && TRC_SYNC_OP(op_at) != TRC_OP_ONCE;

	*inside = within ? exec_event_place(TRC_SYNC_OP(op_at), site) : 0;
}

static void on_event(struct mach_run *r, uint32_t thread, unsigned op_at, uint64_t site)
{
	exec_inside(&r->execution->unfinished[thread].place, op_at, site);
	exec_passed(r->execution, thread, exec_event_place(op_at, site), r->m->insns);
}

/* Operations that never ended when recorded end here when their place comes once more. */
static void find_unfinished(struct mach_run *r, struct execution *x)
{
	for (uint32_t t = 0; t < r->nthreads; t++) {
		struct exec_point *u = &x->unfinished[t];

		u->thread = t;
		u->insn = mach_thread_insns(r, t);
		if (u->place)
			u->nth = exec_count(x, u) + 1;
	}
}

static void end_in_unfinished(struct execution *x)
{
	for (size_t i = 0; i < x->npoints; i++) {
		struct exec_point *p = &x->points[i];
		const struct exec_point *u = &x->unfinished[p->thread];

		if (!p->place && u->place && p->insn >= u->insn) {
			p->place = u->place;
			p->nth = u->nth;
		}
	}
}

/* Another order may take more instructions to get there: a number does not tell. */
static void find_ends(struct mach_run *r, struct execution *x)
{
	for (size_t i = 0; i < x->npoints; i++) {
		struct exec_point *p = &x->points[i];

		p->ends = !p->place && r->threads[p->thread].s.life == LIFE_ENDED &&
			  p->insn + 1 >= mach_thread_insns(r, p->thread);
	}
}

void exec_link_points(struct execution *x, size_t nthreads)
{
	size_t *last = xcalloc(nthreads + 1, sizeof *last);

	for (size_t t = 0; t < nthreads; t++)
		x->first_of[t] = last[t] = SIZE_MAX;
	for (size_t i = 0; i < x->npoints; i++) {
		uint32_t t = x->points[i].thread;

		x->points[i].next = SIZE_MAX;
		if (last[t] == SIZE_MAX)
			x->first_of[t] = i;
		else
			x->points[last[t]].next = i;
		last[t] = i;
	}
	free(last);
}

/* The instruction that faulted was never executed: its fate would be the next execution. */
static void find_fault(struct mach_run *r, struct execution *x)
{
	const struct trc_failure *f = r->t->failure;

	if (x->fate.thread == NO_THREAD || x->fate.nth || x->fate.insn < x->fail_insns)
		return;
	x->fate.place = f->regs[TRC_RIP];
	x->fate.inside = x->unfinished[x->fate.thread].place;
	uint64_t before = exec_count(x, &x->fate);
	/* A division by a register is not counted, having no access: how often it went well is not known. */
	if (before || f->signal != SIGFPE)
		x->fate.nth = before + 1;
}

err_t exec_translate(struct mach_run *r, struct execution *x, const struct mach_order *o)
{
	size_t log;
	uint64_t left;
	bool stopped;
	struct mach_hooks hooks = { .arg = x, .branch = on_branch };
	err_t e;

	r->free = false;
	TRY(run_go_exactly(r, o->from, &log, &left));
	exec_link_points(x, r->nthreads);
	x->translating = true;
	r->at_event = on_event;
	r->hooks = &hooks;
	r->hooks_from = 0;
	r->m->access = on_access;
	r->m->access_arg = r;
	e = NULL;
	if (left) {
		struct log_step rest = r->log.v[log++];

		rest.insns = left;
		e = run_log_step(r, &rest);
	}
	if (!e)
		e = run_log_again(r, log, r->log.n, &stopped);
	x->fail_insns = r->t->failure && r->t->failure->thread < r->nthreads ?
				mach_thread_insns(r, r->t->failure->thread) : UINT64_MAX;
	find_fault(r, x);
	find_unfinished(r, x);
	find_ends(r, x);
	if (!e && o->onward_insns)
		mach_go_onward(r, o->onward_insns);
	end_in_unfinished(x);
	x->translating = false;
	r->at_event = NULL;
	r->hooks = NULL;
	r->m->access = NULL;
	r->m->access_arg = NULL;
	return e;
}

void exec_count_up(struct execution *x, uint32_t thread, uint64_t place)
{
	count_inside(x, thread, place, x->inside[thread])->n++;
}

void exec_counts_reset(struct execution *x)
{
	count_at(&x->counts, 0, 1); /* the table exists */
	x->counts.n = 0;
	memset(x->counts.v, 0, x->counts.cap * sizeof *x->counts.v);
}

uint64_t exec_count(struct execution *x, const struct exec_point *p)
{
	return count_inside(x, p->thread, p->place, p->inside)->n;
}

bool exec_stands_at(struct execution *x, const struct exec_point *p, uint64_t place)
{
	return p->place == place && (!is_pc(place) || p->inside == x->inside[p->thread]) &&
	       exec_count(x, p) + 1 == p->nth;
}

bool exec_reached(struct mach_run *r, struct execution *x, const struct exec_point *p)
{
	uint64_t n;

	if (p->ends)
		return r->threads[p->thread].s.life == LIFE_ENDED;
	if (!p->place) /* failures: by number alone */
		return mach_thread_insns(r, p->thread) > p->insn ||
		       r->threads[p->thread].s.life == LIFE_ENDED;
	n = exec_count(x, p);
	return n > p->nth || (n == p->nth && !x->step[p->thread]);
}
