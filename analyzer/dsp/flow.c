#include "analyzer/dsp/internal.h"

bool dsp_ref_ok(const struct sym_trace *t, struct sched_ref r)
{
	return r.thread < t->nthreads && r.index < t->threads[r.thread].nevents;
}

const struct sym_event *dsp_event_at(const struct sym_trace *t, struct sched_ref r)
{
	return dsp_ref_ok(t, r) ? &t->threads[r.thread].events[r.index] : NULL;
}

bool dsp_is_read(const struct sym_event *e)
{
	return e->op == SYM_READ || e->op == SYM_RMW;
}

bool dsp_is_write(const struct sym_event *e)
{
	return e->op == SYM_WRITE || (e->op == SYM_RMW && e->value != EXPR_NONE);
}

bool dsp_is_memory(const struct sym_event *e)
{
	return e->op == SYM_READ || e->op == SYM_WRITE || e->op == SYM_RMW;
}

/* Only when the order gives every symbol a value: expr_eval() checks no bounds. */
static bool eval(const struct sym_trace *t, const struct sched_order *o, expr_id e,
		 uint64_t *value)
{
	const struct expr *x;

	if (e == EXPR_NONE)
		return false;
	x = expr_get(t->pool, e);
	if (x->op == EX_CONST)
		*value = x->value;
	else if (x->op == EX_SYMBOL && x->value < o->nvalues)
		*value = o->values[x->value];
	else if (o->nvalues >= expr_symbol_count(t->pool))
		*value = expr_eval(t->pool, e, o->values);
	else
		return false;
	return true;
}

bool dsp_value(const struct sym_trace *t, const struct sched_order *o, struct sched_ref r,
	       uint64_t *value)
{
	const struct sym_event *e = dsp_event_at(t, r);

	if (!e || !o || !dsp_is_memory(e))
		return false;
	return eval(t, o, dsp_is_write(e) ? e->value : e->symbol, value);
}

/*
 * Under total store order a plain write's place in an order is where it leaves
 * its thread's store buffer: later events of the thread may come before it, and
 * read it from the buffer. Sequential consistency keeps the buffers empty.
 */
struct buffer {
	uint32_t reached; /* events of the thread before this have begun */
	VEC(uint32_t) held;
};

static void buffer_step(struct buffer *b, const struct sym_thread *th, uint32_t index)
{
	for (; b->reached < index; b->reached++)
		if (th->events[b->reached].op == SYM_WRITE)
			vec_push(&b->held, b->reached);
	if (b->reached == index) {
		b->reached++;
		return;
	}
	for (size_t i = 0; i < b->held.n; i++) {
		if (b->held.v[i] != index)
			continue;
		for (b->held.n--; i < b->held.n; i++)
			b->held.v[i] = b->held.v[i + 1];
	}
}

static bool buffer_find(const struct buffer *b, const struct sym_thread *th, uint32_t var,
			uint32_t *index)
{
	for (size_t i = b->held.n; i-- > 0;) {
		*index = b->held.v[i];
		if (th->events[*index].target == var)
			return true;
	}
	return false;
}

static struct dsp_flow flow_to(const struct sym_trace *t, const struct sched_order *o, size_t at,
			       const struct buffer *b, size_t last)
{
	struct sched_ref read = o->refs[at];
	const struct sym_thread *th = &t->threads[read.thread];
	const struct sym_event *e = &th->events[read.index];
	struct dsp_flow f = { .read = read, .write = { read.thread, 0 } };

	if (!buffer_find(b, th, e->target, &f.write.index)) {
		f.initial = !last;
		if (last)
			f.write = o->refs[last - 1];
	}
	f.has_value = eval(t, o, e->symbol, &f.value);
	return f;
}

size_t dsp_flows(const struct sym_trace *t, const struct sched_order *o, struct dsp_flow **flows)
{
	/* place + 1 of the last write of each variable; 0: none yet */
	size_t *last = xcalloc(t->nvars + 1, sizeof *last);
	struct buffer *buffers = xcalloc(t->nthreads + 1, sizeof *buffers);
	VEC(struct dsp_flow) out = { 0 };

	for (size_t i = 0; i < o->n; i++) {
		struct sched_ref r = o->refs[i];
		const struct sym_event *e = dsp_event_at(t, r);

		if (!e)
			continue;
		buffer_step(&buffers[r.thread], &t->threads[r.thread], r.index);
		if (!dsp_is_memory(e) || e->target >= t->nvars)
			continue;
		if (dsp_is_read(e))
			vec_push(&out, flow_to(t, o, i, &buffers[r.thread], last[e->target]));
		if (dsp_is_write(e))
			last[e->target] = i + 1;
	}
	for (size_t i = 0; i < t->nthreads; i++)
		vec_free(&buffers[i].held);
	free(buffers);
	free(last);
	*flows = out.v;
	return out.n;
}

const struct dsp_flow *dsp_flow_into(const struct dsp_map *m, enum dsp_which w,
				     struct sched_ref r)
{
	size_t i = m->flow_of[w] ? m->flow_of[w][dsp_id(m, r)] : DSP_NEVER;

	return i == DSP_NEVER ? NULL : &m->flows[w][i];
}

bool dsp_inverted(const struct dsp_map *m, struct sched_ref before, struct sched_ref after)
{
	size_t after_fail = dsp_at(m, DSP_FAILING, after);
	size_t after_alt = dsp_at(m, DSP_ALTERNATE, after);

	return dsp_at(m, DSP_FAILING, before) < after_fail && after_alt != DSP_NEVER &&
	       dsp_at(m, DSP_ALTERNATE, before) > after_alt;
}
