/* csched explain: from a trace to a report worth attaching. */
#include "analyzer/cmd/explain.h"
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/confined.h"
#include "analyzer/cmd/fix.h"
#include "analyzer/cmd/follow.h"
#include "analyzer/cmd/redacted.h"
#include "analyzer/cmd/show.h"
#include "analyzer/cmd/solving.h"

#include "analyzer/fix/fix.h"
#include "analyzer/report/report_options.h"
#include "analyzer/trace_image.h"
#include "common/newfile.h"

#include <stdio.h>
#include <string.h>

struct options {
	struct solving solving;
	struct report_options report;
	bool why;
	const struct fix_request *fix; /* NULL: the program is not at hand */
};

static const char *source_line(void *images, const char *file, unsigned line)
{
	return img_source_line(images, file, line);
}

/* Now, not when a report shows them: what there is to say about them stands among the assumptions. */
static void read_sources(const struct explanation *e)
{
	const struct sym_trace *t = e->extracted->trace;

	for (size_t i = 0; i < t->nstacks; i++)
		if (t->stacks[i].n)
			img_source_line(e->images, t->stacks[i].frames[0].file, t->stacks[i].frames[0].line);
}

/* What the report assumes besides what the symbolic trace says. */
static void collect_assumptions(struct explain_report *r, const struct explanation *e)
{
	const char *const *notes;

	read_sources(e);
	size_t n = img_notes(e->images, &notes);

	for (size_t i = 0; i < n; i++)
		vec_push(&r->assumptions, notes[i]);
	for (size_t i = 0; i < e->followed.nnotes; i++)
		vec_push(&r->assumptions, e->followed.notes[i]);
	for (size_t i = 0; i < e->followed.nundetermined; i++)
		vec_push(&r->assumptions, e->followed.undetermined[i]);
}

/* Where the machine executes an event; those behind the end of the record are nowhere in the run. */
static bool position(void *arg, uint32_t thread, uint32_t index, uint64_t *insns)
{
	const struct explanation *e = arg;
	const struct ext_result *x = e->extracted;

	if (!x->points || (x->computed && index >= x->computed[thread]) || index >= x->trace->threads[thread].nevents)
		return false;
	*insns = x->points[thread][index].insn;
	return true;
}

/* Use of what is no more has a rule of its own at code hosts. */
static const char *rule_of(const struct explanation *e)
{
	static const char *const rules[] = {
		[EXT_MISUSE_FREED] = "use-after-free", [EXT_MISUSE_LEFT] = "use-after-return",
		[EXT_MISUSE_DESTROYED] = "use-after-destroy", [EXT_MISUSE_CLOSED] = "use-after-close",
	};
	const struct ext_misuse *m = &e->extracted->misuse;

	return m->kind == EXT_MISUSE_FREED && m->again ? "double-free" : rules[m->kind];
}

void explain_report_init(struct explain_report *x, const char *path, struct explanation *e)
{
	struct report *r = &x->report;
	const struct trc_failure *f = e->t->failure;

	*x = (struct explain_report){ 0 };
	report_init(r, e->extracted->trace, e->answer, e->dsp);
	collect_assumptions(x, e);
	r->failing_proof.by[REPORT_MACHINE] = e->failing_proof.by[REPORT_MACHINE];
	r->alternate_proof.by[REPORT_MACHINE] = e->alternate_proof.by[REPORT_MACHINE];
	r->phases = e->phases.v;
	r->nphases = e->phases.n;
	r->gaps = e->gaps.v;
	r->ngaps = e->gaps.n;
	r->confidence = e->confidence;
	r->confidence_text = e->confidence_text;
	r->attempts = e->attempts.v;
	r->nattempts = e->attempts.n;
	r->assumptions = x->assumptions.v;
	r->nassumptions = x->assumptions.n;
	r->peak_bytes = solving_peak_bytes();
	r->run_insns = mach_length(e->run);
	r->executed_insns = mach_worked(e->run) + e->ordered_insns;
	r->trace_path = path;
	r->position = position;
	r->position_arg = e;
	r->source_line = source_line;
	r->source_arg = e->images;
	r->failure.command = trc_identity(e->t, "command");
	r->failure.start = x->start = trace_start_command(e->t);
	r->failure.when = show_when(e->t, x->when, sizeof x->when) ? x->when : NULL;
	x->signal = f->signal ? show_signal(f->signal) : NULL;
	r->failure.signal = x->signal;
	r->failure.rule = rule_of(e);
	r->failure.misuse = x->misuse = explain_misuse(e);
	r->failure.has_address = f->rec.flags == TRC_FAIL_SIGNAL;
	r->failure.address = f->address;
}

void explain_report_free(struct explain_report *r)
{
	free(r->signal);
	free(r->start);
	free(r->misuse);
	vec_free(&r->assumptions);
}

