/*
 * Advice about what is made known before it is ready: one thread writes a pointer, a flag or a counter, by
 * which another one finds what the first still has to fill in. No lock around the filling helps there, and
 * nobody has to wait: it only has to be done first.
 */
#include "analyzer/dsp/internal.h"

/* So far back it is looked for how the reader came there. */
#define NEAR 400

/* Who writes it, too, from there on has not come to find it. */
static bool writes_from(const struct sym_trace *t, struct sched_ref from, uint32_t var)
{
	for (uint32_t i = from.index; i < t->threads[from.thread].nevents; i++) {
		const struct sym_event *e = &t->threads[from.thread].events[i];

		if (dsp_is_write(e) && e->target == var)
			return true;
	}
	return false;
}

/*
 * The write of the filling thread, before `filled', through which the other one came to `looked': the last that it
 * read of another variable and that had a say in its getting there.
 */
static bool find_published(const struct dsp_map *m, struct sched_ref looked, struct sched_ref filled,
			   struct sched_ref *published)
{
	const struct sym_trace *t = m->t;
	uint32_t least = looked.index > NEAR ? looked.index - NEAR : 0;

	for (uint32_t i = looked.index; i-- > least;) {
		struct sched_ref q = { looked.thread, i };
		const struct sym_event *e = dsp_event_at(t, q), *to = dsp_event_at(t, looked);
		const struct dsp_flow *f = dsp_is_read(e) ? dsp_flow_into(m, DSP_FAILING, q) : NULL;

		if (!f || f->initial || f->write.thread != filled.thread || f->write.index >= filled.index ||
		    e->target == to->target || dsp_failure_mentions(t, e) ||
		    !dsp_decides_on_way(t, e, to))
			continue;
		*published = f->write;
		return !writes_from(t, q, to->target);
	}
	return false;
}

bool dsp_published_hint(const struct dsp_map *m, const struct dsp_pair *p, struct dsp_hint *h)
{
	const struct sym_trace *t = m->t;
	const struct sym_event *looked = dsp_event_at(t, p->before), *filled = dsp_event_at(t, p->after);
	struct sched_ref published;
	struct strbuf b = { 0 };

	if (looked->op != SYM_READ || !dsp_is_write(filled) || looked->target != filled->target ||
	    !find_published(m, p->before, p->after, &published))
		return false;
	strbuf_str(&b, "Do ");
	dsp_say_at(&b, t, p->after);
	strbuf_fmt(&b, " (%s ", dsp_thread_id(t, p->after.thread));
	dsp_say_does(&b, t, p->after);
	strbuf_str(&b, ") before ");
	dsp_say_at(&b, t, published);
	strbuf_str(&b, ", where it ");
	dsp_say_does(&b, t, published);
	strbuf_fmt(&b, ": going by that, %s ", dsp_thread_id(t, p->before.thread));
	dsp_say_does(&b, t, p->before);
	strbuf_str(&b, " at ");
	dsp_say_at(&b, t, p->before);
	strbuf_str(&b, " too early.");
	h->kind = DSP_HINT_ORDER;
	h->text = strbuf_take(&b);
	return true;
}
