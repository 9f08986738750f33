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
	if (!e->extracted->base)
		explain_keep_schedules(e, path);
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
	TRY(follow_to_end(path, &x, &e));
	err_t bad = explain_solve(e, &x);
	follow_quiet();
	if (!bad && o->fix)
		try_advice(o->fix, e);
	else if (!bad && !e->t->packed)
		fix_find_trials(path, e->dsp);
	if (!bad)
		bad = report(path, e, o);
	if (!bad)
		keep_beside(path, e);
	if (!bad && !e->answer->found)
		bad = err_new(ERR_NOANSWER, "%s", e->answer->why ? e->answer->why :
						  "no failing schedule was found");
	explanation_free(e);
	return bad;
}

/* Of a trace that this very csched recorded: its program is run, so nothing is confined. */
int explain_and_try(const char *trace, const struct fix_request *fix)
{
	struct options o = { .fix = fix };

	report_options_init(&o.report);
	return cmd_fail("explain", explain(trace, &o));
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

int cmd_explain(int argc, char **argv)
{
	struct options o = { 0 };
	const struct cmd_option options[] = {
		SOLVING_OPTIONS(&o.solving,
				"look at the last N shared events only (default: grows as needed)"),
		{ "why", 0, NULL, CMD_FLAG, &o.why, "also say how the answer was found: every attempt" },
		CONFINED_OPTIONS,
		{ 0 },
	};
	struct cmd_spec spec = {
		.name = "explain", .usage = "[options] TRACE",
		.summary = "Says why a recorded run failed: the failing order, its root cause, and an\n"
			   "order that does not fail, side by side.",
		.options = options,
	};
	int status;
	const char *path = solving_parse(&spec, &o.report, argc, argv, &status);

	if (!path)
		return status;
	status = cmd_fail("explain", report_options_hold(&o.report));
	return status ? status : confined_run(&(struct confined){ .command = "explain", .input = path,
								   .timeout = o.solving.timeout },
					      explain_confined, &(struct call){ path, &o });
}
