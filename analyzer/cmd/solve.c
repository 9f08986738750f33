/* csched solve: schedule, root cause and passing order of a symbolic trace. */
#include "analyzer/cmd/confined.h"
#include "analyzer/cmd/solving.h"
#include "common/door.h"

#include "analyzer/report/report_options.h"
#include "analyzer/symtrace/symbiosis.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
	struct solving solving;
	bool no_times, stats;
	const char *from;
	struct report_options report;
};

/* ^C asks the solver to stop; a second one ends us. */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
	interrupted = 1;
	signal(signal_number, SIG_DFL);
}

static bool on_progress(void *arg, const char *phase, double part)
{
	struct progress *p = arg;

	(void)part;
	if (p->what != phase) {
		progress_end(p);
		*p = (struct progress){ .what = phase };
	}
	progress_at(p, 0, 0);
	return interrupted;
}

static err_t read_trace(const char *path, const struct options *o, struct sym_trace **t)
{
	FILE *f;
	err_t e;

	if (o->from && strcmp(o->from, "symbiosis") && strcmp(o->from, "sym"))
		return err_new(ERR_USAGE, "--from is sym or symbiosis, not '%s'", o->from);
	if (o->from && !strcmp(o->from, "symbiosis"))
		return symbiosis_read(path, t);
	int fd = strcmp(path, "-") ? door_open(DOOR_TRACE, path) : -1;
	f = !strcmp(path, "-") ? stdin : fd < 0 ? NULL : fdopen(fd, "r");
	if (!f)
		return err_errno("%s", path);
	e = sym_read(f, path, t);
	if (f != stdin)
		fclose(f);
	return e;
}

/* For make bench and the curious: one line per number. */
static void print_stats(const struct sched_answer *a)
{
	size_t same = 0;

	for (size_t i = 0; i < a->nalternates; i++)
		same += !a->alternates[i].path_differs;
	fprintf(stderr, "events %zu\nwindow %zu\nconstraints %zu\nvariables %zu\n",
		a->stats.events, a->stats.window, a->stats.constraints, a->stats.variables);
	fprintf(stderr, "found %d\nswitches %zu\nswitches-reduced %zu\n", a->found,
		a->recorded.switches, a->failing.switches);
	fprintf(stderr, "core %zu\ncause %zu\nminimal %d\n", a->stats.core_plain, a->ncause,
		a->cause_minimal);
	fprintf(stderr, "alternates %zu\nalternates-same-path %zu\npairs-tried %zu\n",
		a->nalternates, same, a->stats.pairs_tried);
	fprintf(stderr, "t-fail %.3f\nt-csr %.3f\nt-root %.3f\nt-alt %.3f\n", a->stats.t_fail,
		a->stats.t_csr, a->stats.t_root, a->stats.t_alt);
	fprintf(stderr, "peak-mb %.1f\n", solving_peak_bytes() / 1048576.0);
}

static err_t report(struct sym_trace *t, const struct sched_answer *a, struct options *o)
{
	struct report_source *source = report_source_new();
	struct dsp *d = NULL;
	struct report r;
	err_t e = dsp_build(t, a, &d);
	char *reach = sched_reach(a);

	if (reach)
		sym_add_assumption(t, reach);
	free(reach);
	if (!e) {
		report_init(&r, t, a, d);
		r.source_line = report_source_line;
		r.source_arg = source;
		r.peak_bytes = solving_peak_bytes();
		e = report_emit(&o->report, &r);
	}
	dsp_free(d);
	report_source_free(source);
	return e;
}

static err_t solve(const char *path, struct options *o)
{
	struct progress progress = { 0 };
	struct sched_options s;
	struct sched_answer *a = NULL;
	struct sym_trace *t = NULL;
	err_t e;

	TRY(solving_options(&o->solving, &s));
	s.use_times = !o->no_times;
	TRY(read_trace(path, o, &t));
	s.progress = on_progress;
	s.progress_arg = &progress;
	signal(SIGINT, on_interrupt);
	e = sched_solve(t, &s, &a);
	signal(SIGINT, SIG_DFL);
	progress_end(&progress);
	if (!e)
		e = report(t, a, o);
	if (!e && o->stats)
		print_stats(a);
	if (!e && !a->found)
		e = err_new(ERR_NOANSWER, "%s: %s", path,
			    a->why ? a->why : "no failing schedule was found");
	sched_answer_free(a);
	sym_trace_free(t);
	return e;
}

struct call {
	const char *path;
	struct options *o;
};

static int solve_confined(void *arg)
{
	struct call *c = arg;

	return cmd_fail("solve", solve(c->path, c->o));
}

int cmd_solve(int argc, char **argv)
{
	struct options o = { 0 };
	const struct cmd_option options[] = {
		SOLVING_OPTIONS(&o.solving, "start with a window of N free events (default: chosen)"),
		{ "no-times", 0, NULL, CMD_FLAG, &o.no_times,
		  "ignore time stamps" },
		{ "from", 0, "FORMAT", CMD_TEXT, &o.from,
		  "sym (default), or symbiosis: a directory of the research prototype" },
		{ "stats", 0, NULL, CMD_FLAG, &o.stats,
		  "print solver statistics on standard error" },
		CONFINED_OPTIONS,
		{ 0 },
	};
	struct cmd_spec spec = {
		.name = "solve", .usage = "[options] FILE.sym",
		.summary = "Finds the failing schedule of a symbolic trace, its root cause, and a\n"
			   "passing order. FILE - is standard input.",
		.options = options,
	};
	int status;
	const char *path = solving_parse(&spec, &o.report, argc, argv, NULL, &status);

	if (!path)
		return status;
	status = cmd_fail("solve", report_options_hold(&o.report));
	return status ? status : confined_run(&(struct confined){ .command = "solve", .input = path,
								   .needs_input = !strcmp(path, "-"),
								   .timeout = o.solving.timeout },
					      solve_confined, &(struct call){ path, &o });
}
