#include "analyzer/report/rails.h"

#include <string.h>

#define SIDE_BY_SIDE 100 /* columns from which two schedules fit next to each other */

struct out {
	FILE *f;
	const struct report *r;
	struct report_term term;
};

static void styled(struct out *o, enum term_style style, const char *text)
{
	fprintf(o->f, "%s%s%s", text_style(&o->term, style), text,
		style == TERM_PLAIN ? "" : text_style(&o->term, TERM_PLAIN));
}

static void heading(struct out *o, const char *text)
{
	fputc('\n', o->f);
	styled(o, TERM_BOLD, text);
	fputc('\n', o->f);
}

static void paragraph(struct out *o, const char *lead, const char *text)
{
	text_wrap(o->f, lead, text, o->term.width, o->term.unicode);
}

static void headline(struct out *o)
{
	char *line = rep_headline(o->r), *program = rep_program(o->r);
	char *all = xasprintf("%s: %s", program, line);

	fputs(text_style(&o->term, TERM_RED), o->f);
	paragraph(o, "", all);
	fputs(text_style(&o->term, TERM_PLAIN), o->f);
	if (o->r->failure.misuse)
		paragraph(o, "", o->r->failure.misuse);
	char *sure = rep_confidence(o->r);

	if (sure)
		paragraph(o, "", sure);
	free(sure);
	free(all);
	free(program);
	free(line);
}

/* ---- the two schedules ---- */

static void print_line(struct out *o, const struct rail_picture *p, size_t i)
{
	const char *text = i < p->lines.n ? p->lines.v[i].text : "";
	size_t n = strlen(text);

	/* Rails of an empty right half end in blanks; with colour they stay. */
	while (n && text[n - 1] == ' ')
		n--;
	fprintf(o->f, "%.*s", (int)n, text);
}

static void verdict(struct out *o, enum dsp_which w)
{
	char *text = rep_verdict(o->r, w);

	fputs(text_style(&o->term, TERM_DIM), o->f);
	paragraph(o, "  ", text);
	fputs(text_style(&o->term, TERM_PLAIN), o->f);
	free(text);
}

static void stacked(struct out *o, const struct rail_picture *p, enum dsp_which w)
{
	heading(o, rep_title(o->r, w));
	for (size_t i = 0; i < p->lines.n; i++) {
		print_line(o, p, i);
		fputc('\n', o->f);
	}
	verdict(o, w);
}

static void verdicts(struct out *o)
{
	char *fail = rep_verdict(o->r, DSP_FAILING), *alt = rep_verdict(o->r, DSP_ALTERNATE);
	bool same = !strcmp(fail, alt);
	char *all = same ? xasprintf("Both %s", fail) :
		    xasprintf("Left %s. Right %s", fail, alt);

	fputs(text_style(&o->term, TERM_DIM), o->f);
	paragraph(o, "  ", all);
	fputs(text_style(&o->term, TERM_PLAIN), o->f);
	free(all);
	free(fail);
	free(alt);
}

static void side_by_side(struct out *o, const struct rail_picture *p, unsigned half)
{
	const char *bar = o->term.unicode ? " \u2502" : " |";
	size_t rows = p[0].lines.n > p[1].lines.n ? p[0].lines.n : p[1].lines.n;

	fprintf(o->f, "\n%s%-*s%s%s  %s%s%s\n", text_style(&o->term, TERM_BOLD), (int)half,
		rep_title(o->r, DSP_FAILING), text_style(&o->term, TERM_PLAIN), bar,
		text_style(&o->term, TERM_BOLD), rep_title(o->r, DSP_ALTERNATE), text_style(&o->term, TERM_PLAIN));
	for (size_t i = 0; i < rows; i++) {
		size_t used = i < p[0].lines.n ? p[0].lines.v[i].columns : 0;

		fprintf(o->f, "%s%*s", i < p[0].lines.n ? p[0].lines.v[i].text : "",
			(int)(half > used ? half - used : 0), "");
		fputs(bar, o->f);
		print_line(o, &p[1], i);
		fputc('\n', o->f);
	}
	verdicts(o);
}

