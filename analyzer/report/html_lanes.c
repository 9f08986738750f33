/* The projected schedules: a column per thread, a card per event, time downwards. */
#include "analyzer/report/html.h"

#include <inttypes.h>
#include <string.h>

#define EXCERPT 6      /* source lines on each side of the one meant */
#define FULL_MAX 20000 /* rows of the whole schedule: beyond that a page dies */

static const char side_letter[DSP_SIDES] = { 'f', 'a' };

static unsigned color_of(uint32_t thread)
{
	return thread % 8;
}

/* Ids are ours: side, thread, index. */
static void event_id(FILE *f, enum dsp_which w, struct sched_ref r)
{
	fprintf(f, "%c%u-%u", side_letter[w], r.thread, r.index);
}

static void html_position(FILE *f, const struct report *r, const struct sym_event *e)
{
	char *position = rep_position(r, (struct sched_ref){ e->thread, e->index });

	if (position) {
		fputs("<p class=\"position\">position <code>", f);
		html_text(f, position);
		fputs("</code></p>", f);
	}
	free(position);
}

void html_stack(FILE *f, const struct report *r, const struct sym_event *e)
{
	const struct sym_stack *s;

	if (e->stack >= r->trace->nstacks)
		return;
	s = &r->trace->stacks[e->stack];
	fputs("<ol class=\"stack\">", f);
	for (uint32_t i = 0; i < s->n && i < 64; i++) {
		const struct sym_frame *x = &s->frames[i];

		/* Frames of the C and C++ libraries in a row are one line, but for the innermost that the program called. */
		if (rep_frame_is_library(x) && i + 1 < s->n && rep_frame_is_library(&s->frames[i + 1]))
			continue;
		if (rep_frame_is_library(x) && (i + 1 == s->n || !rep_frame_matters(&s->frames[i + 1]) ||
						rep_frame_name(x) != x->function)) {
			fputs("<li class=\"library\">library code</li>", f);
			continue;
		}
		fputs("<li><code>", f);
		html_text(f, x->function);
		fputs("</code> <span class=\"file\">", f);
		if (rep_frame_file(x)) {
			html_text(f, x->file);
			if (x->line)
				fprintf(f, ":%u", x->line);
		} else if (x->module) {
			html_text(f, rep_frame_is_library(x) ? dsp_basename(x->module) : x->module);
		}
		fputs("</span></li>", f);
	}
	fputs("</ol>\n", f);
}

static void excerpt(FILE *f, const struct report *r, const struct sym_frame *p)
{
	bool any = false;

	if (!r->source_line || !p || !rep_frame_file(p) || !p->line)
		return;
	for (uint32_t line = p->line > EXCERPT ? p->line - EXCERPT : 1; line <= p->line + EXCERPT;
	     line++) {
		const char *text = r->source_line(r->source_arg, p->file, line);

		if (!text)
			continue;
		if (!any)
			fputs("<pre class=\"excerpt\">", f);
		any = true;
		fprintf(f, "<span%s><i>%u</i>", line == p->line ? " class=\"here\"" : "", line);
		html_text(f, text);
		fputs("</span>", f);
	}
	if (any)
		fputs("</pre>\n", f);
}

static void fact(FILE *f, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	fprintf(f, "<dt>%s</dt><dd>", name);
	html_text(f, value);
	fputs("</dd>", f);
}

static void more(FILE *f, const struct report *r, const struct dsp_event *d,
		 const struct rep_view *v)
{
	const struct sym_trace *t = r->trace;
	const struct sym_var *var = v->e->symbol != EXPR_NONE || v->e->value != EXPR_NONE ?
				    v->e->target < t->nvars ? &t->vars[v->e->target] : NULL : NULL;
	char text[64];

	fputs("<div class=\"more\"><dl>", f);
	fact(f, "Thread", v->thread);
	if (!r->redact) /* a program's own text */
		fact(f, "Name", t->threads[d->ref.thread].name);
	if (v->place)
		fact(f, "Function", rep_frame_name(v->place));
	if (var) {
		fact(f, "Variable", var->name);
		fact(f, "Type", var->type);
		if (var->address && !r->redact) {
			snprintf(text, sizeof text, "0x%" PRIx64, var->address);
			fact(f, "Address", text);
		}
	}
	if (d->executed)
		fact(f, "Value", v->value);
	if (d->executed) {
		snprintf(text, sizeof text, "%zu", d->at + 1);
		fact(f, "Step", text);
	}
	if (v->e->occurrence > 1) {
		snprintf(text, sizeof text, "%" PRIu64 ". time here", v->e->occurrence);
		fact(f, "Execution", text);
	}
	fputs("</dl>", f);
	html_stack(f, r, v->e);
	html_position(f, r, v->e);
	excerpt(f, r, v->place);
	fputs("</div>", f);
}

