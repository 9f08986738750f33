/*
 * What fix fits shows in what the threads of the root cause did before it. Where the window
 * cuts that off a larger one is extracted; the answer stays the one that was found.
 */
#include "analyzer/explain/explain.h"

/* Events of a thread before the root cause that should be seen. */
#define HISTORY 8
/* So many times larger the window may become. */
#define FURTHER 16

/* By thread: the window cuts off what it did just before the root cause. */
static bool *cut_short(const struct explanation *e, bool *any)
{
	const struct sched_answer *a = e->answer;
	const struct sym_trace *t = e->extracted->trace;
	bool *cut = xcalloc(t->nthreads + 1, sizeof *cut);

	*any = false;
	for (size_t i = 0; e->extracted->from && i < 2 * a->ncause; i++) {
		struct sched_ref r = i & 1 ? a->cause[i / 2].after : a->cause[i / 2].before;

		if (r.index < HISTORY && t->threads[r.thread].events[0].op != SYM_START)
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

static bool lengthen(struct explanation *e, const struct ext_result *was)
{
	uint32_t *more = xcalloc(was->trace->nthreads + 1, sizeof *more);
	struct sched_answer *longer = compare(was, e->extracted, more) ?
		sched_lengthen(was->trace, e->extracted->trace, e->model, e->answer, more) : NULL;

	free(more);
	if (!longer)
		return false;
	sched_answer_free(e->answer);
	e->answer = longer;
	return true;
}

err_t explain_look_further_back(struct explanation *e, struct explain_options *o)
{
	struct explain_options larger = *o;
	bool any, *cut = cut_short(e, &any);
	struct ext_options x = explain_extraction(e, o);

	if (any)
		larger.window = ext_survey_reach(&x, cut, e->extracted->trace->nthreads, HISTORY,
						 o->window * FURTHER);
	free(cut);
	if (!any || larger.window <= o->window || explain_out_of_time(e))
		return NULL;

	struct ext_result *was = e->extracted;
	e->extracted = NULL;
	err_t bad = explain_extract(e, &larger);
	if (!bad && lengthen(e, was)) {
		ext_result_free(was);
		o->window = larger.window;
		return NULL;
	}
	ext_result_free(e->extracted);
	e->extracted = was;
	/* Out of time here is no reason to lose the answer. */
	if (explain_out_of_time(e)) {
		err_free(bad);
		bad = NULL;
	}
	return bad;
}
