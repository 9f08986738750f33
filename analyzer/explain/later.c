/*
 * What comes after the recording. A thread may fail because another one had not yet
 * done something (use before initialisation): that event was never recorded,
 * so no order of recorded events helps. The machine can let the others go on from
 * where they stood before the failing thread reads what it failed by.
 */
#include "analyzer/explain/explain.h"

struct wanted {
	const struct expr_pool *pool;
	expr_id symbol;
	bool found;
};

static void is_it(void *arg, uint64_t symbol)
{
	struct wanted *w = arg;

	w->found |= expr_get(w->pool, w->symbol)->value == symbol;
}

/* The last read of the failing thread that its failure depends on. */
static bool decisive_read(const struct sym_trace *t, struct sched_ref *out)
{
	const struct sym_failure *f = &t->failure;

	if (f->thread >= t->nthreads || f->condition == EXPR_NONE)
		return false;
	for (size_t i = t->threads[f->thread].nevents; i-- > 0;) {
		const struct sym_event *e = &t->threads[f->thread].events[i];
		struct wanted w = { t->pool, e->symbol, false };

		if (e->op != SYM_READ || e->symbol == EXPR_NONE)
			continue;
		expr_symbols(t->pool, f->condition, is_it, &w);
		if (w.found) {
			*out = (struct sched_ref){ f->thread, (uint32_t)i };
			return true;
		}
	}
	return false;
}

/* The others go on before the failing thread comes to this event of its. */
static bool passes_waiting_at(struct explanation *e, struct sched_ref at)
{
	const struct sched_order *failing = &e->answer->failing;
	struct sched_order before = { 0 };
	struct report_proof proof = { 0 };
	char *why = NULL;

	before.refs = xcalloc(failing->n + 1, sizeof *before.refs);
	for (size_t i = 0; i < failing->n; i++)
		if (failing->refs[i].thread != at.thread || failing->refs[i].index < at.index)
			before.refs[before.n++] = failing->refs[i];
	err_free(explain_execute(e, &before, MACH_OUT_PASSED, true, &proof, &why));
	free(before.refs);
	free(why);
	return proof.agreed;
}

/* The latest place first: the failure itself, in front of which it may read what nobody shares yet. */
bool explain_waiting_helps(struct explanation *e, struct sched_ref *at)
{
	const struct sym_trace *t = e->extracted->trace;
	const struct sym_thread *th;

	if (!e->answer->found || t->failure.thread >= t->nthreads)
		return false;
	th = &t->threads[t->failure.thread];
	if (th->nevents && th->events[th->nevents - 1].op == SYM_FAIL) {
		*at = (struct sched_ref){ t->failure.thread, (uint32_t)th->nevents - 1 };
		if (passes_waiting_at(e, *at))
			return true;
	}
	return decisive_read(t, at) && passes_waiting_at(e, *at);
}
