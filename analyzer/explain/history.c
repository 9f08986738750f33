/*
 * What fix fits shows in what the threads of the root cause did before it. Where the window
 * cuts that off a larger one is extracted; the answer stays the one that was found.
 *
 * Where no alternate in the window stands its execution, the damage may have been done before it
 * (a counter that lost updates all along): then the failing order is continued backwards, and an
 * alternate is looked for there, by executing.
 */
#include "analyzer/explain/explain.h"

/* Events of a thread before the root cause that should be seen. */
#define HISTORY 8
/* So many times larger the window may become. */
#define FURTHER 16
/* Where an alternate is looked for: windows of so many events, and about as many executions of it. */
#define MOST_EVENTS 200000
#define TRIES 40

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
static struct sched_answer *lengthened(struct explanation *e, const struct ext_result *was, size_t *more)
{
	uint32_t *by_thread = xcalloc(was->trace->nthreads + 1, sizeof *by_thread);
	struct sched_answer *longer = compare(was, e->extracted, by_thread) ?
		sched_lengthen(was->trace, e->extracted->trace, e->model, e->answer, by_thread) : NULL;

	*more = 0;
	for (uint32_t i = 0; i < was->trace->nthreads; i++)
		*more += by_thread[i];
	free(by_thread);
	return longer;
}

err_t explain_look_further_back(struct explanation *e, struct explain_options *o)
{
	struct explain_options larger = *o;
	bool any, *cut = cut_short(e, &any);
	size_t more;
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
	struct sched_answer *longer = bad ? NULL : lengthened(e, was, &more);
	if (longer) {
		ext_result_free(was);
		sched_answer_free(e->answer);
		e->answer = longer;
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

/* ---- what was done before the window ---- */

/* What is known, put aside while something better is looked for. */
struct aside {
	struct ext_result *extracted;
	struct sched_answer *answer;
	struct report_validation failing, alternate;
	char *failing_why, *alternate_why;
};

static struct aside put_aside(struct explanation *e)
{
	struct aside a = { e->extracted, e->answer, e->failing_proof, e->alternate_proof,
			   e->failing_why, e->alternate_why };

	e->extracted = NULL;
	e->failing_why = e->alternate_why = NULL;
	return a;
}

static void take_back(struct explanation *e, struct aside *a)
{
	if (e->answer != a->answer)
		sched_answer_free(e->answer);
	ext_result_free(e->extracted);
	free(e->failing_why);
	free(e->alternate_why);
	e->extracted = a->extracted;
	e->answer = a->answer;
	e->failing_proof = a->failing;
	e->alternate_proof = a->alternate;
	e->failing_why = a->failing_why;
	e->alternate_why = a->alternate_why;
}

static void forget(struct aside *a)
{
	ext_result_free(a->extracted);
	sched_answer_free(a->answer);
	free(a->failing_why);
	free(a->alternate_why);
}

/* The failing order in this window: continued backwards, or solved anew where more turns out to be shared. */
static err_t continued(struct explanation *e, const struct ext_result *was, const struct explain_options *o, size_t *more)
{
	struct sched_answer *longer = lengthened(e, was, more);

	e->answer = longer; /* the other one is put aside */
	e->alternate_proof = (struct report_validation){ 0 };
	if (longer)
		return explain_validate_failing(e);
	*more = SIZE_MAX;
	TRY(explain_solve_window(e, o, false));
	TRY(explain_validate_failing(e));
	return explain_validate_alternates(e);
}

/* Looks in this window; *helps: there is an order that was executed. */
static err_t look_in(struct explanation *e, const struct ext_result *was, const struct explain_options *o, bool *helps)
{
	size_t more;

	const struct report_proof *failing = &e->failing_proof.by[REPORT_MACHINE];
	const struct report_proof *alternate = &e->alternate_proof.by[REPORT_MACHINE];

	TRY(explain_extract(e, o));
	TRY(continued(e, was, o, &more));
	if (failing->agreed && !alternate->agreed && more) {
		e->answer->cause_minimal = false; /* without it the run failed all the same, as executed */
		TRY(explain_serial(e, more));
	}
	*helps = failing->agreed && alternate->agreed;
	return NULL;
}

/* It may take all its tries of executing as much as the whole run. */
static bool can_afford(const struct explanation *e)
{
	return !explain_out_of_time(e) &&
	       (e->effort_end <= 0 || explain_effort(e) + TRIES * explain_effort_again(e) < e->effort_end);
}

err_t explain_look_before(struct explanation *e, struct explain_options *o)
{
	bool helps = false;
	err_t bad = NULL;

	while (!helps && !bad && e->answer->found && e->extracted->from && o->window < MOST_EVENTS && can_afford(e)) {
		struct explain_options larger = *o;
		struct aside a = put_aside(e);

		larger.window = o->window * FURTHER;
		bad = look_in(e, a.extracted, &larger, &helps);
		if (helps && !bad)
			forget(&a);
		else
			take_back(e, &a);
		o->window = larger.window;
	}
	/* Out of time here is no reason to lose the answer. */
	if (bad && explain_out_of_time(e)) {
		err_free(bad);
		bad = NULL;
	}
	return bad;
}
