/* How long an explanation may take: seconds when they were asked for, otherwise effort that is counted. */
#include "analyzer/explain/candidate.h"

#include <time.h>


static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double explain_clock(void)
{
	return seconds(CLOCK_MONOTONIC);
}

/* Of this process: what other programs do on the machine changes nothing. */
static double computed(void)
{
	return seconds(CLOCK_PROCESS_CPUTIME_ID);
}

void explain_options_init(struct explain_options *o)
{
	*o = (struct explain_options){ .effort = LIMIT_EFFORT, .alternates = 1, .model = SCHED_SC };
}

double explain_effort(const struct explanation *e)
{
	return e->solved + (double)(mach_worked(e->run) + e->ordered_insns) / LIMIT_INSNS;
}

double explain_effort_again(const struct explanation *e)
{
	return (double)mach_length(e->run) / LIMIT_INSNS;
}

void explain_allow_effort(struct explanation *e, const struct explain_options *o)
{
	if (o->timeout > 0 || o->effort <= 0)
		return;
	e->effort = o->effort + LIMIT_EFFORT_AGAIN * explain_effort_again(e);
	if (e->effort > LIMIT_MOST_EFFORT)
		e->effort = o->effort > LIMIT_MOST_EFFORT ? o->effort : LIMIT_MOST_EFFORT;
	e->effort_end = explain_effort(e) + e->effort;
	e->computed_end = computed() + LIMIT_COMPUTING * e->effort;
}

bool explain_computed_long(const struct explanation *e)
{
	return e->computed_end > 0 && computed() >= e->computed_end;
}

static bool tried_hard(const struct explanation *e)
{
	return (e->effort_end > 0 && explain_effort(e) >= e->effort_end) || explain_computed_long(e);
}

/* The limit that nobody asked for leaves at least the first scope's answer. */
static bool tried_enough(const struct explanation *e)
{
	return e->attempts.n && tried_hard(e);
}

bool explain_past_deadline(const struct explanation *e)
{
	return e->deadline > 0 && explain_clock() >= e->deadline;
}

bool explain_out_of_time(const struct explanation *e)
{
	return explain_past_deadline(e) || tried_enough(e);
}

void explain_note_effort(struct explanation *e)
{
	if (!tried_hard(e))
		return;
	char *why = explain_computed_long(e) ?
		xasprintf("stopped after %.0f seconds of computing, which depends on the machine: what is "
			  "shown is what was known by then; --timeout=SECONDS gives it more",
			  LIMIT_COMPUTING * e->effort) :
		xasprintf("stopped after an effort of about %.0f seconds of computing, counted in steps: "
			  "what is shown is what was known by then; --timeout=SECONDS gives it more", e->effort);

	explain_gap(e, "schedule", why);
	free(why);
}
