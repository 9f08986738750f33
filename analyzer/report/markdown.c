/* Markdown to paste into an issue tracker: a table per schedule, a column per thread. */
#include "analyzer/report/internal.h"

#include <string.h>

/* Text that may stand in a table cell: nothing in it is markup or a new line. */
static void plain(FILE *f, const char *s)
{
	uint32_t c;
	size_t n;

	for (; *s; s += n ? n : 1) {
		n = rep_utf8(s, &c);
		if (!n)
			fputc(' ', f);
		else if (c == '<')
			fputs("&lt;", f);
		else if (c == '&')
			fputs("&amp;", f);
		else if (n == 1 && strchr("\\`*_{}[]#|~>@", *s))
			fprintf(f, "\\%c", *s);
		else
			fwrite(s, 1, n, f);
	}
}

/* A code span needs a fence longer than any run of back quotes inside; a pipe
 * would end the cell even there. */
static void code(FILE *f, const char *s)
{
	size_t run = 0, longest = 0;

	for (const char *p = s; *p; p++) {
		run = *p == '`' ? run + 1 : 0;
		if (run > longest)
			longest = run;
	}
	for (size_t i = 0; i <= longest; i++)
		fputc('`', f);
	if (longest)
		fputc(' ', f);
	uint32_t c;

	for (size_t n; *s; s += n ? n : 1) {
		n = rep_utf8(s, &c);
		if (!n)
			fputc(' ', f);
		else if (c == '|')
			fputs("\\|", f);
		else
			fwrite(s, 1, n, f);
	}
	if (longest)
		fputc(' ', f);
	for (size_t i = 0; i <= longest; i++)
		fputc('`', f);
}

/* Our sentences: `name' becomes a code span. */
static void sentence(FILE *f, const char *s)
{
	while (*s) {
		const char *open = strchr(s, '`'), *close = open ? strchr(open, '\'') : NULL;
		char *part;

		if (!close) {
			plain(f, s);
			return;
		}
		part = xasprintf("%.*s", (int)(open - s), s);
		plain(f, part);
		free(part);
		part = xasprintf("%.*s", (int)(close - open - 1), open + 1);
		code(f, part);
		free(part);
		s = close + 1;
	}
}

static void cell(FILE *f, const struct report *r, enum dsp_which w, const struct dsp_event *e)
{
	struct strbuf action = { 0 };
	struct rep_view v;

	rep_view_shown(r, w, e, &v);
	rep_action(&action, r, e, &v, w);
	fputs(e->context ? " " : " **", f);
	plain(f, v.where);
	fputs(e->context ? " " : "** ", f);
	plain(f, action.s);
	if (v.source) {
		fputs("<br>", f);
		code(f, v.source);
	}
	fputc(' ', f);
	strbuf_free(&action);
	rep_view_free(&v);
}

static bool shows(const struct dsp_side *s, uint32_t thread)
{
	for (size_t i = 0; i < s->nevents; i++)
		if (s->events[i].ref.thread == thread)
			return true;
	return false;
}

static void flow_notes(FILE *f, const struct report *r, enum dsp_which w)
{
	const struct dsp_side *s = &r->dsp->side[w];

	for (size_t i = 0; i < s->nflows; i++) {
		const struct order_flow *x = &s->flows[i];
		const struct sym_event *e = order_event_at(r->trace, x->read);
		char *to = dsp_where(r->trace, x->read);
		char *from = x->initial ? NULL : dsp_where(r->trace, x->write);

		if (x->differs || !r->dsp->has_alternate) {
			fputs("- ", f);
			plain(f, r->trace->threads[x->read.thread].id);
			fputs(" at ", f);
			plain(f, to);
			fputs(" sees ", f);
			code(f, dsp_subject(r->trace, e));
			if (from) {
				fputs(" from ", f);
				plain(f, r->trace->threads[x->write.thread].id);
				fputs(" at ", f);
				plain(f, from);
			} else {
				fputs(" with its initial value", f);
			}
			fputc('\n', f);
		}
		free(to);
		free(from);
	}
}

static void schedule(FILE *f, const struct report *r, enum dsp_which w)
{
	const struct dsp_side *s = &r->dsp->side[w];
	char *verdict = rep_verdict(r, w);

	fprintf(f, "\n### %s\n\n|", rep_title(r, w));
	for (uint32_t th = 0; th < r->trace->nthreads; th++) {
		if (!shows(s, th))
			continue;
		fputc(' ', f);
		plain(f, r->trace->threads[th].id);
		fputs(" |", f);
	}
	fputs("\n|", f);
	for (uint32_t th = 0; th < r->trace->nthreads; th++)
		if (shows(s, th))
			fputs(" --- |", f);
	fputc('\n', f);
	for (size_t i = 0; i < s->nevents; i++) {
		fputc('|', f);
		for (uint32_t th = 0; th < r->trace->nthreads; th++) {
			if (!shows(s, th))
				continue;
			if (s->events[i].ref.thread == th)
				cell(f, r, w, &s->events[i]);
			fputs(" |", f);
		}
		fputc('\n', f);
	}
	fputc('\n', f);
	flow_notes(f, r, w);
	char *others = w == DSP_FAILING ? rep_uninvolved(r) : NULL;

	fputs("\n_", f);
	plain(f, verdict);
	if (others)
		fprintf(f, "; %s", others);
	fputs("_\n", f);
	free(others);
	free(verdict);
}