static err_t report(const char *path, struct explanation *e, struct options *o)
{
	struct explain_report r;

	explain_report_init(&r, path, e);
	r.report.show_attempts = o->why;
	err_t bad = report_emit(&o->report, &r.report);
	explain_report_free(&r);
	return bad;
}

static err_t write_fingerprint(FILE *f, void *fingerprint)
{
	fprintf(f, "%s\n", (char *)fingerprint);
	return NULL;
}

/* Kept beside the streams: `csched info` shows it, `csched replay --native` enforces it. */
static void keep_beside(const char *path, struct explanation *e)
{
	if (e->t->packed || !e->answer->found)
		return;
	/* Without occurrences nothing can be enforced: csched replay --native finds them itself. */
	if (!e->extracted->base && e->t->epoch <= 1)
		explain_keep_orders(e, path);
	char *name = xasprintf("%s/fingerprint", path);
	/* A trace that cannot be written to is explained all the same. */
	err_free(newfile_write(name, NEWFILE_DERIVED, 0666, write_fingerprint, e->dsp->fingerprint));
	free(name);
}

/* That it could not be tried is no reason to have no report. */
static void try_advice(const struct fix_request *fix, struct explanation *e)
{
	err_t bad = e->dsp->hint.text ? fix_try(fix, e) : NULL;

	if (bad)
		explain_gap(e, "trying the advice", bad->msg);
	err_free(bad);
}

/* Instructions: what is cheaper to follow than to think about is no reason to know less of what came before. */
#define STRETCH_MIN 4000000u

/* Of a flight recorder's trace whose epochs are short, several: a stretch as it is looked at in a run that has its beginning. */
static err_t follow_stretch(const char *path, struct explain_options *x, struct explanation **out)
{
	uint32_t newest, before;
	bool stays = trc_epoch_wanted;

	TRY(follow_to_end(path, x, out));
	newest = (*out)->t->epoch;
	for (uint32_t back = 1; !stays && (*out)->followed.insns < STRETCH_MIN; back *= 2) {
		struct explanation *longer;

		before = trc_epochs_before((*out)->t, back);
		if (!before)
			break;
		trc_epoch_wanted = before;
		err_t bad = follow_to_end(path, x, &longer);

		if (bad) {
			err_free(bad);
			break;
		}
		explanation_free(*out);
		*out = longer;
	}
	trc_epoch_wanted = (*out)->t->epoch == newest && !stays ? 0 : (*out)->t->epoch;
	return NULL;
}

/* seconds: what solving may take; 0: what it needs. */
static err_t follow_and_solve(const char *path, struct explain_options *x, double seconds, struct explanation **e)
{
	TRY(follow_stretch(path, x, e));
	double until = explain_clock() + seconds, most = (*e)->deadline;

	if (seconds > 0 && trc_epoch_before((*e)->t) && (!most || until < most))
		(*e)->deadline = until;
	err_t bad = explain_solve(*e, x);

	if (bad) {
		explanation_free(*e);
		*e = NULL;
	}
	return bad;
}

/* How good an answer is. That it fails in every order says least: what made it fail may lie before the checkpoint. */
static int worth(const struct explanation *e)
{
	static const int of[] = { [REPORT_NO_ANSWER] = 0, [REPORT_ALWAYS] = 1, [REPORT_UNCONFIRMED] = 2,
				  [REPORT_CONFIRMED] = 3, [REPORT_PROVED] = 4 };

	return e->answer->found ? of[e->confidence] : 0;
}

/* The epoch before the one that is read; 0: none. */
static uint32_t earlier_epoch(const char *path)
{
	struct trc *t = NULL;
	err_t bad = trc_open(path, TRC_TOLERANT, &t);
	uint32_t before = bad ? 0 : trc_epoch_before(t);

	err_free(bad);
	trc_close(t);
	return before;
}

#define FIRST_TRIES 4u /* epochs: what is wrong with more of them is wrong with the trace */

/* From the newest epoch that has an answer; of those that have none the newest says why. */
static err_t find_first(const char *path, struct explain_options *x, double seconds, struct explanation **out)
{
	bool stays = trc_epoch_wanted;
	err_t first = follow_and_solve(path, x, seconds, out), bad = first;

	for (unsigned i = 1; bad && !stays && i < FIRST_TRIES; i++) {
		trc_epoch_wanted = earlier_epoch(path);
		if (!trc_epoch_wanted)
			break;
		bad = follow_and_solve(path, x, seconds, out);
		if (!bad)
			err_free(first);
		else if (bad != first)
			err_free(bad);
	}
	return bad ? first : NULL;
}

/* Both orders were executed: what made the run fail does not lie before the checkpoint. */
static bool has_cause_there(const struct explanation *e)
{
	return worth(e) >= 3;
}

