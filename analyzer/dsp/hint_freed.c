/*
 * Advice about what was used after another thread had freed it. That happened, whatever order
 * the answer turns round: where that is about something else (the thread did not come by the
 * pointer, or came too late to use it), this is what there is to mend.
 */
#include "analyzer/dsp/internal.h"

/* So many events back it is looked for where a thread found the block. */
#define NEAR 400

/* Does the event touch the block? */
static bool touches(const struct sym_trace *t, const struct dsp_freed *f, struct sched_ref r)
{
	const struct sym_event *e = order_event_at(t, r);

	return e && order_is_access(e) && e->target < t->nvars &&
	       t->vars[e->target].address - f->base < f->size;
}

/* What the freeing thread does from there on is about whatever the block is used for next. */
static bool is_next_use(const struct dsp_freed *f, struct sched_ref r)
{
	return r.thread == f->freed_by && r.index >= f->freed_event;
}

static bool is_told(const struct sym_trace *t, const struct dsp *d, const struct dsp_freed *f)
{
	for (size_t i = 0; i < d->npairs; i++) {
		const struct dsp_pair *p = &d->pairs[i];

		if ((touches(t, f, p->before) || touches(t, f, p->after)) &&
		    !is_next_use(f, p->before) && !is_next_use(f, p->after))
			return true;
	}
	return false;
}

/* A lock that was held when it was freed; *both: when it was used, too. SYM_NONE: none. */
static uint32_t guard(const struct sym_trace *t, const struct dsp_freed *f, bool *both)
{
	order_held_locks freeing = { 0 }, using = { 0 };
	uint32_t lock = SYM_NONE;

	order_locks_held(t, f->freed_by, f->freed_event, &freeing);
	order_locks_held(t, f->thread, f->event, &using);
	*both = false;
	for (size_t i = 0; i < freeing.n && !*both; i++) {
		lock = freeing.v[i].object;
		for (size_t k = 0; k < using.n; k++)
			*both |= using.v[k].object == lock;
	}
	vec_free(&freeing);
	vec_free(&using);
	return lock;
}

static void say_place(struct strbuf *b, const struct sym_trace *t, uint32_t stack)
{
	struct sym_event e;

	sym_event_init(&e, SYM_READ);
	e.stack = stack;
	const struct sym_frame *f = dsp_place(t, &e);
	if (f && f->file && f->line)
		strbuf_fmt(b, "%s:%u", dsp_basename(f->file), f->line);
	else
		strbuf_fmt(b, "%s", f ? f->function : "a place that is not known");
}

static char *freed_text(const struct sym_trace *t, const struct dsp_freed *f, uint32_t lock, bool both)
{
	const char *user = dsp_thread_id(t, f->thread), *owner = dsp_thread_id(t, f->freed_by);
	struct strbuf b = { 0 };

	if (lock == SYM_NONE) {
		strbuf_fmt(&b, "Let %s wait, before it frees what `%s' is part of at ", owner, f->name);
		say_place(&b, t, f->freed_stack);
		strbuf_fmt(&b, ", until %s is past ", user);
		say_place(&b, t, f->stack);
		strbuf_str(&b, "; or let the last one who uses it free it (a reference count).");
		return strbuf_take(&b);
	}
	strbuf_fmt(&b, both ? "Keep `%s' locked from where %s finds `%s' until it uses it at " :
			      "Hold `%s' where %s uses `%s', from where it finds it up to ",
		   t->objects[lock].name, user, f->name);
	say_place(&b, t, f->stack);
	strbuf_fmt(&b, both ? ", or look for it again there: %s freed it in between, under the same lock, at " :
			      ": %s holds that lock when it frees it at ", owner);
	say_place(&b, t, f->freed_stack);
	strbuf_char(&b, '.');
	return strbuf_take(&b);
}

static bool is_written_by(const struct sym_trace *t, uint32_t thread, uint32_t var)
{
	for (size_t i = 0; i < t->threads[thread].nevents; i++)
		if (order_writes(&t->threads[thread].events[i]) && t->threads[thread].events[i].target == var)
			return true;
	return false;
}

/* Held from where it finds the block, by what the other one writes, too, to where it uses it; false: that is not known. */
static bool ask_lock(struct dsp_hint *h, const struct sym_trace *t, const struct dsp_freed *f, uint32_t lock)
{
	const struct sym_thread *th = &t->threads[f->thread];
	uint32_t use = f->event < th->nevents && th->events[f->event].stack == f->stack ? f->event : f->event - 1;

	for (uint32_t i = f->event; i-- > 0 && f->event - i < NEAR;) {
		struct sched_ref found = { f->thread, i };

		if (!order_reads(&th->events[i]) || touches(t, f, found) ||
		    !is_written_by(t, f->freed_by, th->events[i].target))
			continue;
		dsp_ask_hold(h, found, (struct sched_ref){ f->thread, use });
		dsp_ask_lock(h, lock);
		return true;
	}
	return false;
}

static void give_way(struct dsp *d, struct dsp_hint *h)
{
	if (h->text && d->nmore < DSP_MAX_HINTS)
		d->more[d->nmore++] = *h;
	else
		free(h->text);
	*h = (struct dsp_hint){ 0 };
}

/* One atomic step by a lock that the program does not have: freed memory is freed all the same, before or after it. */
static bool is_new_mutex(const struct dsp_hint *h)
{
	for (unsigned i = 0; i < h->nsteps; i++)
		if (h->step[i].kind == DSP_STEP_LOCK)
			return false;
	return h->kind == DSP_HINT_ATOMIC;
}

void dsp_freed_hint(const struct sym_trace *t, const struct dsp_freed *f, struct dsp *d)
{
	/* It may have happened before the stretch whose events are known: then its places are. */
	bool both = false, known = f->event != SYM_NONE && f->freed_event != SYM_NONE;

	if (f->thread >= t->nthreads || f->freed_by >= t->nthreads || f->thread == f->freed_by ||
	    (known && (f->event > t->threads[f->thread].nevents || f->freed_event > t->threads[f->freed_by].nevents)) ||
	    (d->hint.text && !is_new_mutex(&d->hint) && (!known || is_told(t, d, f))))
		return;
	uint32_t lock = known ? guard(t, f, &both) : SYM_NONE;

	/* What was said before is about something else; it is only tried. */
	give_way(d, &d->also);
	give_way(d, &d->hint);
	d->hint.kind = lock == SYM_NONE ? DSP_HINT_ORDER : DSP_HINT_ATOMIC;
	d->hint.text = freed_text(t, f, lock, both);
	d->hint.pattern = "freed";
	if (lock != SYM_NONE && ask_lock(&d->hint, t, f, lock))
		return;
	dsp_ask(&d->hint, DSP_STEP_KEEP, (struct sched_ref){ SYM_NONE, SYM_NONE },
		(struct sched_ref){ SYM_NONE, SYM_NONE }, f->freed_stack);
}
