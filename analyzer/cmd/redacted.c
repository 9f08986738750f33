/* Making redacted packs. */
#include "analyzer/cmd/redacted.h"

#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/explain.h"
#include "analyzer/cmd/follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_WIDTH 100

static void write_text(FILE *f, const struct report *r)
{
	report_terminal(f, r, &(struct report_term){ .width = TEXT_WIDTH, .unicode = true });
}

static const struct {
	const char *name;
	void (*write)(FILE *f, const struct report *r);
} reports[] = {
	{ "report.txt", write_text },       { "report.json", report_json },
	{ "report.html", report_html },     { "report.md", report_markdown },
	{ "report.dot", report_dot },       { "report.sarif", report_sarif },
};

static err_t add(struct pack_writer *w, const char *name, const char *data, size_t n, uint64_t *raw)
{
	*raw += n;
	return pack_add(w, name, data, n);
}

/* What the program says of itself may quote its memory. */
static void forget_text(struct sym_trace *t)
{
	char *said = t->failure.text;

	if (said)
		t->failure.text = report_hidden_text(t->failure.kind, said);
	free(said);
	for (size_t i = 0; i < t->nthreads; i++) {
		free(t->threads[i].name);
		t->threads[i].name = NULL;
	}
}

static err_t add_sym(struct pack_writer *w, struct sym_trace *t, uint64_t *raw)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return err_errno("no memory for the symbolic trace");
	forget_text(t);
	err_t e = sym_forget(t);
	if (!e)
		e = sym_write(f, t);
	fclose(f);
	if (!e)
		e = add(w, REDACTED_SYM, text, n, raw);
	free(text);
	return e;
}

static err_t add_reports(struct pack_writer *w, struct explanation *x, uint64_t *raw)
{
	struct explain_report r;
	err_t e = NULL;

	explain_report_init(&r, NULL, x);
	r.report.redact = true;
	r.report.failure.command = r.report.failure.start = NULL; /* arguments may be secrets */
	for (size_t i = 0; i < sizeof reports / sizeof *reports && !e; i++) {
		char *text = NULL;
		size_t n = 0;
		FILE *f = open_memstream(&text, &n);

		if (!f) {
			e = err_errno("no memory for a report");
			break;
		}
		reports[i].write(f, &r.report);
		fclose(f);
		e = add(w, reports[i].name, text, n, raw);
		free(text);
	}
	explain_report_free(&r);
	return e;
}

err_t redacted_fill(struct pack_writer *w, const char *trace, uint64_t *raw)
{
	static const char mark[] = "csched redacted 1\n";
	struct explain_options o;
	struct explanation *x;
	err_t e;

	explain_options_init(&o);
	o.wants_cause = true;
	TRY(follow_to_end(trace, &o, &x));
	e = explain_solve(x, &o);
	follow_quiet();
	if (!e)
		e = add(w, REDACTED_MARK, mark, sizeof mark - 1, raw);
	if (!e)
		e = add(w, "fingerprint", x->dsp->fingerprint, strlen(x->dsp->fingerprint), raw);
	if (!e)
		e = add_reports(w, x, raw);
	if (!e)
		e = add_sym(w, x->extracted->trace, raw); /* last: it changes the trace */
	explanation_free(x);
	return e;
}
