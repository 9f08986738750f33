/*
 * Advice about what is made known before it is ready: one thread writes a pointer, a flag or a counter, or posts
 * a semaphore, by which another one finds what the first still has to fill in. No lock around the filling
 * helps there, and nobody has to wait: it only has to be done first.
 */
#include "analyzer/dsp/pattern.h"

#include <string.h>

/* So far back it is looked for how the reader came there. */
#define NEAR 400

/* Who writes it, too, from there on has not come to find it. */
static bool writes_from(const struct sym_trace *t, struct sched_ref from, uint32_t var)
{
	for (uint32_t i = from.index; i < t->threads[from.thread].nevents; i++) {
		const struct sym_event *e = &t->threads[from.thread].events[i];

		if (order_writes(e) && e->target == var)
			return true;
	}
	return false;
}

/* What it made known it takes back, or makes known anew, before it fills: the other one went by what was over. */
static bool makes_known_again(const struct sym_trace *t, struct sched_ref published, struct sched_ref filled)
{
	uint32_t var = order_event_at(t, published)->target;

	for (uint32_t i = published.index + 1; i < filled.index; i++) {
		const struct sym_event *e = &t->threads[published.thread].events[i];

		if (order_writes(e) && e->target == var)
			return true;
	}
	return false;
}

/* It was written before the reader was made: that is what the reader was started with, and nobody goes by it. */
static bool is_given(const struct sym_trace *t, struct sched_ref written, uint32_t reader)
{
	uint32_t fork = order_fork_towards(t, written.thread, reader);

	return fork != SYM_NONE && written.index < fork;
}

/* In one expression: the two are compared, and either may be seen first. */
static bool on_one_line(const struct sym_trace *t, struct sched_ref a, struct sched_ref b)
{
	const struct sym_frame *x = dsp_place(t, order_event_at(t, a)), *y = dsp_place(t, order_event_at(t, b));

	return x && y && x->file && y->file && x->line == y->line && !strcmp(x->file, y->file);
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
		const struct sym_event *e = order_event_at(t, q), *to = order_event_at(t, looked);
		const struct order_flow *f = order_reads(e) ? dsp_flow_into(m, DSP_FAILING, q) : NULL;

		if (!f || f->initial || f->write.thread != filled.thread || f->write.index >= filled.index ||
		    e->target == to->target || dsp_failure_mentions(t, e) ||
		    is_given(t, f->write, looked.thread) || !dsp_decides_on_way(t, e, to))
			continue;
		*published = f->write;
		/* How a library hands work to its threads is not what the program made known. */
		if (dsp_is_in_library(t, order_event_at(t, f->write)))
			return false;
		return !writes_from(t, q, to->target) && !makes_known_again(t, f->write, filled) &&
		       !on_one_line(t, q, looked);
	}
	return false;
}

static bool uses_semaphore(const struct sym_trace *t, uint32_t thread, uint32_t sem, enum sym_op op)
{
	for (uint32_t i = 0; i < t->threads[thread].nevents; i++) {
		const struct sym_event *e = &t->threads[thread].events[i];

		if (e->op == op && e->target == sem)
			return true;
	}
	return false;
}

/* The thread's last event of this kind before its event r, of any semaphore or of this one; SYM_NONE: none. */
static uint32_t last_of(const struct sym_trace *t, struct sched_ref r, enum sym_op op, uint32_t sem)
{
	for (uint32_t i = r.index; i-- > 0;) {
		const struct sym_event *e = &t->threads[r.thread].events[i];

		if (e->op == op && (sem == SYM_NONE || e->target == sem) && (op != SYM_SEMWAIT || e->result == 1))
			return i;
	}
	return SYM_NONE;
}

/*
 * The same by a semaphore, which the one only posts and the other only waits for: it tells that something is there.
 * *looked becomes the first that the other one does there.
 */
static bool find_posted(const struct dsp_map *m, struct sched_ref *looked, struct sched_ref filled,
			struct sched_ref *posted)
{
	const struct sym_trace *t = m->t;
	uint32_t var = order_event_at(t, filled)->target;
	struct sched_ref wait = { looked->thread, last_of(t, *looked, SYM_SEMWAIT, SYM_NONE) };
	uint32_t sem;

	if (wait.index == SYM_NONE)
		return false;
	sem = order_event_at(t, wait)->target;
	*posted = (struct sched_ref){ filled.thread, last_of(t, filled, SYM_SEMPOST, sem) };
	if (posted->index == SYM_NONE || uses_semaphore(t, looked->thread, sem, SYM_SEMPOST) ||
	    uses_semaphore(t, filled.thread, sem, SYM_SEMWAIT) ||
	    dsp_at(m, DSP_FAILING, *posted) > dsp_at(m, DSP_FAILING, wait))
		return false;
	for (uint32_t i = wait.index; i < looked->index; i++) {
		const struct sym_event *e = &t->threads[looked->thread].events[i];

		if (order_is_access(e) && e->target == var)
			looked->index = i;
	}
	return true;
}

static bool published_hint(const struct dsp_map *m, const struct dsp_pair *p, struct dsp_hint *h)
{
	const struct sym_trace *t = m->t;
	const struct sym_event *looked = order_event_at(t, p->before), *filled = order_event_at(t, p->after);
	struct sched_ref published, look = p->before;
	struct strbuf b = { 0 };

	if (!order_is_access(looked) || !order_writes(filled) || looked->target != filled->target)
		return false;
	if (!find_posted(m, &look, p->after, &published) &&
	    (looked->op != SYM_READ || !find_published(m, p->before, p->after, &published)))
		return false;
	strbuf_str(&b, "Do ");
	dsp_say_at(&b, t, p->after);
	strbuf_fmt(&b, " (%s ", dsp_thread_id(t, p->after.thread));
	dsp_say_does(&b, t, p->after);
	strbuf_str(&b, ") before ");
	dsp_say_at(&b, t, published);
	strbuf_str(&b, ", where it ");
	dsp_say_does(&b, t, published);
	strbuf_fmt(&b, ": going by that, %s ", dsp_thread_id(t, look.thread));
	dsp_say_does(&b, t, look);
	strbuf_str(&b, " at ");
	dsp_say_at(&b, t, look);
	strbuf_str(&b, " too early.");
	dsp_ask_hold(h, published, p->after);
	dsp_ask_hold(h, look, look);
	h->kind = DSP_HINT_ORDER;
	h->text = strbuf_take(&b);
	return true;
}

bool dsp_match_publication(const struct dsp_case *c, struct dsp_hint *h)
{
	return c->order && published_hint(c->m, c->order, h);
}
