/*
 * What comes after the recording. A thread may fail because another one had not yet
 * done something (use before initialisation): that event was never recorded,
 * so no order of recorded events helps. The machine can compute what the others do
 * next: then it is an event like any other, and the order of the two is the root cause.
 * Where that leads nowhere, they are let go on from where they stood before the
 * failing thread reads what it failed by, to see whether that helps at all.
 */
#include "analyzer/explain/judge.h"

/* Beyond this the run is not gone through again for an answer that may only be somewhat better. */
#define MOST_INSNS_TWICE 200000000u
#define SECOND_LOOK 6 /* nor more than so much effort spent on it */
#define HARD 2        /* an answer that took so much is not sought again, to prove it */

const struct sym_thread *explain_unended(const struct sym_trace *t)
{
	for (size_t i = 0; i < t->nthreads; i++) {
		const struct sym_thread *th = &t->threads[i];

		if (i != t->failure.thread && th->nevents && th->events[th->nevents - 1].op != SYM_EXIT)
			return th;
	}
	return NULL;
}

/*
 * Where there is an answer already it is asked first whether this one would say more: in the smallest
 * window, for a larger one to prove it takes longer than everything else.
 */
static err_t says_more_at_first(struct explanation *e, const struct explain_options *o, bool *more)
{
	e->unproved = true;
	err_t bad = explain_solve_window(e, o, false);
	e->unproved = false;
	*more = !bad && e->answer->found && judge_blames_computed(e);
	return bad;
}

static err_t look_onward(struct explanation *e, const struct explain_options *o, void *arg)
{
	bool had = *(bool *)arg, more = true;

	if (had)
		TRY(says_more_at_first(e, o, &more));
	if (!more)
		return NULL;
	/* What was hard to find is harder to prove, and there may be nothing left for it. */
	if (!had || e->answer->stats.effort < HARD)
		TRY(explain_solve_window(e, o, false));
	TRY(explain_validate_alternates(e));
	/* The write that was missing may be the first of several. */
	bool half = e->answer->ncause && judge_blames_computed(e) && e->failing_proof.by[REPORT_MACHINE].agreed &&
		    judge_passing(e) == JUDGE_DOES_NOT_PASS;
	return half ? explain_serial(e, SIZE_MAX) : NULL;
}

void explain_assume_computed(struct explanation *e)
{
	struct sym_trace *t = e->extracted->trace;

	for (uint32_t i = 0; i < t->nthreads; i++) {
		uint32_t first = e->extracted->computed[i];

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

/* One thread fails by itself, and another one had still something to do. */
static bool may_come_later(const struct explanation *e)
{
	const struct sym_trace *t = e->extracted->trace;
	bool alone = t->failure.kind != SYM_FAIL_DEADLOCK && t->failure.kind != SYM_FAIL_HANG;

	return alone && t->failure.thread < t->nthreads && explain_unended(t);
}

err_t explain_solve_later(struct explanation *e, const struct explain_options *o)
{
	bool had = judge_passing(e) != JUDGE_DOES_NOT_PASS;

	if (!e->answer->found || e->scope.focus || !may_come_later(e) ||
	    (had && e->followed.insns > MOST_INSNS_TWICE))
		return NULL;
	double end = e->effort_end, soon = explain_effort(e) + SECOND_LOOK;
	struct explain_scope onward = e->scope;

	if (had && (end <= 0 || soon < end))
		e->effort_end = soon;
	onward.onward = true;
	explain_try(e, &onward, o, look_onward, &had);
	e->effort_end = end;
	return NULL;
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
bool explain_decisive_read(const struct sym_trace *t, struct sched_ref *out)
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
	return explain_decisive_read(t, at) && passes_waiting_at(e, *at);
}
