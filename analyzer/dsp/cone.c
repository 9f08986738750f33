#include "analyzer/dsp/internal.h"

bool dsp_same_source(const struct order_flow *a, const struct order_flow *b)
{
	return a->initial == b->initial && (a->initial || order_same_ref(a->write, b->write));
}

/*
 * Which reads have a say in the failure: those whose values its condition is made
 * of, followed back through dataflows that both schedules share, up to the first
 * dataflow that differs. What differs further upstream explains nothing that this
 * one does not, unless the root cause names it.
 */
struct cone {
	struct dsp_builder *b;
	struct sched_ref *read_of; /* by symbol number; thread SYM_NONE: no read */
	VEC(uint64_t) todo;
	size_t found; /* reads that differ */
};

static void cone_add(void *arg, uint64_t symbol)
{
	struct cone *c = arg;

	if (c->b->matters[symbol])
		return;
	c->b->matters[symbol] = true;
	vec_push(&c->todo, symbol);
}

static void cone_follow(struct cone *c, struct sched_ref read)
{
	const struct dsp_map *m = &c->b->map;
	const struct order_flow *fail = dsp_flow_into(m, DSP_FAILING, read);
	const struct order_flow *alt = dsp_flow_into(m, DSP_ALTERNATE, read);
	const struct order_flow *f = fail ? fail : alt;
	const struct sym_event *e;

	if (alt && dsp_at(m, DSP_ALTERNATE, read) >= m->exact[DSP_ALTERNATE])
		alt = NULL;
	if (fail && alt && !dsp_same_source(fail, alt)) {
		c->found += !fail->has_value || !alt->has_value || fail->value != alt->value;
		return;
	}
	e = f && !f->initial ? order_event_at(m->t, f->write) : NULL;
	if (e && e->value != EXPR_NONE)
		expr_symbols(m->t->pool, e->value, cone_add, c);
}

static void cone_of(struct cone *c, expr_id condition)
{
	expr_symbols(c->b->map.t->pool, condition, cone_add, c);
	while (c->todo.n) {
		uint64_t symbol = c->todo.v[--c->todo.n];

		if (c->read_of[symbol].thread != SYM_NONE)
			cone_follow(c, c->read_of[symbol]);
	}
}

static struct sched_ref *reads_by_symbol(const struct sym_trace *t)
{
	size_t nsymbols = expr_symbol_count(t->pool);
	struct sched_ref *read_of = xcalloc(nsymbols + 1, sizeof *read_of);

	for (size_t i = 0; i < nsymbols; i++)
		read_of[i].thread = SYM_NONE;
	for (uint32_t th = 0; th < t->nthreads; th++) {
		for (uint32_t i = 0; i < t->threads[th].nevents; i++) {
			const struct sym_event *e = &t->threads[th].events[i];
			const struct expr *x = order_reads(e) && e->symbol != EXPR_NONE ?
					       expr_get(t->pool, e->symbol) : NULL;

			if (x && x->op == EX_SYMBOL && x->value < nsymbols)
				read_of[x->value] = (struct sched_ref){ th, i };
		}
	}
	return read_of;
}

/* Shown writes that write something else in the other schedule: what they were
 * computed from, one step back (all the way back would be the whole run). */
void dsp_explain_values(struct dsp_builder *b)
{
	const struct dsp_map *m = &b->map;
	struct cone c = { .b = b, .read_of = reads_by_symbol(m->t) };

	for (uint32_t th = 0; th < m->t->nthreads; th++) {
		for (uint32_t i = 0; i < m->t->threads[th].nevents; i++) {
			struct sched_ref r = { th, i };
			uint64_t fail, alt;

			if (b->why[dsp_id(m, r)] && dsp_at(m, DSP_FAILING, r) != ORDER_NOWHERE &&
			    dsp_at(m, DSP_ALTERNATE, r) < m->exact[DSP_ALTERNATE] &&
			    order_writes(order_event_at(m->t, r)) &&
			    order_value(m->t, m->order[DSP_FAILING], r, &fail) &&
			    order_value(m->t, m->order[DSP_ALTERNATE], r, &alt) && fail != alt)
				cone_of(&c, order_event_at(m->t, r)->value);
		}
	}
	vec_free(&c.todo);
	free(c.read_of);
}

void dsp_find_cone(struct dsp_builder *b)
{
	const struct sym_trace *t = b->map.t;
	struct cone c = { .b = b, .read_of = reads_by_symbol(t) };

	if (t->failure.condition != EXPR_NONE) {
		cone_of(&c, t->failure.condition);
	} else if (!t->failure.nblocked && t->failure.thread < t->nthreads) {
		/* Failing is getting there: the last branch that the order decided. */
		const struct sym_thread *th = &t->threads[t->failure.thread];

		for (size_t i = th->nconds; i-- > 0 && !c.found;)
			cone_of(&c, th->conds[i].cond);
	}
	vec_free(&c.todo);
	free(c.read_of);
}