#define FIRST_SECONDS 6.0 /* of solving, where one can still go back; each time twice as long */
#define BACK_SECONDS 60.0 /* without --timeout: after this one does not */

/*
 * Of a flight recorder's trace from the newest epoch that can be followed; and from an earlier one while the cause is not in what was
 * seen so far: so many epochs more each time that what has been done in vain is at most as much again. What cannot be followed from
 * there changes nothing about the answer that is there.
 */
static err_t find_cause(const char *path, struct explain_options *x, struct explanation **out)
{
	double since = explain_clock(), most = x->timeout, seconds = trc_epoch_wanted ? 0 : FIRST_SECONDS;
	bool stays = trc_epoch_wanted;

	TRY(find_first(path, x, seconds, out));
	for (uint32_t back = 1; !stays && !has_cause_there(*out) && trc_epoch_before((*out)->t); back *= 2) {
		double spent = explain_clock() - since;
		struct explanation *e;

		if (spent > (most > 0 ? most / 2 : BACK_SECONDS))
			break;
		seconds *= 2;
		x->timeout = most > 0 ? most - spent : 0;
		trc_epoch_wanted = trc_epochs_before((*out)->t, back);
		err_t bad = follow_and_solve(path, x, seconds, &e);

		if (bad) {
			err_free(bad);
			break;
		}
		struct explanation *worse = worth(e) >= worth(*out) ? *out : e;

		*out = worse == e ? *out : e;
		explanation_free(worse);
		if (worse == e)
			break;
	}
	trc_epoch_wanted = (*out)->t->epoch; /* who reads the trace again sees the same */
	return NULL;
}

static err_t explain(const char *path, struct options *o)
{
	struct explain_options x;
	struct sched_options s;
	struct explanation *e;

	if (redacted_is(path))
		return redacted_report(path, &o->report);
	explain_options_init(&x);
	TRY(solving_options(&o->solving, &s));
	x.window = s.window;
	x.timeout = s.timeout;
	x.alternates = s.alternates;
	x.model = s.model;
	x.wants_cause = true;
	err_t bad = find_cause(path, &x, &e);

	follow_quiet();
	if (bad)
		return bad;
	if (o->fix)
		try_advice(o->fix, e);
	else if (!e->t->packed)
		fix_find_trials(path, e->dsp);
	bad = report(path, e, o);
	if (!bad)
		keep_beside(path, e);
	if (!bad && !e->answer->found)
		bad = err_new(ERR_NOANSWER, "%s", e->answer->why ? e->answer->why :
						  "no failing schedule was found");
	explanation_free(e);
	return bad;
}

struct call {
	const char *path;
	struct options *o;
};

static int explain_confined(void *arg)
{
	struct call *c = arg;

	return cmd_fail("explain", explain(c->path, c->o));
}

/* Its program is run, too: by a helper outside. */
int explain_and_try(const char *trace, struct fix_request *fix)
{
	struct options o = { .fix = fix };

	report_options_init(&o.report);
	return fix_confined(fix, "explain", explain_confined, &(struct call){ trace, &o });
}

static int try_on(const char *path, char **program, struct options *o)
{
	struct fix_request fix = {
		.trace = path, .argv = program, .runs = FIX_TRIED_RUNS, .time = FIX_TRIED_SECONDS, .json = o->report.json,
	};

	if (redacted_is(path))
		return cmd_fail("explain", err_new(ERR_USAGE, "%s is redacted: it holds findings and nothing to try advice with", path));
	o->fix = &fix;
	return fix_confined(&fix, "explain", explain_confined, &(struct call){ path, o });
}

int cmd_explain(int argc, char **argv)
{
	struct options o = { 0 };
	const struct cmd_option options[] = {
		SOLVING_OPTIONS(&o.solving,
				"look at the last N shared events only (default: grows as needed)"),
		{ "why", 0, NULL, CMD_FLAG, &o.why, "also list every attempt at an answer" },
		EPOCH_OPTION,
		CONFINED_OPTIONS,
		{ 0 },
	};
	struct cmd_spec spec = {
		.name = "explain", .usage = "[options] TRACE [-- PROGRAM [ARGUMENT ...]]",
		.summary = "Says why a recorded run failed: the failing order, its root cause, and a\n"
			   "passing order, side by side. With the program at hand the advice is tried on it.",
		.options = options,
	};
	int status;
	char **program;
	const char *path = solving_parse(&spec, &o.report, argc, argv, &program, &status);

	if (!path)
		return status;
	status = cmd_fail("explain", report_options_hold(&o.report));
	if (!status && program)
		return try_on(path, program, &o);
	return status ? status : confined_run(&(struct confined){ .command = "explain", .input = path,
								   .timeout = o.solving.timeout },
					      explain_confined, &(struct call){ path, &o });
}
