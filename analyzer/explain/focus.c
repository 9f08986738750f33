/*
 * What made a thread fail may lie far back, and everything that the others have done to each other's memory since
 * (a file that is read once more, to be compared) in between: a small window does not reach there, and a large one is more
 * than the solver can do. The failing thread itself has touched little. So, where nothing else has given a cause, the
 * whole run is looked at once more, and of what is shared only what that thread touched.
 */
#include "analyzer/explain/judge.h"

/* More effort than is left may be needed, but not much more: there are few events. */
#define EFFORT 10
/* Instructions: a longer run is not executed as a whole, watched, three times. */
#define LONGEST_RUN 200000000u
/* Where it touched so much there is nothing to be gained. */
#define MOST_EVENTS 20000

static bool is_wanted(const struct explanation *e)
{
	const struct sym_failure *f = &e->extracted->trace->failure;

	return !e->focus_tried && e->answer->found && e->extracted->from && !explain_has_cause(e) &&
	       e->scope.model == SCHED_SC && !e->scope.in_middle && !e->scope.onward && !f->nblocked && f->thread != SYM_NONE &&
	       mach_length(e->run) <= LONGEST_RUN && !explain_past_deadline(e);
}

static err_t look(struct explanation *e, const struct explain_options *o, void *arg)
{
	(void)arg;
	if (e->extracted->total > MOST_EVENTS)
		return err_new(ERR_NOANSWER, "too many events");
	TRY(explain_solve_window(e, o, false));
	TRY(explain_validate_alternates(e));
	if (e->answer->found && judge_passing(e) != JUDGE_PASSES)
		TRY(explain_serial(e, SIZE_MAX));
	return NULL;
}

err_t explain_focus(struct explanation *e, const struct explain_options *o)
{
	struct explain_scope whole = e->scope;
	double end = e->effort_end, enough = explain_effort(e) + EFFORT;

	if (!is_wanted(e))
		return NULL;
	e->focus_tried = true;
	whole.focus = whole.whole = true;
	whole.window = MOST_EVENTS;
	if (end > 0 && end < enough)
		e->effort_end = enough;
	bool better = explain_try(e, &whole, o, look, NULL);
	e->effort_end = end > 0 && better ? explain_effort(e) + EFFORT : end;
	if (better)
		sym_add_assumption(e->extracted->trace, "Of what threads share only what the failing thread touched was "
				   "looked at: the rest is taken as it was.");
	return NULL;
}
