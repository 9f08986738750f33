/*
 * The HTML report: one file, no network, readable without its script, which
 * draws the arrows and adds what is to be worked with. The page forbids itself everything else (CSP), so that
 * even a hole in the escaping could not run a trace's strings.
 */
#include "analyzer/report/html.h"

#include <string.h>

#define SIDE_BY_SIDE 3 /* threads; with more each schedule gets the whole width */

static void chip(FILE *f, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	fprintf(f, "<li>%s <b>", name);
	html_text(f, value);
	fputs("</b></li>\n", f);
}

static void top(FILE *f, const struct report *r, const char *program, const char *headline)
{
	char threads[32], signal[16];

	snprintf(threads, sizeof threads, "%zu", r->trace->nthreads);
	fputs("<header>\n<p class=\"eyebrow\">csched report</p>\n<h1><span class=\"program\">", f);
	html_text(f, program);
	fputs("</span>: ", f);
	html_sentence(f, headline);
	fputs("</h1>\n", f);
	if (r->failure.misuse) {
		fputs("<p class=\"misuse\">", f);
		html_sentence(f, r->failure.misuse);
		fputs("</p>\n", f);
	}
	char *sure = rep_confidence(r);

	if (sure) {
		fputs("<p class=\"confidence\">", f);
		html_sentence(f, sure);
		fputs("</p>\n", f);
	}
	free(sure);
	fputs("<ul class=\"chips\">\n", f);
	chip(f, "failure", rep_failure_kind(r));
	chip(f, "signal", rep_signal(r, signal));
	chip(f, "threads", threads);
	chip(f, "recorded", r->failure.when);
	chip(f, "command", r->failure.command);
	chip(f, "fingerprint", r->dsp->fingerprint);
	fputs("</ul>\n</header>\n<main>\n", f);
}

static void cause(FILE *f, const struct report *r)
{
	const struct dsp *d = r->dsp;
	char **why;
	size_t n;

	if (d->deterministic || r->answer->tried_always) {
		fputs("<section class=\"card cause\" id=\"cause\"><h2>Root cause</h2>\n<p>", f);
		html_text(f, d->note);
		fputs("</p></section>\n", f);
	}
	if (!d->npairs)
		return;
	n = rep_causes(r, &why);
	fprintf(f, "<section class=\"card cause\" id=\"cause\"><h2>%s</h2>\n<p>%s ",
		r->confidence == REPORT_UNCONFIRMED ? "Possible cause" : "Root cause", rep_because(r));
	if (d->npairs == 1) {
		html_sentence(f, why[0]);
		fputs(".</p>\n", f);
	} else if (r->answer->cause_minimal) {
		fputs("all of these happened; without any one of them it need not fail:</p>\n<ol>\n", f);
	} else {
		fputs("of these (not all may be needed):</p>\n<ol>\n", f);
	}
	for (size_t i = 0; i < n; i++) {
		if (d->npairs > 1) {
			fputs("<li>", f);
			html_sentence(f, why[i]);
			fputs("</li>\n", f);
		}
		free(why[i]);
	}
	free(why);
	fputs(d->npairs > 1 ? "</ol>\n" : "", f);
	if (d->has_alternate && r->answer->alternates[0].path_differs)
		fputs("<p>In the passing order, execution diverges here and does not reach this failure.</p>\n",
		      f);
	fputs("</section>\n", f);
}

static void trial(FILE *f, const struct dsp_hint *h)
{
	char *text = dsp_trial_text(&h->trial);

	if (text) {
		fputs("<p class=\"tried\">", f);
		html_sentence(f, text);
		fputs("</p>\n", f);
	}
	free(text);
}

static void fix(FILE *f, const struct report *r)
{
	if (!r->dsp->hint.text)
		return;
	fputs("<section class=\"card fix\" id=\"fix\"><h2>", f);
	html_text(f, rep_advice_heading(r->dsp));
	fputs("</h2>\n<p>", f);
	html_sentence(f, r->dsp->hint.text);
	fputs("</p>\n", f);
	trial(f, &r->dsp->hint);
	if (r->dsp->also.text) {
		fputs("<p>", f);
		html_text(f, rep_second_advice(&r->dsp->also));
		html_sentence(f, r->dsp->also.text);
		fputs("</p>\n", f);
		trial(f, &r->dsp->also);
	}
	fputs("</section>\n", f);
}

static void missing(FILE *f, const struct report *r)
{
	char **why;
	size_t n = rep_missing(r, &why);

	if (n)
		fputs("<section class=\"card note\" id=\"missing\"><h2>What is missing</h2>\n", f);
	for (size_t i = 0; i < n; i++) {
		fputs("<p>", f);
		html_text(f, why[i]);
		fputs("</p>\n", f);
		free(why[i]);
	}
	if (n)
		fputs("</section>\n", f);
	free(why);
}

/* What the marks in the schedules mean; each line looks like what it explains. */
static void legend(FILE *f)
{
	static const char *const lines[][2] = {
		{ "flow", "the read sees the value of this write" },
		{ "flow same", "the same in both orders" },
		{ "initial", "the read sees the initial value" },
		{ "wait", "in a deadlock: which thread waits for a lock, and where it was acquired" },
		{ "varies", "a value that differs between the two orders" },
		{ "context", "shown for orientation; the same in both orders" },
		{ "region", "should be one atomic step" },
		{ "outcome", "where the run fails, or passes that point" },
	};

	fputs("<details class=\"card legend\" id=\"legend\"><summary>Legend</summary><ul class=\"plain\">\n", f);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		fprintf(f, "<li><span class=\"sample %s\"></span>%s</li>\n", lines[i][0], lines[i][1]);
	fputs("</ul></details>\n", f);
}

