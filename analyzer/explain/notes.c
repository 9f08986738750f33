/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is said beside the answer: what is missing and why, how far was looked, what had to be assumed. */
#include "analyzer/explain/judge.h"

#include <inttypes.h>

/* Nothing recorded avoids it; `alive` had not ended. */
static void note_later(struct explanation *e, const char *alive)
{
	const struct sym_trace *t = e->extracted->trace;
	struct sched_ref at;
	char *why;
	const struct candidate c = { .e = e, .scope = e->scope, .extracted = e->extracted, .answer = e->answer };

	if (onward_waiting_helps(&c, &at)) {
		char *where = dsp_where(t, at);

		why = xasprintf("no order of what was recorded avoids the failure, but %s had not ended "
				"when it happened: when the other threads go on before %s comes to %s, it "
				"does not fail (the machine executed that)",
				alive, t->threads[at.thread].id, where);
		free(where);
	} else if (judge_fails_always(e)) {
		return; /* judge_conclude() says it */
	} else {
		why = xasprintf("no order of what was recorded avoids the failure; %s had not ended "
				"when it happened, and what it would have done next is not known or, as "
				"far as it could be computed, does not help", alive);
	}
	explain_gap(e, "alternate", why);
	free(why);
}

/* It was said to fail in every order; that is not known after all, and this is why (NULL: it was said). */
static void not_always(struct explanation *e, const char *why)
{
	e->answer->deterministic = false;
	if (why)
		explain_gap(e, "alternate", why);
	free(e->answer->why); /* it was said of every order */
	e->answer->why = NULL;
}

static void note_common_descriptor(struct explanation *e, int fd)
{
	char *why = xasprintf("no order of what the threads do to memory and locks avoids the failure; but they "
			      "also use the same descriptor (%d), and what they do to each other by that is "
			      "not known here", fd);

	not_always(e, why);
	free(why);
}

/* A call that never returned does so in no order that is executed: that they all stand still says nothing. */
static void note_inside_call(struct explanation *e)
{
	const struct ext_inside *in = &e->extracted->inside;

	if (!in->where || e->alternate_proof.by[REPORT_MACHINE].agreed)
		return; /* nobody is there, or an order is known that passes */
	char *why = xasprintf("%s is in %s and does not return; whether another thread would end that wait in another "
			      "order is not known: system calls give their recorded results in every order",
			      e->extracted->trace->threads[in->thread].id, in->where);

	not_always(e, why);
	free(why);
}

static void note_gaps(struct explanation *e)
{
	const struct sched_answer *a = e->answer;
	const struct sym_thread *alive = onward_unended(e->extracted->trace);

	/* A write that was still to come may be the very one that was missing. */
	if (e->answer->deterministic && alive) {
		note_later(e, alive->id);
		not_always(e, NULL);
	}

	if (e->answer->deterministic && e->extracted->from)
		not_always(e, "nothing avoids the failure among the last shared events that were looked at; "
			      "--window looks at more");
	const struct report_proof *machine = &e->failing_proof.by[REPORT_MACHINE];

	/* What is not known to fail is not known to fail always. */
	if (e->answer->deterministic && machine->runs && !machine->agreed)
		not_always(e, "the machine did not come into the failure by this order: whether another one avoids "
			      "it is not known");
	if (e->answer->deterministic && e->extracted->common_fd >= 0)
		note_common_descriptor(e, e->extracted->common_fd);
	if (e->answer->deterministic && enforce_calls_race(e->extracted))
		not_always(e, "no order of what the threads do to memory and locks avoids the failure; but their system "
			      "calls have to do with the same files, and what these do to each other is not known here");
	note_inside_call(e);
	explain_note_effort(e);
	if (!a->found)
		explain_gap(e, "failing schedule",
			    a->why ? a->why : "no order of the events leads to the failure");
	else if (a->why)
		explain_gap(e, a->nalternates || a->deterministic ? "schedule" : "alternate", a->why);
}

/* What only store buffers explain is said, and the machine has none to show it with. */
static void note_buffers(struct explanation *e)
{
	static const char none[] = "the machine executes no store buffers";
	struct report_proof *failing = &e->failing_proof.by[REPORT_MACHINE];
	struct report_proof *alternate = &e->alternate_proof.by[REPORT_MACHINE];

	if (e->scope.model != SCHED_TSO || !e->answer->ndelays)
		return;
	sym_add_assumption(e->extracted->trace,
			   "Only explainable with store buffering (TSO): with every store seen before "
			   "the thread's next load this failure is impossible along the recorded paths.");
	*failing = *alternate = (struct report_proof){ .why = none };
}

/* How far was looked: back into the run, and on behind what the alternate avoids. */
static void note_reach(struct explanation *e)
{
	struct sym_trace *t = e->extracted->trace;

	if (e->extracted->to) {
		char *s = xasprintf("What is shown begins %" PRIu64 " million instructions before the end of a run "
				    "of %" PRIu64 " million; what threads shared only before that is taken as it was.",
				    (mach_length(e->run) - e->extracted->from) / 1000000,
				    mach_length(e->run) / 1000000);

		sym_add_assumption(t, s);
		free(s);
	} else if (e->extracted->base) {
		char *s = xasprintf("The run is long (%" PRIu64 " million instructions): which memory is "
				    "shared was looked for in its last %" PRIu64 " million; what threads "
				    "shared only before that is taken as it was.",
				    mach_length(e->run) / 1000000,
				    (mach_length(e->run) - e->extracted->base) / 1000000);

		sym_add_assumption(t, s);
		free(s);
	}
	char *reach = sched_reach(e->answer);
	if (reach)
		sym_add_assumption(t, reach);
	free(reach);
	if (e->printed)
		sym_add_assumption(t, "Output that occurs only in other orders is assumed to succeed.");
	if (e->timed)
		sym_add_assumption(t, "Clocks that are asked in other orders only are assumed to go on from what they told last.");
	if (e->alternate_proof.by[REPORT_MACHINE].agreed)
		sym_add_assumption(t, "The passing order was executed until every thread had ended, execution "
				      "went beyond what was recorded, or one million instructions after the "
				      "failure point (in a long window as many as it holds, up to twenty "
				      "million). Whether it would fail later is not known.");
}

void explain_notes(struct explanation *e)
{
	const struct candidate c = { .e = e, .extracted = e->extracted, .answer = e->answer };

	note_buffers(e);
	if (e->scope.onward)
		onward_assume(&c);
	if (e->scope.focus)
		sym_add_assumption(e->extracted->trace, "Of what threads share only what the failing thread touched was "
				   "looked at: the rest is taken as it was.");
	if (judge_fails_always(e))
		onward_hold_back(&c);
	note_reach(e);
	note_gaps(e);
}

struct enforce explain_enforce(struct explanation *e)
{
	return (struct enforce){ e->t, e->images, e->extracted, e->answer, e->dsp };
}

void explain_keep_orders(struct explanation *e, const char *trace)
{
	struct enforce what = explain_enforce(e);

	enforce_keep_files(&what, trace);
}
