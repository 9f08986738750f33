/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pattern barrier-count: a barrier waits for more threads than ever come to it. */
#include "analyzer/dsp/pattern.h"

static bool comes_to(const struct sym_trace *t, uint32_t thread, uint32_t barrier)
{
	for (size_t i = 0; i < t->threads[thread].nevents; i++) {
		const struct sym_event *e = &t->threads[thread].events[i];

		if (e->op == SYM_BARRIER_ENTER && e->target == barrier)
			return true;
	}
	return false;
}

static size_t waiting_at(const struct sym_trace *t, uint32_t barrier)
{
	size_t n = 0;

	for (size_t k = 0; k < t->failure.nblocked; k++) {
		const struct sym_event *e = order_event_at(t, (struct sched_ref){
			t->failure.blocked[k].thread, t->failure.blocked[k].event });

		n += e && e->target == barrier && (e->op == SYM_BARRIER_ENTER || e->op == SYM_BARRIER_LEAVE);
	}
	return n;
}

bool dsp_match_barrier_count(const struct dsp_case *c, struct dsp_hint *h)
{
	const struct sym_trace *t = c->m->t;

	for (size_t k = 0; k < t->failure.nblocked; k++) {
		struct sched_ref at = { t->failure.blocked[k].thread, t->failure.blocked[k].event };
		const struct sym_event *e = order_event_at(t, at);
		struct strbuf b = { 0 };
		size_t users = 0;

		if (!e || (e->op != SYM_BARRIER_ENTER && e->op != SYM_BARRIER_LEAVE) || e->target >= t->nobjects)
			continue;
		const struct sym_object *o = &t->objects[e->target];
		for (uint32_t i = 0; i < t->nthreads; i++)
			users += comes_to(t, i, e->target);
		/* That many come: one of them stays away, which is another mistake. */
		if (o->count <= 0 || users >= (size_t)o->count)
			continue;
		strbuf_fmt(&b, "Set the count of `%s' to the number of threads that wait there: it is %lld, and only %zu "
			   "ever come to it. %zu wait at ", o->name, (long long)o->count, users, waiting_at(t, e->target));
		dsp_say_at(&b, t, at);
		strbuf_str(&b, " for one that never arrives.");
		h->kind = DSP_HINT_NONE;
		h->text = strbuf_take(&b);
		return true;
	}
	return false;
}