/* What the signs of the pictures mean, as far as they occur. */
static void legend(struct out *o, const struct rail_picture *p)
{
	const struct {
		bool shown;
		const char *sign, *plain, *meaning;
	} rows[] = {
		{ p[0].flows || p[1].flows, "\u2500\u25b6", "->", "the write that is read" },
		{ p[0].waits, "\u2500\u25b6", "->", "the holder of what is waited for" },
		{ p[0].initial || p[1].initial, "\u25cb", "o", "initial value" },
		{ o->r->dsp->nregions, "\u2503", "#", "should be one atomic step" },
	};
	size_t column = 0;

	fputs(text_style(&o->term, TERM_DIM), o->f);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *sign = o->term.unicode ? rows[i].sign : rows[i].plain;
		size_t n = text_columns(sign, o->term.unicode) + strlen(rows[i].meaning) + 3;

		if (!rows[i].shown)
			continue;
		if (column && column + n > o->term.width) {
			fputc('\n', o->f);
			column = 0;
		}
		fprintf(o->f, "  %s %s", sign, rows[i].meaning);
		column += n;
	}
	if (column)
		fputc('\n', o->f);
	fputs(text_style(&o->term, TERM_PLAIN), o->f);
}

#define LABELS_ALIKE 3 /* threads of one name that are listed one by one */

/* Shown threads with the same name as this one: how many, and the last of them. False: an earlier one has said it. */
static bool alike(const struct out *o, uint32_t thread, uint32_t *n, uint32_t *last)
{
	const char *label = rep_thread_label(o->r, thread);

	*n = 0;
	for (uint32_t th = 0; th < o->r->trace->nthreads; th++) {
		if (!rep_thread_shown(o->r, th) || strcmp(rep_thread_label(o->r, th), label))
			continue;
		if (!(*n)++ && th != thread)
			thread = SYM_NONE;
		*last = th;
	}
	return thread != SYM_NONE || *n <= LABELS_ALIKE;
}

/* "T0 main, T0.1 worker": what the columns are; "T0.1 to T0.24 worker" where many are alike; and how many are not shown. */
static void threads(struct out *o)
{
	const struct sym_trace *t = o->r->trace;
	char *others = rep_uninvolved(o->r);
	struct strbuf b = { 0 };
	uint32_t n, last = 0;

	for (uint32_t th = 0; th < t->nthreads; th++) {
		const char *label = rep_thread_label(o->r, th);

		if (!rep_thread_shown(o->r, th) || !*label || !alike(o, th, &n, &last))
			continue;
		strbuf_fmt(&b, "%s%s", b.n ? ", " : "", t->threads[th].id);
		if (n > LABELS_ALIKE)
			strbuf_fmt(&b, " to %s (%u threads)", t->threads[last].id, n);
		strbuf_fmt(&b, " %s", label);
	}
	if (others)
		strbuf_fmt(&b, "%s%s", b.n ? "; " : "", others);
	fputs(text_style(&o->term, TERM_DIM), o->f);
	if (b.n)
		paragraph(o, "  ", b.s);
	fputs(text_style(&o->term, TERM_PLAIN), o->f);
	strbuf_free(&b);
	free(others);
}

static void schedules(struct out *o)
{
	unsigned half = (o->term.width - 3) / 2;
	bool both = o->r->dsp->has_alternate;
	struct rail_picture p[DSP_SIDES] = { { .wanted = 0 } };

	if (!o->r->dsp->side[DSP_FAILING].nevents)
		return;
	for (int w = 0; w <= both; w++)
		rails_draw(o->r, w, &o->term, half, &p[w]);
	if (both && o->term.width >= SIDE_BY_SIDE && p[0].wanted <= half && p[1].wanted <= half) {
		side_by_side(o, p, half);
	} else {
		for (int w = 0; w <= both; w++) {
			rails_free(&p[w]);
			rails_draw(o->r, w, &o->term, o->term.width, &p[w]);
			stacked(o, &p[w], w);
		}
	}
	threads(o);
	legend(o, p);
	for (int w = 0; w < DSP_SIDES; w++)
		rails_free(&p[w]);
}

/* ---- words ---- */

static void cause(struct out *o)
{
	const struct dsp *d = o->r->dsp;
	char **why;
	size_t n;

	if (d->deterministic || o->r->answer->tried_always) {
		heading(o, "Root cause");
		paragraph(o, "  ", d->note);
	}
	if (!d->npairs)
		return;
	heading(o, o->r->confidence == REPORT_UNCONFIRMED ? "Possible cause" : "Root cause");
	n = rep_causes(o->r, &why);
	if (d->npairs == 1) {
		char *text = xasprintf("%s %s.", rep_because(o->r), why[0]);

		paragraph(o, "  ", text);
		free(text);
	} else {
		char *text = xasprintf("%s %s", rep_because(o->r), o->r->answer->cause_minimal ?
				       "all of these happened; without any one of them it need not fail:" :
				       "of these (not all may be needed):");

		paragraph(o, "  ", text);
		free(text);
	}
	for (size_t i = 0; i < n; i++) {
		char *text = xasprintf("%s%c", why[i], i + 1 < n ? ';' : '.');

		if (d->npairs > 1)
			paragraph(o, o->term.unicode ? "  \u2022 " : "  - ", text);
		free(text);
		free(why[i]);
	}
	free(why);
	if (d->has_alternate && o->r->answer->alternates[0].path_differs)
		paragraph(o, "  ",
			  "In the passing order, execution diverges here and does not reach this "
			  "failure.");
}

