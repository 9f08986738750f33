/* Saved states of a run: memory by reference, threads by value. */
#include "analyzer/follow/follow.h"

#include <string.h>

struct checkpoint *checkpoint_take(struct mach_run *r)
{
	struct checkpoint *c = xcalloc(1, sizeof *c);

	run_settle(r);
	c->time = r->time;
	mem_save(r->m->mem, &c->image);
	c->threads = xmalloc((r->nthreads + 1) * sizeof *c->threads);
	for (size_t i = 0; i < r->nthreads; i++)
		c->threads[i] = r->threads[i].s;
	c->seq = r->seq;
	c->log = r->log_sealed = r->log.n;
	c->brk = r->brk;
	c->nfiles = r->files.n;
	c->undetermined = r->undetermined.n;
	memcpy(c->tickets, r->tickets, sizeof c->tickets);
	memcpy(c->ticket_times, r->ticket_times, sizeof c->ticket_times);
	c->counts = r->res;
	c->fresh = r->fresh;
	if (r->order.step) {
		c->order = xmalloc(r->order.size);
		memcpy(c->order, r->order.state, r->order.size);
	}
	return c;
}

/* While the order is still sought: what was kept or said of the way that is taken back is of no order. */
static void drop_later(struct mach_run *r, const struct checkpoint *c)
{
	while (r->search && r->checkpoints.n && r->checkpoints.v[r->checkpoints.n - 1]->time > c->time)
		checkpoint_free(r, r->checkpoints.v[--r->checkpoints.n]);
	while (r->search && r->undetermined.n > c->undetermined)
		free(r->undetermined.v[--r->undetermined.n]);
}

void checkpoint_restore(struct mach_run *r, const struct checkpoint *c)
{
	drop_later(r, c);
	r->current = NO_THREAD; /* what is in the frame is of no interest any more */
	r->time = c->time;
	mem_restore(r->m->mem, &c->image);
	for (size_t i = 0; i < r->nthreads; i++) {
		struct run_thread *t = &r->threads[i];
		struct path_item *items = t->s.cursor.items;
		size_t cap = t->s.cursor.items_cap;

		t->s = c->threads[i];
		/* The buffer for items belongs to the thread, not to a moment. */
		t->s.cursor.items = items;
		t->s.cursor.items_cap = cap;
		err_free(run_step_again(t)); /* it was decoded before: no error */
	}
	r->seq = c->seq;
	r->log.n = r->log_sealed = c->log;
	r->brk = c->brk;
	r->files.n = c->nfiles;
	memcpy(r->tickets, c->tickets, sizeof r->tickets);
	memcpy(r->ticket_times, c->ticket_times, sizeof r->ticket_times);
	r->fresh = c->fresh;
	if (c->order && r->order.step)
		memcpy(r->order.state, c->order, r->order.size);
	struct mach_result keep = r->res;

	r->res = c->counts;
	r->res.mismatches = keep.mismatches;
	r->res.tries = keep.tries;
	r->res.rollbacks = keep.rollbacks;
}

void checkpoint_free(struct mach_run *r, struct checkpoint *c)
{
	(void)r;
	if (!c)
		return;
	mem_image_free(&c->image);
	free(c->threads);
	free(c->order);
	free(c);
}
