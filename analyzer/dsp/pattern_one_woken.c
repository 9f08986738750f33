/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pattern one-woken: several threads wait in one condition variable, and a signal, which wakes one of them, woke another than the
 * one that waits for ever. It was not lost: that thread had begun to wait before.
 */
#include "analyzer/dsp/pattern.h"

bool dsp_waited_at(const struct dsp_map *m, struct sched_ref wait, struct sched_ref by)
{
	const struct sym_event *e = order_event_at(m->t, wait);
	struct sched_ref begun = { wait.thread, e->link };
	size_t since = e->link < m->t->threads[wait.thread].nevents ? dsp_at(m, DSP_FAILING, begun) : ORDER_NOWHERE;

	return since != ORDER_NOWHERE && since < dsp_at(m, DSP_FAILING, by);
}

/* Another thread's wait on the same condition variable, begun before the signal, is the first to end after it. */
static bool woke_another(const struct dsp_map *m, struct sched_ref signal, struct sched_ref *other)
{
	const struct sched_order *o = m->order[DSP_FAILING];
	const struct sym_event *s = order_event_at(m->t, signal);

	for (size_t i = dsp_at(m, DSP_FAILING, signal) + 1; i < o->n; i++) {
		const struct sym_event *e = order_event_at(m->t, o->refs[i]);

		if (e->target != s->target || (e->op != SYM_WAIT && e->op != SYM_SIGNAL && e->op != SYM_BROADCAST))
			continue;
		*other = o->refs[i];
		return e->op == SYM_WAIT && e->result == 1 && dsp_waited_at(m, *other, signal);
	}
	return false;
}

static bool is_blocked(const struct sym_trace *t, struct sched_ref wait)
{
	for (size_t k = 0; k < t->failure.nblocked; k++)
		if (t->failure.blocked[k].thread == wait.thread && t->failure.blocked[k].event == wait.index)
			return true;
	return false;
}

/* The last signal while the thread waited; false: there was none, or it is not known whom it woke. */
static bool signalled_another(const struct dsp_map *m, struct sched_ref wait, struct sched_ref *signal, struct sched_ref *other)
{
	const struct sched_order *o = m->order[DSP_FAILING];

	for (size_t i = o ? o->n : 0; i-- > 0;) {
		const struct sym_event *s = order_event_at(m->t, o->refs[i]);

		*signal = o->refs[i];
		if (s->op == SYM_SIGNAL && s->target == order_event_at(m->t, wait)->target && s->thread != wait.thread)
			return dsp_waited_at(m, wait, *signal) && woke_another(m, *signal, other) && !is_blocked(m->t, *other);
	}
	return false;
}

bool dsp_match_one_woken(const struct dsp_case *c, struct dsp_hint *h)
{
	const struct sym_trace *t = c->m->t;

	for (size_t k = 0; k < t->failure.nblocked; k++) {
		struct sched_ref wait = { t->failure.blocked[k].thread, t->failure.blocked[k].event }, signal, other;
		const struct sym_event *e = order_event_at(t, wait);
		struct strbuf b = { 0 };

		if (!e || e->op != SYM_WAIT || !signalled_another(c->m, wait, &signal, &other))
			continue;
		strbuf_fmt(&b, "Wake all threads that wait for `%s' (broadcast), or signal once for each: where %s ",
			   t->objects[e->target].name, dsp_thread_id(t, signal.thread));
		dsp_say_does(&b, t, signal);
		strbuf_str(&b, " at ");
		dsp_say_at(&b, t, signal);
		strbuf_fmt(&b, " both %s and %s wait, and only %s is woken; %s still waits at ", dsp_thread_id(t, wait.thread),
			   dsp_thread_id(t, other.thread), dsp_thread_id(t, other.thread), dsp_thread_id(t, wait.thread));
		dsp_say_at(&b, t, wait);
		strbuf_char(&b, '.');
		h->kind = DSP_HINT_WAKE;
		h->text = strbuf_take(&b);
		dsp_ask(h, DSP_STEP_WAKE_ALL, signal, signal, SYM_NONE);
		return true;
	}
	return false;
}