static void cause(FILE *f, const struct report *r)
{
	char **why;
	size_t n = rep_causes(r, &why);

	bool always = r->dsp->deterministic || r->answer->tried_always;

	if (n || always)
		fprintf(f, "\n### %s\n\n", r->confidence == REPORT_UNCONFIRMED ? "Possible cause" : "Root cause");
	if (always)
		fprintf(f, "%s\n", r->dsp->note);
	for (size_t i = 0; i < n; i++) {
		fputs("- ", f);
		sentence(f, why[i]);
		fputc('\n', f);
		free(why[i]);
	}
	free(why);
}

static void trial(FILE *f, const struct dsp_hint *h)
{
	char *text = dsp_trial_text(&h->trial);

	if (text) {
		fputc('\n', f);
		sentence(f, text);
		fputc('\n', f);
	}
	free(text);
}

static void hint(FILE *f, const struct report *r)
{
	if (!r->dsp->hint.text)
		return;
	fprintf(f, "\n### %s\n\n", rep_advice_heading(r->dsp));
	sentence(f, r->dsp->hint.text);
	fputc('\n', f);
	trial(f, &r->dsp->hint);
	if (r->dsp->also.text) {
		fprintf(f, "\n%s", rep_second_advice(&r->dsp->also));
		sentence(f, r->dsp->also.text);
		fputc('\n', f);
		trial(f, &r->dsp->also);
	}
}

static void fence(FILE *f, size_t n)
{
	while (n--)
		fputc('`', f);
	fputc('\n', f);
}

/* A fence longer than any in the command: it stays what it is. */
static void replay(FILE *f, const struct report *r)
{
	char *command = rep_replay(r);
	size_t longest = 2, run = 0;

	for (const char *c = command; c && *c; c++) {
		run = *c == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	if (command) {
		fputs("\n### See it happen\n\n", f);
		fence(f, longest + 1);
		for (const char *c = command; *c;) {
			uint32_t code;
			size_t n = *c == '\t' ? 0 : rep_utf8(c, &code);

			if (n)
				fwrite(c, 1, n, f);
			else
				fputc('?', f);
			c += n ? n : 1;
		}
		fputc('\n', f);
		fence(f, longest + 1);
	}
	free(command);
}

static void missing(FILE *f, const struct report *r)
{
	char **why;
	size_t n = rep_missing(r, &why);

	if (n)
		fputs("\n### What is missing\n\n", f);
	for (size_t i = 0; i < n; i++) {
		fputs("- ", f);
		plain(f, why[i]);
		fputc('\n', f);
		free(why[i]);
	}
	free(why);
}

void report_markdown(FILE *f, const struct report *r)
{
	const struct dsp_side *s = &r->dsp->side[DSP_FAILING];
	char *headline = rep_headline(r), *program = rep_program(r);
	const char *text;

	fputs("## ", f);
	plain(f, program);
	fputs(": ", f);
	sentence(f, headline);
	fputc('\n', f);
	if (r->failure.misuse) {
		fputc('\n', f);
		sentence(f, r->failure.misuse);
		fputc('\n', f);
	}
	char *sure = rep_confidence(r);

	if (sure) {
		fputc('\n', f);
		sentence(f, sure);
		fputc('\n', f);
	}
	free(sure);
	if (s->nevents)
		schedule(f, r, DSP_FAILING);
	if (r->dsp->has_alternate)
		schedule(f, r, DSP_ALTERNATE);
	cause(f, r);
	hint(f, r);
	missing(f, r);
	replay(f, r);
	fprintf(f, "\n### Numbers\n\n%zu of %zu events shown, %zu of %zu dataflows; %zu context "
		"switches. Fingerprint `%s`.\n", s->nprojected, s->all_events,
		rep_shown_flows(r), s->all_flows,
		r->answer->failing.switches, r->dsp->fingerprint);
	if (rep_assumption(r, 0))
		fputs("\n<details><summary>Assumptions</summary>\n\n", f);
	for (size_t i = 0; (text = rep_assumption(r, i)); i++) {
		fputs("- ", f);
		plain(f, text);
		fputc('\n', f);
	}
	if (rep_assumption(r, 0))
		fputs("\n</details>\n", f);
	free(program);
	free(headline);
}