static void trial(struct out *o, const struct dsp_hint *h)
{
	char *text = dsp_trial_text(&h->trial);

	if (text)
		paragraph(o, "  ", text);
	free(text);
}

static void hint(struct out *o)
{
	const struct dsp *d = o->r->dsp;

	if (!d->hint.text)
		return;
	heading(o, rep_advice_heading(d));
	paragraph(o, "  ", d->hint.text);
	trial(o, &d->hint);
	if (d->also.text) {
		char *text = xasprintf("%s%s", rep_second_advice(&d->also), d->also.text);

		paragraph(o, "  ", text);
		free(text);
		trial(o, &d->also);
	}
}

struct place {
	char *where, *stack, *position;
};

/* Every place once, with the way the program got there and the position of its first event. */
static void stacks(struct out *o)
{
	const struct dsp_side *s = &o->r->dsp->side[DSP_FAILING];
	VEC(struct place) seen = { 0 };
	size_t wide = 0;

	for (size_t i = 0; i < s->nevents; i++) {
		char *where = dsp_where(o->r->trace, s->events[i].ref);
		struct strbuf b = { 0 };
		bool known = false;

		rep_stack(&b, o->r, order_event_at(o->r->trace, s->events[i].ref), 5);
		for (size_t k = 0; k < seen.n; k++)
			known |= b.n && !strcmp(seen.v[k].where, where) &&
				 !strcmp(seen.v[k].stack, b.s);
		if (b.n && !known) {
			vec_push(&seen, (struct place){ where, strbuf_take(&b),
						      rep_position(o->r, s->events[i].ref) });
			if (wide < text_columns(where, o->term.unicode))
				wide = text_columns(where, o->term.unicode);
		} else {
			strbuf_free(&b);
			free(where);
		}
	}
	if (seen.n)
		heading(o, "Stacks");
	for (size_t i = 0; i < seen.n; i++) {
		struct strbuf lead = { 0 };
		size_t n;

		strbuf_str(&lead, "  ");
		n = text_add(&lead, seen.v[i].where, 40, o->term.unicode);
		strbuf_fmt(&lead, "%*s", (int)((wide < 40 ? wide : 40) + 2 - n), "");
		char *text = seen.v[i].position ? xasprintf("%s  [%s]", seen.v[i].stack, seen.v[i].position) :
						  xstrdup(seen.v[i].stack);

		paragraph(o, lead.s, text);
		free(text);
		free(seen.v[i].position);
		strbuf_free(&lead);
		free(seen.v[i].where);
		free(seen.v[i].stack);
	}
	vec_free(&seen);
}

static void missing(struct out *o)
{
	char **why;
	size_t n = rep_missing(o->r, &why);

	if (n)
		heading(o, "What is missing");
	for (size_t i = 0; i < n; i++) {
		paragraph(o, "  ", why[i]);
		free(why[i]);
	}
	free(why);
}

/* The table of numbers takes 53 columns, or 40 where there are fewer than that. */
enum { WIDE_LABEL = 18, WIDE_COLUMN = 10, NARROW_LABEL = 11, NARROW_COLUMN = 8, WIDE_TABLE = 53 };

static int label_width(const struct out *o)
{
	return o->term.width < WIDE_TABLE ? NARROW_LABEL : WIDE_LABEL;
}

static int column_width(const struct out *o)
{
	return o->term.width < WIDE_TABLE ? NARROW_COLUMN : WIDE_COLUMN;
}

static void number_row(struct out *o, const char *what, size_t all, size_t part)
{
	int column = column_width(o);

	fprintf(o->f, "  %-*s %*zu %*zu", label_width(o), what, column, all, column, part);
	if (all)
		fprintf(o->f, " %*u %%", column - 2, rep_percent_less(all, part));
	fputc('\n', o->f);
}

