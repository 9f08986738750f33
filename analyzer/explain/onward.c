/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What comes after the recording. A thread may fail because another one had not yet
 * done something (use before initialisation): that event was never recorded,
 * so no order of recorded events helps. The machine can compute what the others do
 * next: then it is an event like any other, and the order of the two is the root cause.
 */
#include "analyzer/explain/candidate.h"

const struct sym_thread *onward_unended(const struct sym_trace *t)
{
	for (size_t i = 0; i < t->nthreads; i++) {
		const struct sym_thread *th = &t->threads[i];

		if (i != t->failure.thread && th->nevents && th->events[th->nevents - 1].op != SYM_EXIT)
			return th;
	}
	return NULL;
}

bool onward_may_help(const struct sym_trace *t)
{
	bool alone = t->failure.kind != SYM_FAIL_DEADLOCK && t->failure.kind != SYM_FAIL_HANG;

	return alone && t->failure.thread < t->nthreads && onward_unended(t);
}

bool candidate_blames_computed(const struct candidate *c)
{
	const struct sched_answer *a = c->answer;

	for (size_t i = 0; i < 2 * a->ncause; i++) {
		struct sched_ref r = i & 1 ? a->cause[i / 2].after : a->cause[i / 2].before;

		if (c->extracted->computed[r.thread] != SYM_NONE && r.index >= c->extracted->computed[r.thread])
			return true;
	}
	return false;
}

void onward_assume(const struct candidate *c)
{
	struct sym_trace *t = c->extracted->trace;

	for (uint32_t i = 0; i < t->nthreads; i++) {
		uint32_t first = c->extracted->computed[i];

		if (first == SYM_NONE)
			continue;
		char *where = dsp_where(t, (struct sched_ref){ i, first });
		char *s = xasprintf("What %s does from %s on was not recorded, the failure came first: the "
				    "machine computed it from code and memory as they were then.",
				    t->threads[i].id, where);
		sym_add_assumption(t, s);
		free(s);
		free(where);
	}
}

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
bool onward_decisive_read(const struct sym_trace *t, struct sched_ref *out)
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
static bool passes_waiting_at(const struct candidate *c, struct sched_ref at)
{
	const struct sched_order *failing = &c->answer->failing;
	struct sched_order before = { 0 };
	struct report_proof proof = { 0 };
	char *why = NULL;

	before.refs = xcalloc(failing->n + 1, sizeof *before.refs);
	for (size_t i = 0; i < failing->n; i++)
		if (failing->refs[i].thread != at.thread || failing->refs[i].index < at.index)
			before.refs[before.n++] = failing->refs[i];
	err_free(candidate_execute(c, &before, MACH_OUT_PASSED, true, &proof, &why));
	free(before.refs);
	free(why);
	c->e->tried.unknown |= proof.left || c->e->tried.held;
	return proof.agreed;
}

/*
 * That the others go on first must have been tried before it is said that every order fails: as far as they can, before the
 * failing thread looks at what it fails by, and before it does anything.
 */
void onward_hold_back(const struct candidate *c)
{
	const struct sym_trace *t = c->extracted->trace;
	struct sched_ref at = { t->failure.thread, 0 };

	if (!c->answer->found || t->failure.nblocked || t->failure.thread >= t->nthreads || !onward_unended(t) ||
	    passes_waiting_at(c, at))
		return;
	if (onward_decisive_read(t, &at))
		passes_waiting_at(c, at);
}

/* The latest place first: the failure itself, in front of which it may read what nobody shares yet. */
bool onward_waiting_helps(const struct candidate *c, struct sched_ref *at)
{
	const struct sym_trace *t = c->extracted->trace;
	const struct sym_thread *th;

	if (!c->answer->found || t->failure.thread >= t->nthreads)
		return false;
	th = &t->threads[t->failure.thread];
	if (th->nevents && th->events[th->nevents - 1].op == SYM_FAIL) {
		*at = (struct sched_ref){ t->failure.thread, (uint32_t)th->nevents - 1 };
		if (passes_waiting_at(c, *at))
			return true;
	}
	return onward_decisive_read(t, at) && passes_waiting_at(c, *at);
}
