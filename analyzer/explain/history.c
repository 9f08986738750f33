/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The same answer told of a longer stretch. What fix fits shows in what the threads of the root cause did before it: where
 * the window cuts that off a larger one is extracted. And where nothing in a window helps, the damage may have been done
 * before it (a counter that lost updates all along): then the failing order is continued backwards.
 */
#include "analyzer/explain/candidate.h"

/* By thread: the window cuts off what it did just before the root cause. */
static bool *cut_short(const struct candidate *c, bool *any)
{
	const struct sched_answer *a = c->answer;
	const struct sym_trace *t = c->extracted->trace;
	bool *cut = xcalloc(t->nthreads + 1, sizeof *cut);

	*any = false;
	for (size_t i = 0; c->extracted->from && i < 2 * a->ncause; i++) {
		struct sched_ref r = i & 1 ? a->cause[i / 2].after : a->cause[i / 2].before;

		if (r.index < LIMIT_CONTEXT && t->threads[r.thread].events[0].op != SYM_START)
			*any = cut[r.thread] = true;
	}
	return cut;
}

/* How many events each thread has more; false: what both hold is not the same. */
static bool compare(const struct ext_result *was, const struct ext_result *is, uint32_t *more)
{
	for (uint32_t i = 0; i < was->trace->nthreads; i++) {
		const struct sym_thread *a = &was->trace->threads[i], *b = &is->trace->threads[i];

		if (b->nevents < a->nevents)
			return false;
		more[i] = (uint32_t)(b->nevents - a->nevents);
		for (size_t k = 0; k < a->nevents; k++)
			if (a->events[k].op != b->events[k + more[i]].op ||
			    a->events[k].pc != b->events[k + more[i]].pc ||
			    was->points[i][k].insn != is->points[i][k + more[i]].insn)
				return false;
	}
	return true;
}

static struct candidate *lengthened(const struct candidate *c, const struct view *larger, size_t *more)
{
	const struct sym_trace *was = c->extracted->trace;
	uint32_t *by_thread = xcalloc(was->nthreads + 1, sizeof *by_thread);
	struct sched_answer *answer = compare(c->extracted, larger->extracted, by_thread) ?
		sched_lengthen(was, larger->extracted->trace, c->scope.model, c->answer, by_thread) : NULL;
	struct candidate *longer = answer ? candidate_new(c->e, &larger->scope, larger->extracted) : NULL;

	*more = 0;
	for (uint32_t i = 0; i < was->nthreads; i++)
		*more += by_thread[i];
	free(by_thread);
	if (!longer)
		return NULL;
	longer->answer = answer;
	longer->kept = c->kept;
	return longer;
}

struct candidate *history_lengthen(const struct candidate *c, const struct view *larger, size_t *more)
{
	struct candidate *longer = lengthened(c, larger, more);
	err_t bad = longer ? candidate_execute_failing(longer, &longer->answer->failing) : NULL;

	err_free(bad);
	if (bad) {
		candidate_free(longer);
		return NULL;
	}
	return longer;
}

/* Told of more, it is the same two orders, which have been executed. */
static void take_proofs(struct candidate *longer, struct candidate *c)
{
	longer->failing_proof = c->failing_proof;
	longer->alternate_proof = c->alternate_proof;
	longer->failing_why = c->failing_why;
	longer->alternate_why = c->alternate_why;
	longer->attempt = c->attempt;
	longer->note = c->note;
	c->failing_why = c->alternate_why = c->note = NULL;
}

struct candidate *history_extend(struct search *s, struct candidate *c)
{
	struct explain_scope larger = c->scope;
	bool any, *cut = cut_short(c, &any);
	struct ext_options x = explain_extraction(s->e, &c->scope);
	size_t more;

	if (any)
		larger.window = ext_survey_reach(&x, cut, c->extracted->trace->nthreads, (uint32_t)LIMIT_CONTEXT,
						 c->scope.window * (uint64_t)LIMIT_HISTORY_GROWTH);
	free(cut);
	if (!any || larger.window <= c->scope.window || explain_out_of_time(s->e))
		return c;
	struct view *v = search_view(s, &larger, 0);
	err_t bad = v->extracted ? NULL : scope_extract(s->e, s->o, &larger, &v->extracted);

	/* That there is no time for this is no reason to lose the answer. */
	err_free(bad);
	if (bad)
		return c;
	struct candidate *longer = lengthened(c, v, &more);
	if (!longer)
		return c;
	take_proofs(longer, c);
	vec_push(&s->found, longer);
	return longer;
}