static void numbers(struct out *o)
{
	const struct report *r = o->r;
	const struct dsp_side *s = &r->dsp->side[DSP_FAILING];
	struct rep_phase_list phases;
	double total = 0;
	int label = label_width(o), column = column_width(o);
	const char *switches = label < WIDE_LABEL ? "switches" : "context switches";

	heading(o, "Numbers");
	if (r->answer->found) {
		fprintf(o->f, "  %-*s %*s %*s %*s\n", label, "", column, "schedule", column, "shown", column, "fewer");
		number_row(o, "events", s->all_events, s->nprojected);
		number_row(o, "dataflows", s->all_flows, rep_shown_flows(r));
		if (r->answer->recorded.switches > r->answer->failing.switches)
			fprintf(o->f, "  %-*s %*zu (%zu %s)\n", label, switches, column, r->answer->failing.switches,
				r->answer->recorded.switches, label < WIDE_LABEL ? "at first" : "as first found");
		else
			fprintf(o->f, "  %-*s %*zu\n", label, switches, column, r->answer->failing.switches);
	}
	rep_phases(r, &phases);
	for (size_t i = 0; i < phases.n; i++)
		total += phases.v[i].seconds;
	struct strbuf b = { 0 };

	strbuf_fmt(&b, "%.2f s", total);
	bool said = false;

	for (size_t i = 0; i < phases.n; i++) {
		if (phases.v[i].seconds < 0.005)
			continue;
		strbuf_fmt(&b, "%s %s %.2f", said ? "," : ":", phases.v[i].name,
			   phases.v[i].seconds);
		said = true;
	}
	if (r->peak_bytes)
		strbuf_fmt(&b, "; memory %.0f MB", (double)r->peak_bytes / 1e6);
	if (r->run_insns >= 1000000)
		strbuf_fmt(&b, "; %.0f million instructions executed for a run of %.0f million",
			   (double)r->executed_insns / 1e6, (double)r->run_insns / 1e6);
	char *lead = xasprintf("  %-*s ", label, "time");

	paragraph(o, lead, b.s);
	free(lead);
	strbuf_free(&b);
	fprintf(o->f, "  %-*s %s\n", label, "fingerprint", r->dsp->fingerprint);
}

/* How the answer was found: what was looked at, how, and what came of it. */
static void attempts(struct out *o)
{
	if (!o->r->show_attempts)
		return;
	heading(o, "How it was found");
	for (size_t i = 0; i < o->r->nattempts; i++) {
		const struct report_attempt *t = &o->r->attempts[i];
		char *lead = xasprintf("  %2zu. ", i + 1);
		char *text = xasprintf("%s; %s; effort %.2f; %s%s: %s", t->scope, t->method, t->effort,
				       t->chosen ? "shown: " : "", t->grade, t->outcome);

		paragraph(o, lead, text);
		free(text);
		free(lead);
	}
}

static void again(struct out *o)
{
	const struct report *r = o->r;
	struct strbuf b = { 0 };
	char *program;
	const char *command;
	size_t n;

	/* What happens in every order needs none to be enforced. */
	if (!r->trace_path || !r->answer->found || r->answer->deterministic)
		return;
	heading(o, "See it happen");
	program = rep_program(r);
	command = r->failure.start ? r->failure.start : r->failure.command ? r->failure.command : program;
	strbuf_str(&b, "  csched replay --native ");
	strbuf_word(&b, r->trace_path, strlen(r->trace_path));
	strbuf_str(&b, " -- ");
	/* To be pasted into a shell: broken in one place where a shell sees no end. */
	n = text_columns(b.s, o->term.unicode) + text_columns(command, o->term.unicode);
	if (n > o->term.width)
		strbuf_str(&b, "\\\n    ");
	text_add(&b, command, n, o->term.unicode);
	fprintf(o->f, "%s\n", b.s);
	strbuf_free(&b);
	char *debug = rep_debug(r);

	if (debug)
		fprintf(o->f, "  %s\n", debug);
	free(debug);
	free(program);
}

static void assumptions(struct out *o)
{
	const char *text;

	if (!rep_assumption(o->r, 0))
		return;
	heading(o, "Assumptions");
	for (size_t i = 0; (text = rep_assumption(o->r, i)); i++)
		paragraph(o, o->term.unicode ? "  \u2022 " : "  - ", text);
}

void report_terminal(FILE *f, const struct report *r, const struct report_term *term)
{
	struct out o = { .f = f, .r = r, .term = *term };

	if (o.term.width < 40)
		o.term.width = 40;
	headline(&o);
	schedules(&o);
	cause(&o);
	hint(&o);
	missing(&o);
	stacks(&o);
	numbers(&o);
	attempts(&o);
	again(&o);
	assumptions(&o);
}
