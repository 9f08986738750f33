/*
 * What is hard to solve is often easy to execute: where dozens of orderings cause a failure together the
 * search for the fewest of them takes half a minute, and executing (serial.c, history.c) shows an order that does
 * not fail in a second. So the solver is given a little time at first, then executing is tried, in turns, and
 * only where neither answers the solver has all the time that is left.
 */
#include "analyzer/explain/judge.h"

/* Effort of the first try; most answers take less than a tenth of it. And of the second, before much is extracted. */
#define SOON 1
#define LATER 3

/* All these pairs are needed together: nobody reads more. */
#define MOST_PAIRS 3

/* The search was cut short before it could name a cause that can be read, of an order that was executed. */
static bool is_hard(const struct explanation *e)
{
	const struct sched_answer *a = e->answer;

	return a->found && !a->deterministic && ((a->timed_out && !explain_has_cause(e)) || a->ncause > MOST_PAIRS) &&
	       e->failing_proof.by[REPORT_MACHINE].agreed && !explain_out_of_time(e);
}

bool explain_executed(const struct explanation *e)
{
	const struct sched_answer *a = e->answer;

	return a->nalternates && a->alternates[0].executed && judge_is_confirmed(e);
}

/* Solves within so much effort; *hard: that was not enough. */
static err_t solve_within(struct explanation *e, const struct explain_options *o, double effort, bool *hard)
{
	e->soon = effort;
	TRY(explain_solve_window(e, o, false));
	*hard = is_hard(e);
	return NULL;
}

/* What executing found is an answer; the solver may still have a better one, of the same window. The better one stays. */
static err_t solve_better(struct explanation *e, const struct explain_options *o)
{
	struct explain_candidate was = explain_put_aside(e);
	bool hard;

	e->extracted = was.extracted;
	was.extracted = NULL;
	err_t bad = solve_within(e, o, LATER, &hard);
	if (!bad && !hard)
		bad = explain_validate_alternates(e);
	if (!bad && judge_answer(e) == JUDGE_PROVED) {
		explain_forget(&was);
		return NULL;
	}
	was.extracted = e->extracted;
	e->extracted = NULL;
	explain_put_back(e, &was);
	return bad;
}

static err_t solve_in_turns(struct explanation *e, const struct explain_options *o, bool chosen)
{
	bool hard;

	TRY(solve_within(e, o, SOON, &hard));
	if (!hard)
		return NULL;
	e->answer->cause_minimal = false; /* what executing finds is to be told whatever it was */
	TRY(explain_serial(e, SIZE_MAX));
	if (judge_is_confirmed(e))
		return solve_better(e, o);
	TRY(solve_within(e, o, LATER, &hard));
	return hard && e->answer->timed_out && !chosen ? explain_look_before(e, o) : NULL;
}

err_t explain_solve_soon(struct explanation *e, const struct explain_options *o, bool chosen)
{
	/* What was used had been freed: that another order of anything avoids it says little. */
	if (e->extracted->misuse.kind)
		return explain_solve_window(e, o, false);

	err_t bad = solve_in_turns(e, o, chosen);

	e->soon = 0;
	if (bad || !e->answer->timed_out)
		return bad;
	if (!judge_is_confirmed(e))
		return explain_solve_window(e, o, false);
	e->answer->timed_out = false;
	return NULL;
}