static void schedules(FILE *f, const struct report *r)
{
	bool both = r->dsp->has_alternate;

	if (!r->dsp->side[DSP_FAILING].nevents)
		return;
	fputs("<div class=\"tools\"><button type=\"button\" id=\"open-all\" aria-pressed=\"false\">"
	      "Stacks and source of all events</button></div>\n", f);
	fprintf(f, "<section id=\"schedules\" class=\"schedules%s\" aria-label=\"Schedules\">\n",
		both && html_lane_count(r) <= SIDE_BY_SIDE ? " both" : "");
	for (int w = 0; w <= both; w++)
		html_schedule(f, r, w);
	fputs("</section>\n", f);
	legend(f);
}

static void command(FILE *f, char *text)
{
	if (text) {
		fputs("<div class=\"command\"><pre><code>", f);
		html_text(f, text);
		fputs("</code></pre></div>\n", f);
	}
	free(text);
}

static void again(FILE *f, const struct report *r)
{
	char *replay = rep_replay(r), *debug = rep_debug(r);

	if (replay || debug)
		fputs("<section class=\"card\" id=\"again\"><h2>See it happen</h2>\n", f);
	command(f, replay);
	command(f, debug);
	if (replay || debug)
		fputs("</section>\n", f);
}

static void number_row(FILE *f, const char *what, size_t all, size_t part)
{
	fprintf(f, "<tr><th scope=\"row\">%s</th><td class=\"n\">%zu</td><td class=\"n\">%zu</td>"
		"<td class=\"n\">", what, all, part);
	if (all)
		fprintf(f, "%u %%", rep_percent_less(all, part));
	fputs("</td></tr>\n", f);
}

static void numbers(FILE *f, const struct report *r)
{
	const struct dsp_side *s = &r->dsp->side[DSP_FAILING];
	struct rep_phase_list phases;

	fputs("<section class=\"card\" id=\"numbers\"><h2>Numbers</h2>\n<div class=\"scrolled\">",
	      f);
	if (r->answer->found) {
		fputs(
		    "<table><thead><tr><th></th><th class=\"n\">schedule</th><th class=\"n\">shown"
		    "</th><th class=\"n\">fewer</th></tr></thead><tbody>\n",
		    f);
		number_row(f, "events", s->all_events, s->nprojected);
		number_row(f, "dataflows", s->all_flows, rep_shown_flows(r));
		fprintf(f, "<tr><th scope=\"row\">context switches</th><td class=\"n\">%zu</td>"
			"<td colspan=\"2\">", r->answer->failing.switches);
		if (r->answer->recorded.switches > r->answer->failing.switches)
			fprintf(f, "(%zu as first found)", r->answer->recorded.switches);
		fputs("</td></tr>\n</tbody></table>\n", f);
	}
	rep_phases(r, &phases);
	fputs("<table><tbody>\n", f);
	for (size_t i = 0; i < phases.n; i++) {
		if (phases.v[i].seconds < 0.005)
			continue;
		fputs("<tr><th scope=\"row\">time, ", f);
		html_text(f, phases.v[i].name);
		fprintf(f, "</th><td class=\"n\">%.2f s</td></tr>\n", phases.v[i].seconds);
	}
	if (r->peak_bytes)
		fprintf(f, "<tr><th scope=\"row\">memory</th><td class=\"n\">%.0f MB</td></tr>\n",
			(double)r->peak_bytes / 1e6);
	if (r->run_insns >= 1000000)
		fprintf(f, "<tr><th scope=\"row\">million instructions, run / executed</th>"
			"<td class=\"n\">%.0f / %.0f</td></tr>\n",
			(double)r->run_insns / 1e6, (double)r->executed_insns / 1e6);
	fputs("</tbody></table></div></section>\n", f);
}

static void assumptions(FILE *f, const struct report *r)
{
	const char *text;

	if (!rep_assumption(r, 0))
		return;
	fputs("<section class=\"card\" id=\"assumptions\"><h2>Assumptions</h2>\n<ul "
	      "class=\"plain\">\n",
	      f);
	for (size_t i = 0; (text = rep_assumption(r, i)); i++) {
		fputs("<li>", f);
		html_text(f, text);
		fputs("</li>\n", f);
	}
	fputs("</ul></section>\n", f);
}

void report_html(FILE *f, const struct report *r)
{
	char *headline = rep_headline(r), *program = rep_program(r);

	html_begin(f, program, headline, false);
	fputs("<a class=\"skip-link\" href=\"#schedules\">Skip to the schedules</a>\n<div class=\"wrap\">\n", f);
	top(f, r, program, headline);
	fputs("<div class=\"pair\">\n", f);
	cause(f, r);
	fix(f, r);
	missing(f, r);
	fputs("</div>\n", f);
	schedules(f, r);
	html_full(f, r);
	again(f, r);
	fputs("<div class=\"pair\">\n", f);
	numbers(f, r);
	assumptions(f, r);
	fprintf(f, "</div>\n</main>\n<footer>csched " CSCHED_VERSION "%s</footer>\n</div>\n",
		r->redact ? ", values left out" : "");
	html_end(f);
	free(program);
	free(headline);
}