static bool is_outcome(const struct report *r, const struct dsp_event *e, enum dsp_which w)
{
	return e->failure && (order_event_at(r->trace, e->ref)->op == SYM_FAIL ||
			      (!e->executed && w == DSP_FAILING));
}

static bool read_varies(const struct dsp_side *s, struct sched_ref ref)
{
	for (size_t i = 0; i < s->nflows; i++)
		if (s->flows[i].differs && s->flows[i].read.thread == ref.thread &&
		    s->flows[i].read.index == ref.index)
			return true;
	return false;
}

static void action(FILE *f, const struct report *r, const struct dsp_event *e,
		   const struct rep_view *v, enum dsp_which w)
{
	if (v->e->op == SYM_FAIL || !e->executed) {
		struct strbuf b = { 0 };

		rep_action(&b, r, e, v, w);
		html_text(f, b.s ? b.s : "");
		strbuf_free(&b);
		return;
	}
	if (v->via) {
		html_text(f, v->via);
		fputs("() ", f);
	}
	fprintf(f, "%s", v->verb);
	if (*v->subject) {
		fputs(" <b>", f);
		html_text(f, v->subject);
		fputs("</b>", f);
	}
	if (v->value) {
		fputs(" = <span class=\"value\">", f);
		html_text(f, v->value);
		fputs("</span>", f);
	}
}

static void event(FILE *f, const struct report *r, enum dsp_which w, const struct dsp_event *e,
		  size_t column, size_t row)
{
	/* The failure usually stands on the line of the read that decides it. */
	bool repeats = row && e->failure && rep_same_line(r, e[-1].ref, e->ref);
	struct rep_view v;

	rep_view_shown(r, w, e, &v);
	fprintf(f, "<details class=\"event th%u%s%s%s%s\" id=\"", color_of(e->ref.thread),
		read_varies(&r->dsp->side[w], e->ref) ? " varies" : "",
		e->context ? " context" : "", is_outcome(r, e, w) ? " outcome" : "",
		!e->executed && !is_outcome(r, e, w) ? " pending" : "");
	event_id(f, w, e->ref);
	fprintf(f, "\" data-key=\"%u-%u\" data-thread=\"", e->ref.thread, e->ref.index);
	html_text(f, v.thread);
	fputs("\" data-variable=\"", f);
	html_text(f, v.subject);
	fprintf(f, "\" style=\"grid-column:%zu;grid-row:%zu\"><summary><span class=\"where\"><span>",
		column + 1, row + 2);
	html_text(f, v.where);
	fputs("</span></span><span class=\"what\">", f);
	action(f, r, e, &v, w);
	if (e->buffered)
		fputs(" <span class=\"tag\" title=\"it waited in the store buffer while its thread "
		      "went on\">seen only now</span>", f);
	if (e->reordered)
		fputs(" <span class=\"tag\" title=\"the two schedules order this differently\">"
		      "&#8645; reordered</span>", f);
	fputs("</span>", f);
	if (v.source && !repeats) {
		fputs("<code class=\"source\">", f);
		html_text(f, v.source);
		fputs("</code>", f);
	}
	fputs("</summary>", f);
	more(f, r, e, &v);
	fputs("</details>\n", f);
	rep_view_free(&v);
}

/* ---- one figure ---- */

struct lanes {
	uint32_t *threads;
	size_t n;
};

static void find_lanes(const struct report *r, struct lanes *l)
{
	const struct dsp_side *s = &r->dsp->side[DSP_FAILING];

	l->threads = xcalloc(r->trace->nthreads + 1, sizeof *l->threads);
	for (uint32_t th = 0; th < r->trace->nthreads; th++) {
		bool shown = false;

		for (size_t i = 0; i < s->nevents; i++)
			shown |= s->events[i].ref.thread == th;
		if (shown)
			l->threads[l->n++] = th;
	}
}

