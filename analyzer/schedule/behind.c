/*
 * A reader that waits behind a writer: both have only come to where they wait, and the order in
 * which they came is the cause. The alternate, where the reader goes on, has it the other way round.
 */
#include "analyzer/schedule/work.h"

void find_writer_first(struct work *w)
{
	const struct sym_failure *f = &w->v->t->failure;
	struct sched_edge e = { .before.index = SYM_NONE, .after.index = SYM_NONE };

	for (size_t i = 0; i < f->nblocked && e.after.index == SYM_NONE; i++) {
		uint32_t k = w->v->first[f->blocked[i].thread] + f->blocked[i].event;

		if (order_behind_writer(w->v, w->v->ev[k].e))
			e.after = order_view_ref(w->v, k);
	}
	for (size_t i = 0; i < f->nblocked && e.after.index != SYM_NONE; i++) {
		uint32_t k = w->v->first[f->blocked[i].thread] + f->blocked[i].event;
		const struct sym_event *reader = &w->v->t->threads[e.after.thread].events[e.after.index];

		if (w->v->ev[k].e->op == SYM_LOCK && w->v->ev[k].e->target == reader->target)
			e.before = order_view_ref(w->v, k);
	}
	if (e.before.index == SYM_NONE || !w->a->nalternates)
		return;
	w->a->cause = xcalloc(1, sizeof *w->a->cause);
	w->a->cause[0] = e;
	w->a->ncause = 1;
	w->a->cause_minimal = true;
	w->a->rule = "reader behind a writer";
	free(w->a->why);
	w->a->why = NULL;
}
