/* Graphviz: both schedules as clusters, threads as columns, dataflows as arrows. */
#include "analyzer/report/internal.h"

#include <string.h>

/* Inside a quoted string; dot reads \n and \" and takes UTF-8. */
static void quoted(FILE *f, const char *s)
{
	uint32_t c;

	while (*s) {
		size_t n = rep_utf8(s, &c);

		if (n && (c == '"' || c == '\\'))
			fputc('\\', f);
		if (n)
			fwrite(s, 1, n, f);
		else
			fputc('?', f);
		s += n ? n : 1;
	}
}

static void node_name(FILE *f, enum dsp_which w, struct sched_ref r)
{
	fprintf(f, "%c_%u_%u", w == DSP_FAILING ? 'f' : 'a', r.thread, r.index);
}

static void node(FILE *f, const struct report *r, enum dsp_which w, const struct dsp_event *e)
{
	struct strbuf action = { 0 };
	struct rep_view v;
	bool outcome;

	rep_view_shown(r, w, e, &v);
	rep_action(&action, r, e, &v, w);
	outcome = e->failure && (v.e->op == SYM_FAIL || (!e->executed && w == DSP_FAILING));
	fputs("\t\t", f);
	node_name(f, w, e->ref);
	fprintf(f, " [group=\"%c%u\", label=\"", w == DSP_FAILING ? 'f' : 'a', e->ref.thread);
	quoted(f, v.thread);
	fputs("  ", f);
	quoted(f, v.where);
	fputs("\\n", f);
	quoted(f, action.s);
	if (v.source) {
		fputs("\\n", f);
		quoted(f, v.source);
	}
	fprintf(f, "\"%s%s];\n", outcome ? w == DSP_FAILING ? ", color=\"#c2253a\", penwidth=2" :
		", color=\"#12805c\", penwidth=2" : "",
		e->context ? ", style=dotted" : !e->executed ? ", style=dashed" : "");
	strbuf_free(&action);
	rep_view_free(&v);
}

static void flow(FILE *f, const struct report *r, enum dsp_which w, size_t i)
{
	const struct order_flow *x = &r->dsp->side[w].flows[i];
	const char *color = !x->differs ? "gray50" : w == DSP_FAILING ? "#c2253a" : "#12805c";
	const struct sym_event *e = order_event_at(r->trace, x->read);
	char value[128];

	if (x->initial) {
		fprintf(
		    f,
		    "\t\t%c_init_%zu [label=\"initial value\", shape=plain, fontcolor=gray40];\n"
		    "\t\t%c_init_%zu",
		    "fa"[w], i, "fa"[w], i);
	} else {
		fputs("\t\t", f);
		node_name(f, w, x->write);
	}
	fputs(" -> ", f);
	node_name(f, w, x->read);
	fprintf(f, " [color=\"%s\", fontcolor=\"%s\", penwidth=%s, constraint=false, label=\"",
		color, color, x->differs ? "2" : "1");
	quoted(f, dsp_subject(r->trace, e));
	if (x->has_value && !r->redact) {
		rep_event_value(r, e, x->value, value, sizeof value);
		fputs(" = ", f);
		quoted(f, value);
	}
	fputs("\"];\n", f);
}

static void order(FILE *f, enum dsp_which w, struct sched_ref a, struct sched_ref b,
		  const char *attributes)
{
	fputs("\t\t", f);
	node_name(f, w, a);
	fputs(" -> ", f);
	node_name(f, w, b);
	fprintf(f, " [%s];\n", attributes);
}

/* A heading per thread with its events below it; time runs down across all of them. */
static void columns(FILE *f, const struct report *r, enum dsp_which w)
{
	const struct dsp_side *s = &r->dsp->side[w];
	uint32_t before = SYM_NONE;

	for (uint32_t th = 0; th < r->trace->nthreads; th++) {
		const struct dsp_event *last = NULL;

		for (size_t i = 0; i < s->nevents; i++) {
			const struct dsp_event *e = &s->events[i];

			if (e->ref.thread != th)
				continue;
			if (!last) {
				fprintf(f, "\t\t%c_%u [shape=plain, group=\"%c%u\", label=\"",
					"fa"[w], th, "fa"[w], th);
				quoted(f, r->trace->threads[th].id);
				fprintf(f, "\"];\n\t\t%c_%u -> ", "fa"[w], th);
				node_name(f, w, e->ref);
				fputs(" [arrowhead=none, color=gray70, weight=9];\n", f);
				if (before != SYM_NONE)
					fprintf(
					    f, "\t\t{ rank=same; %c_%u -> %c_%u [style=invis]; }\n",
					    "fa"[w], before, "fa"[w], th);
				before = th;
			} else {
				order(f, w, last->ref, e->ref,
				      "arrowhead=none, color=gray70, weight=9");
			}
			last = e;
		}
	}
	for (size_t i = 1; i < s->nevents; i++)
		if (s->events[i].ref.thread != s->events[i - 1].ref.thread)
			order(f, w, s->events[i - 1].ref, s->events[i].ref,
			      "style=invis, weight=0");
}

static void cluster(FILE *f, const struct report *r, enum dsp_which w)
{
	const struct dsp_side *s = &r->dsp->side[w];

	fprintf(f, "\tsubgraph cluster_%s {\n\t\tlabel=\"%s\";\n\t\tcolor=\"%s\";\n",
		w == DSP_FAILING ? "failing" : "alternate",
		rep_title(r, w),
		w == DSP_FAILING ? "#c2253a" : "#12805c");
	for (size_t i = 0; i < s->nevents; i++)
		node(f, r, w, &s->events[i]);
	columns(f, r, w);
	for (size_t i = 0; i < s->nflows; i++)
		flow(f, r, w, i);
	fputs("\t}\n", f);
}

void report_dot(FILE *f, const struct report *r)
{
	char *headline = rep_headline(r), *program = rep_program(r);

	fputs("digraph csched {\n\tlabel=\"", f);
	quoted(f, program);
	fputs(": ", f);
	quoted(f, headline);
	char *sure = rep_confidence(r);

	if (sure) {
		fputs("\\n", f);
		quoted(f, sure);
	}
	free(sure);
	fputs("\";\n\tlabelloc=t;\n\tfontname=\"sans-serif\";\n"
	      "\tnode [shape=box, style=rounded, fontname=\"monospace\", fontsize=10];\n"
	      "\tedge [fontname=\"monospace\", fontsize=9];\n", f);
	cluster(f, r, DSP_FAILING);
	if (r->dsp->has_alternate)
		cluster(f, r, DSP_ALTERNATE);
	fputs("}\n", f);
	free(program);
	free(headline);
}