size_t html_lane_count(const struct report *r)
{
	struct lanes l = { 0 };

	find_lanes(r, &l);
	free(l.threads);
	return l.n;
}

static size_t lane_of(const struct lanes *l, uint32_t thread)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->threads[i] == thread)
			return i;
	return 0;
}

static size_t row_of(const struct dsp_side *s, uint32_t thread, uint32_t index)
{
	for (size_t i = 0; i < s->nevents; i++)
		if (s->events[i].ref.thread == thread && s->events[i].ref.index == index)
			return i;
	return SIZE_MAX;
}

static void regions(FILE *f, const struct report *r, const struct dsp_side *s,
		    const struct lanes *l)
{
	for (size_t i = 0; i < r->dsp->nregions; i++) {
		const struct dsp_region *x = &r->dsp->regions[i];
		size_t first = row_of(s, x->thread, x->first);
		size_t last = x->last == SYM_NONE ? s->nevents - 1 :
						    row_of(s, x->thread, x->last);

		if (first == SIZE_MAX || last == SIZE_MAX || first > last)
			continue;
		fprintf(f, "<div class=\"region\" style=\"grid-column:%zu;grid-row:%zu / %zu\">"
			"<span>should be one atomic step</span></div>\n",
			lane_of(l, x->thread) + 1, first + 2, last + 3);
	}
}

static void flow_end(FILE *f, const struct report *r, struct sched_ref ref)
{
	char *where = dsp_where(r->trace, ref);

	fputs("<b>", f);
	html_text(f, r->trace->threads[ref.thread].id);
	fputs("</b> ", f);
	html_text(f, where);
	free(where);
}

static void wait_item(FILE *f, const struct report *r, const struct dsp_wait *x)
{
	fputs("<li class=\"differs\" data-to=\"", f);
	event_id(f, DSP_FAILING, x->wants);
	fputs("\" data-from=\"", f);
	event_id(f, DSP_FAILING, x->holds);
	fputs("\">", f);
	flow_end(f, r, x->wants);
	fputs(" waits for <code>", f);
	html_text(f, dsp_subject(r->trace, order_event_at(r->trace, x->wants)));
	fputs("</code>, held since ", f);
	flow_end(f, r, x->holds);
	fputs("</li>\n", f);
}

static void flow_list(FILE *f, const struct report *r, enum dsp_which w)
{
	const struct dsp_side *s = &r->dsp->side[w];

	if (!s->nflows && (w == DSP_ALTERNATE || !r->dsp->nwaits))
		return;
	fputs("<ul class=\"flow-list\" aria-label=\"Dataflows\">\n", f);
	for (size_t i = 0; i < s->nflows; i++) {
		const struct order_flow *x = &s->flows[i];
		const struct sym_event *e = order_event_at(r->trace, x->read);
		char value[128];

		fprintf(f, "<li class=\"%s\" data-to=\"", x->differs ? "differs" : "same");
		event_id(f, w, x->read);
		if (!x->initial) {
			fputs("\" data-from=\"", f);
			event_id(f, w, x->write);
		}
		fputs("\">", f);
		flow_end(f, r, x->read);
		fputs(" sees <code>", f);
		html_text(f, dsp_subject(r->trace, e));
		fputs("</code>", f);
		if (x->has_value && !r->redact) {
			rep_event_value(r, e, x->value, value, sizeof value);
			fputs(" = <code>", f);
			html_text(f, value);
			fputs("</code>", f);
		}
		if (x->initial) {
			fputs(", its initial value", f);
		} else {
			fputs(" from ", f);
			flow_end(f, r, x->write);
		}
		if (!x->differs && r->dsp->has_alternate)
			fputs(" (in both)", f);
		fputs("</li>\n", f);
	}
	for (size_t i = 0; w == DSP_FAILING && i < r->dsp->nwaits; i++)
		wait_item(f, r, &r->dsp->waits[i]);
	fputs("</ul>\n", f);
}

