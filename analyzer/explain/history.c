/*
 * What fix fits shows in what the threads of the root cause did before it. Where the window
 * cuts that off a larger one is extracted; the answer stays the one that was found.
 *
 * Where no alternate in the window stands its execution, the damage may have been done before it
 * (a counter that lost updates all along): then the failing order is continued backwards, and an
 * alternate is looked for there, by executing.
 */
#include "analyzer/explain/judge.h"

/* Events of a thread before the root cause that should be seen. */
#define HISTORY 8
/* So many times larger the window may become. */
#define FURTHER 16
/* Where an alternate is looked for: windows of so many events, and about as many executions of it. */
#define MOST_EVENTS 200000
#define TRIES 40
/* Those of a window that is solved anew: the solver has shown before that it finds nothing better. */
#define MOST_SOLVED 20000

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

/* The answer for the longer trace, malloc'd; NULL: it cannot be told of that. *more: events that come before it now. */
static struct sched_answer *lengthened(const struct explanation *e, const struct ext_result *was,
				       const struct sched_answer *answer, size_t *more)
{
	uint32_t *by_thread = xcalloc(was->trace->nthreads + 1, sizeof *by_thread);
	struct sched_answer *longer = compare(was, e->extracted, by_thread) ?
		sched_lengthen(was->trace, e->extracted->trace, e->scope.model, answer, by_thread) : NULL;

	*more = 0;
	for (uint32_t i = 0; i < was->trace->nthreads; i++)
		*more += by_thread[i];
	free(by_thread);
	return longer;
}

err_t explain_look_further_back(struct explanation *e, const struct explain_options *o)
{
	struct explain_scope scope = e->scope, larger = scope;
	bool any, *cut = cut_short(e, &any);
	size_t more;
	struct ext_options x = explain_extraction(e);

	if (any)
		larger.window = ext_survey_reach(&x, cut, e->extracted->trace->nthreads, HISTORY,
						 scope.window * FURTHER);
	free(cut);
	if (!any || larger.window <= scope.window || explain_out_of_time(e))
		return NULL;

	struct ext_result *was = e->extracted;
	e->extracted = NULL;
	e->scope = larger;
	err_t bad = explain_extract(e, o);
	struct sched_answer *longer = bad ? NULL : lengthened(e, was, e->answer, &more);
	if (longer) {
		ext_result_free(was);
		sched_answer_free(e->answer);
		e->answer = longer;
		return NULL;
	}
	ext_result_free(e->extracted);
	e->extracted = was;
	e->scope = scope;
	/* Out of time here is no reason to lose the answer. */
	if (explain_out_of_time(e)) {
		err_free(bad);
		bad = NULL;
	}
	return bad;
}

/* ---- what was done before the window ---- */

/* In a larger window than `extracted` and `answer` are of. */
struct smaller {
	const struct ext_result *extracted;
	const struct sched_answer *answer;
};

/* The failing order in this window: continued backwards, or solved anew where more turns out to be shared. */
static err_t continued(struct explanation *e, const struct smaller *was, const struct explain_options *o, size_t *more)
{
	e->answer = lengthened(e, was->extracted, was->answer, more);
	if (e->answer)
		return explain_validate_failing(e, &e->answer->failing);
	*more = SIZE_MAX;
	if (e->extracted->total > MOST_SOLVED)
		return NULL;
	TRY(explain_solve_window(e, o, false));
	return explain_validate_alternates(e);
}

static err_t look_in(struct explanation *e, const struct explain_options *o, void *arg)
{
	size_t more;

	TRY(continued(e, arg, o, &more));
	if (e->answer && e->failing_proof.by[REPORT_MACHINE].agreed && judge_passing(e) == JUDGE_DOES_NOT_PASS && more) {
		e->answer->cause_minimal = false; /* without it the run failed all the same, as executed */
		TRY(explain_serial(e, more));
	}
	if (!e->answer || (e->soon > 0 && !judge_is_confirmed(e)))
		return err_new(ERR_NOANSWER, "the solver may know better");
	return NULL;
}

/* It may take all its tries of executing as much as the whole run. */
static bool can_afford(const struct explanation *e)
{
	return !explain_out_of_time(e) &&
	       (e->effort_end <= 0 || explain_effort(e) + TRIES * explain_effort_again(e) < e->effort_end);
}

err_t explain_look_before(struct explanation *e, const struct explain_options *o)
{
	struct explain_scope larger = e->scope;
	bool helps = false;

	while (!helps && e->answer->found && e->extracted->from && larger.window < MOST_EVENTS && can_afford(e)) {
		struct smaller was = { e->extracted, e->answer };

		larger.window = larger.window * FURTHER < MOST_EVENTS ? larger.window * FURTHER : MOST_EVENTS;
		helps = explain_try(e, &larger, o, look_in, &was);
	}
	return NULL;
}
