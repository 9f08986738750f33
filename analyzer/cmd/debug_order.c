/* SPDX-License-Identifier: GPL-2.0-or-later */
/* csched debug --alternate and --failing: orders that the report shows, as runs to stand in. */
#include "analyzer/cmd/debug_order.h"

#include "analyzer/cmd/explain.h"
#include "analyzer/cmd/follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Why there is no such order; NULL: there is one, and it was executed as the report says. */
static err_t is_missing(const struct explanation *e, bool failing)
{
	const struct sched_answer *a = e->answer;
	const struct report_proof *p = failing ? &e->failing_proof.by[REPORT_MACHINE] : &e->alternate_proof.by[REPORT_MACHINE];

	if (!a || !a->found)
		return err_new(ERR_NOANSWER, "no failing order was found%s%s: csched explain says more", a && a->why ? ": " : "",
			       a && a->why ? a->why : "");
	if (!failing && !a->nalternates)
		return err_new(ERR_NOANSWER, "no passing order was found: csched explain says more");
	if (!p->agreed)
		return err_new(ERR_NOANSWER, "the %s order could not be executed%s%s", failing ? "failing" : "passing",
			       p->why ? ": " : "", p->why ? p->why : "");
	return NULL;
}

/* The event's place in the sequence that was executed; SIZE_MAX: it is not in it. */
static size_t place_of(const struct sched_order *o, struct sched_ref ref)
{
	for (size_t i = 0; i < o->n; i++)
		if (o->refs[i].thread == ref.thread && o->refs[i].index == ref.index)
			return i;
	return SIZE_MAX;
}

/* Where the failure is decided; where nothing is known of that, the end. */
static uint64_t first_place(struct dbg *d, bool failing, const struct mach_outcome *out)
{
	const struct trc_failure *f = d->t->failure;
	uint64_t time = out->past;

	if (failing || !out->past || !f || f->thread == UINT32_MAX)
		return d->end;
	mach_thread_time(d->run, f->thread, out->past, true, &time);
	return time;
}

/* Numbered as the report shows them. Its points were passed at out->times. */
static void add_events(struct dbg *d, const struct explanation *e, bool failing, const struct mach_outcome *out)
{
	const struct dsp_side *side = &e->dsp->side[failing ? DSP_FAILING : DSP_ALTERNATE];
	const struct sched_order *order = failing ? &e->answer->failing : &e->answer->alternates[0].order;
	size_t npoints, *of = xcalloc(order->n + 1, sizeof *of);
	struct explain_report r;

	free(explain_points(e->extracted, order, &npoints, of));
	explain_report_init(&r, NULL, (struct explanation *)e);
	for (size_t i = 0; i < side->nevents; i++) {
		struct sched_ref ref = side->events[i].ref;
		size_t at = place_of(order, ref), point = at == SIZE_MAX ? 0 : of[at];
		uint64_t time = point && point <= out->points ? out->times[point - 1] : d->end;
		bool fails = e->extracted->trace->threads[ref.thread].events[ref.index].op == SYM_FAIL;

		/* Behind its instruction the order noticed: before it is where one wants to stand. */
		if (fails)
			time = first_place(d, failing, out);
		else if (point)
			mach_thread_time(d->run, ref.thread, time, true, &time);
		if (point || fails)
			dbg_event(d, (struct dbg_place){ time, ref.thread }, report_event_line(&r.report, failing ? DSP_FAILING : DSP_ALTERNATE, &side->events[i]));
	}
	explain_report_free(&r);
	free(of);
}

static void tell(const struct dbg *d, const struct mach_outcome *out, uint64_t stand)
{
	fprintf(stderr, "csched debug: this is the %s order, which csched executed; it is not the recorded one. How it ends: %s.\n",
		d->order, out->why ? out->why : "as the run does");
	if (stand != d->end)
		fprintf(stderr, "You stand where the failing thread takes the other way.\n");
	if (out->left)
		fprintf(stderr, "The order ends early: the result of the next system call is not known.\n");
}

err_t debug_order_open(const char *path, bool failing, struct explain_options *x, struct explanation **out, struct dbg *d,
		       uint64_t *stand)
{
	struct mach_outcome end = { 0 };
	struct explanation *e;

	explain_options_init(x);
	x->wants_cause = true;
	TRY(follow_to_end(path, x, &e));
	*out = e;
	err_t bad = explain_solve(e, x);
	follow_quiet();
	TRY(bad);
	TRY(is_missing(e, failing));
	TRY(explain_keep_order(e, failing, &end));
	bad = dbg_init(d, e->t, e->images, e->run, &e->followed);
	d->order = failing ? "failing" : "passing";
	d->order_fails = end.kind == MACH_OUT_FAILED || end.kind == MACH_OUT_BLOCKED;
	d->order_thread = end.thread;
	if (!bad) {
		add_events(d, e, failing, &end);
		*stand = first_place(d, failing, &end);
		tell(d, &end, *stand);
	}
	mach_outcome_free(&end);
	return bad;
}