static void lane_names(FILE *f, const struct report *r, const struct lanes *l, size_t rows)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct sym_thread *th = &r->trace->threads[l->threads[i]];

		fprintf(f,
			"<div class=\"rail\" style=\"grid-column:%zu;grid-row:2 / %zu\"></div>\n",
			i + 1, rows + 2);
		fprintf(f, "<div class=\"lane-name th%u\" data-thread=\"", color_of(l->threads[i]));
		html_text(f, th->id);
		fprintf(f, "\" style=\"grid-column:%zu\">", i + 1);
		html_text(f, th->id);
		if (*rep_thread_label(r, l->threads[i])) {
			fputs(" <small>", f);
			html_text(f, rep_thread_label(r, l->threads[i]));
			fputs("</small>", f);
		}
		fputs("</div>\n", f);
	}
}

void html_schedule(FILE *f, const struct report *r, enum dsp_which w)
{
	static const char *const classes[DSP_SIDES] = { "failing", "alternate" };
	const struct dsp_side *s = &r->dsp->side[w];
	struct lanes l = { 0 };
	char *verdict = rep_verdict(r, w);

	find_lanes(r, &l);
	fprintf(f, "<figure class=\"schedule %s\" aria-labelledby=\"title-%s\"><figcaption>"
		"<h2 id=\"title-%s\">%s</h2><p>",
		classes[w], classes[w], classes[w], rep_title(r, w));
	html_text(f, verdict);
	char *others = w == DSP_FAILING ? rep_uninvolved(r) : NULL;

	if (others)
		fprintf(f, " \u00b7 <span class=\"others\">%s</span>", others);
	free(others);
	fprintf(
	    f, "</p></figcaption>\n<div class=\"scroll\"><div class=\"lanes\" style=\"--n:%zu\">\n",
	    l.n);
	lane_names(f, r, &l, s->nevents);
	regions(f, r, s, &l);
	for (size_t i = 0; i < s->nevents; i++)
		event(f, r, w, &s->events[i], lane_of(&l, s->events[i].ref.thread), i);
	fputs("</div></div>\n", f);
	flow_list(f, r, w);
	fputs("</figure>\n", f);
	free(l.threads);
	free(verdict);
}

/* ---- the whole failing schedule ---- */

static void full_row(FILE *f, const struct report *r, size_t i, bool turn)
{
	const struct sched_order *o = rep_order(r, DSP_FAILING);
	struct sched_ref ref = o->refs[i];
	bool projected = row_of(&r->dsp->side[DSP_FAILING], ref.thread, ref.index) != SIZE_MAX;
	const char *edge = turn ? " class=\"switch\"" : "";
	struct rep_view v;

	rep_view(r, o, ref, &v);
	fprintf(f, "<tr class=\"th%u%s\"><td%s>%zu</td><td%s><span class=\"thread\">",
		color_of(ref.thread), projected ? " projected" : "", edge, i + 1, edge);
	html_text(f, v.thread);
	fprintf(f, "</span></td><td%s>", edge);
	/* A thread's start is at no line. */
	html_text(f, v.place || v.e->pc ? v.where : "");
	fprintf(f, "</td><td%s>", edge);
	action(f, r, &(struct dsp_event){ .ref = ref, .executed = true }, &v, DSP_FAILING);
	fprintf(f, "</td><td%s>", edge);
	html_text(f, v.source ? v.source : "");
	fputs("</td></tr>\n", f);
	rep_view_free(&v);
}

void html_full(FILE *f, const struct report *r)
{
	const struct sched_order *o = rep_order(r, DSP_FAILING);
	size_t from;

	if (!o || !o->n)
		return;
	/* The end is where it fails. */
	from = o->n > FULL_MAX ? o->n - FULL_MAX : 0;
	fprintf(
	    f,
	    "<details class=\"card\" id=\"full\"><summary>The whole failing schedule: %zu events, "
	    "%zu context switches</summary>\n",
	    o->n, o->switches);
	if (from)
		fprintf(f,
			"<p>Only the last %d events are listed; the JSON report has them all.</p>",
			FULL_MAX);
	fputs("<div class=\"scrolled\"><table class=\"full\"><thead><tr><th>Step<th>Thread<th>Place"
	      "<th>Event<th>Source</tr></thead><tbody>\n", f);
	for (size_t i = from; i < o->n; i++)
		full_row(f, r, i, i > from && o->refs[i].thread != o->refs[i - 1].thread);
	fputs("</tbody></table></div></details>\n", f);
}
