/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What values an order carries, and from which write to which read. */
#include "analyzer/order/order.h"

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

bool order_value(const struct sym_trace *t, const struct sched_order *o, struct sched_ref r,
		 uint64_t *value)
{
	const struct sym_event *e = order_event_at(t, r);

	if (!e || !o || !order_is_access(e))
		return false;
	return eval(t, o, order_writes(e) ? e->value : e->symbol, value);
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

static struct order_flow flow_to(const struct sym_trace *t, const struct sched_order *o, size_t at,
				 const struct buffer *b, size_t last)
{
	struct sched_ref read = o->refs[at];
	const struct sym_thread *th = &t->threads[read.thread];
	const struct sym_event *e = &th->events[read.index];
	struct order_flow f = { .read = read, .write = { read.thread, 0 } };

	if (!buffer_find(b, th, e->target, &f.write.index)) {
		f.initial = !last;
		if (last)
			f.write = o->refs[last - 1];
	}
	f.has_value = eval(t, o, e->symbol, &f.value);
	return f;
}

size_t order_flows(const struct sym_trace *t, const struct sched_order *o, struct order_flow **flows)
{
	/* place + 1 of the last write of each variable; 0: none yet */
	size_t *last = xcalloc(t->nvars + 1, sizeof *last);
	struct buffer *buffers = xcalloc(t->nthreads + 1, sizeof *buffers);
	VEC(struct order_flow) out = { 0 };

	for (size_t i = 0; i < o->n; i++) {
		struct sched_ref r = o->refs[i];
		const struct sym_event *e = order_event_at(t, r);

		if (!e)
			continue;
		buffer_step(&buffers[r.thread], &t->threads[r.thread], r.index);
		if (!order_is_access(e) || e->target >= t->nvars)
			continue;
		if (order_reads(e))
			vec_push(&out, flow_to(t, o, i, &buffers[r.thread], last[e->target]));
		if (order_writes(e))
			last[e->target] = i + 1;
	}
	for (size_t i = 0; i < t->nthreads; i++)
		vec_free(&buffers[i].held);
	free(buffers);
	free(last);
	*flows = out.v;
	return out.n;
}
