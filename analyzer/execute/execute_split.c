/*
 * Updates in one instruction (add $1, counter) are two events to the schedule side:
 * a load and a store, and another thread's store may come between them. The machine
 * executes an instruction at once. So when its load is due, what memory holds
 * is kept; when its store is due the instruction is executed, and sees that.
 */
#include "analyzer/execute/execute.h"

bool exec_splits(const struct execution *x, const struct exec_point *p)
{
	const struct exec_point *q = p->next < x->npoints ? &x->points[p->next] : NULL;

	return q && q != p + 1 && q->insn == p->insn && p->place && q->place == p->place &&
	       q->inside == p->inside && q->nth == p->nth && !(p->place >> 63);
}

static bool stands_before(struct mach_run *r, struct execution *x, const struct exec_point *p)
{
	return exec_stands_at(x, p, r->m->frame->g.guest_RIP) && !x->step[p->thread];
}

bool exec_load_now(struct mach_run *r, struct execution *x, struct run_thread *t)
{
	struct early_load *l = &x->early[t->index];

	if (!run_operand_load(r, &l->address, &l->size, &l->value))
		return false;
	l->done = true;
	exec_keep_step(r, x, t->index, ACT_ORDER_LOAD, 0);
	return true;
}

bool exec_load_early(struct mach_run *r, struct execution *x, struct run_thread *t,
		     const struct exec_point *p)
{
	if (t->s.life != LIFE_RUNNING)
		return false;
	run_switch(r, t->index);
	if (!stands_before(r, x, p))
		exec_go_before(r, x, t);
	run_switch(r, t->index);
	if (x->done || !stands_before(r, x, p) || !exec_load_now(r, x, t))
		return false;
	if (x->try)
		exec_try_half(r, x, t->index, p->place);
	return true;
}

void exec_store_late(struct mach_run *r, struct execution *x, uint32_t thread)
{
	struct early_load *l = &x->early[thread];

	if (l->done) {
		mem_poke(r->m->mem, l->address, &l->value, l->size);
		exec_keep_step(r, x, thread, ACT_ORDER_STORE, 0);
	}
	l->done = false;
}
