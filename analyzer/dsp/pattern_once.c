/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Patterns lazy-init and atomic-check-act: a variable is looked at and then written, and another thread gets in
 * between. What is set once, because it was not set, wants to be initialised once; what is checked and then
 * updated by an atomic instruction wants to be one compare-exchange.
 */
#include "analyzer/dsp/pattern.h"

/* The region looks at a variable and ends by writing it, because of what it saw. */
static bool checks_and_acts(const struct dsp_case *c, const struct sym_event **check, const struct sym_event **act)
{
	const struct dsp_region *r = c->d->nregions ? &c->d->regions[0] : NULL;
	const struct sym_trace *t = c->m->t;

	if (!r || r->compared || r->last == SYM_NONE || r->var == SYM_NONE)
		return false;
	*check = &t->threads[r->thread].events[r->first];
	*act = &t->threads[r->thread].events[r->last];
	return (*check)->op == SYM_READ && order_writes(*act) && (*act)->target == (*check)->target &&
	       dsp_decides_on_way(t, *check, *act);
}

/* By this code alone, never unset again, and by no thread twice: what is set once is not set each time somebody comes by. */
static bool is_set_for_good(const struct sym_trace *t, const struct sym_event *act)
{
	for (size_t i = 0; i < t->nthreads; i++) {
		unsigned times = 0;

		for (size_t k = 0; k < t->threads[i].nevents; k++) {
			const struct sym_event *e = &t->threads[i].events[k];
			const struct expr *x = e->value != EXPR_NONE ? expr_get(t->pool, e->value) : NULL;

			if (!order_writes(e) || e->target != act->target)
				continue;
			if (!dsp_same_place(t, e, act) || times++ || (x && x->op == EX_CONST && !x->value))
				return false;
		}
	}
	return true;
}

static void say_intruder(struct strbuf *b, const struct sym_trace *t, const struct dsp_region *r)
{
	strbuf_fmt(b, "%s ", dsp_thread_id(t, r->intruder.thread));
	dsp_say_does(b, t, r->intruder);
	strbuf_str(b, " at ");
	dsp_say_intruder_at(b, t, r);
}

bool dsp_match_lazy_init(const struct dsp_case *c, struct dsp_hint *h)
{
	const struct dsp_region *r = c->d->nregions ? &c->d->regions[0] : NULL;
	const struct sym_trace *t = c->m->t;
	const struct sym_event *check, *act, *other;
	const struct order_flow *f;
	struct strbuf b = { 0 };

	if (!checks_and_acts(c, &check, &act))
		return false;
	f = dsp_flow_into(c->m, DSP_FAILING, (struct sched_ref){ r->thread, r->first });
	other = order_event_at(t, r->intruder);
	/* It was unset, is set to what has nothing to do with that, by the same code elsewhere, and for good. */
	if (!f || !f->has_value || f->value || act->op != SYM_WRITE || dsp_mentions_read(t, act->value, check) ||
	    !order_writes(other) || other->target != act->target || !is_set_for_good(t, act))
		return false;
	strbuf_fmt(&b, "Initialise `%s' once, with pthread_once(), std::call_once() or a static local, or make ",
		   t->vars[act->target].name);
	dsp_say_span(&b, t, r);
	strbuf_fmt(&b, " one atomic step: %s finds it unset there and sets it, and in the middle of that ",
		   dsp_thread_id(t, r->thread));
	say_intruder(&b, t, r);
	strbuf_str(&b, ", so that it is set twice.");
	h->kind = DSP_HINT_ATOMIC;
	h->text = strbuf_take(&b);
	dsp_ask_region(h, r);
	return true;
}

bool dsp_match_atomic_check(const struct dsp_case *c, struct dsp_hint *h)
{
	const struct dsp_region *r = c->d->nregions ? &c->d->regions[0] : NULL;
	const struct sym_trace *t = c->m->t;
	const struct sym_event *check, *act;
	struct strbuf b = { 0 };

	if (!checks_and_acts(c, &check, &act) || act->op != SYM_RMW || r->common_lock != SYM_NONE)
		return false;
	strbuf_fmt(&b, "Make ");
	dsp_say_span(&b, t, r);
	strbuf_fmt(&b, " one atomic step, a compare-exchange of `%s' in a loop: each access is atomic, but not the check and "
		   "the update together, and in the middle of them ", t->vars[act->target].name);
	say_intruder(&b, t, r);
	strbuf_char(&b, '.');
	h->kind = DSP_HINT_ATOMIC;
	h->text = strbuf_take(&b);
	dsp_ask_region(h, r);
	return true;
}
