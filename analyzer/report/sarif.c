/*
 * SARIF 2.1.0: one result at the failure, a code flow per schedule, a thread
 * flow per thread; executionOrder is the place in the schedule.
 */
#include "analyzer/report/internal.h"
#include "common/json.h"

#include <string.h>

/* A file name as a URI reference: absolute ones with the file scheme. */
static char *uri_of(const char *file)
{
	struct strbuf b = { 0 };

	if (*file == '/')
		strbuf_str(&b, "file://");
	for (; *file; file++) {
		unsigned char c = (unsigned char)*file;

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    strchr("-._~/+", c))
			strbuf_char(&b, (char)c);
		else
			strbuf_fmt(&b, "%%%02X", c);
	}
	return strbuf_take(&b);
}

static void message(struct json *j, const char *text)
{
	json_object(j, "message");
	json_str(j, "text", text);
	json_end(j);
}

/* Members of a location object. */
static void location(struct json *j, const struct report *r, struct sched_ref ref, const char *text)
{
	const struct sym_frame *p = dsp_place(r->trace, dsp_event_at(r->trace, ref));

	if (p && p->file) {
		char *uri = uri_of(p->file);

		json_object(j, "physicalLocation");
		json_object(j, "artifactLocation");
		json_str(j, "uri", uri);
		json_end(j);
		if (p->line) {
			json_object(j, "region");
			json_uint(j, "startLine", p->line);
			json_end(j);
		}
		json_end(j);
		free(uri);
	}
	if (p) {
		json_array(j, "logicalLocations");
		json_object(j, NULL);
		json_str(j, "name", p->function);
		json_str(j, "kind", "function");
		json_end(j);
		json_end(j);
	}
	message(j, text);
}

static void flow_stack(struct json *j, const struct report *r, const struct sym_event *e)
{
	if (e->stack >= r->trace->nstacks || !r->trace->stacks[e->stack].n)
		return;
	json_object(j, "stack");
	json_array(j, "frames");
	for (uint32_t i = 0; i < r->trace->stacks[e->stack].n; i++) {
		const struct sym_frame *f = &r->trace->stacks[e->stack].frames[i];

		json_object(j, NULL);
		json_object(j, "location");
		if (f->file) {
			char *uri = uri_of(f->file);

			json_object(j, "physicalLocation");
			json_object(j, "artifactLocation");
			json_str(j, "uri", uri);
			json_end(j);
			if (f->line) {
				json_object(j, "region");
				json_uint(j, "startLine", f->line);
				json_end(j);
			}
			json_end(j);
			free(uri);
		}
		message(j, f->function);
		json_end(j);
		if (f->module)
			json_str(j, "module", f->module);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static void step(struct json *j, const struct report *r, enum dsp_which w,
		 const struct dsp_event *e, size_t order)
{
	struct strbuf action = { 0 };
	struct rep_view v;

	rep_view_shown(r, w, e, &v);
	rep_action(&action, r, e, &v, w);
	json_object(j, NULL);
	json_object(j, "location");
	location(j, r, e->ref, action.s);
	json_end(j);
	flow_stack(j, r, v.e);
	json_uint(j, "executionOrder", order);
	json_str(j, "importance", e->failure || e->reordered ? "essential" :
		 e->context ? "unimportant" : "important");
	if (v.value && *v.subject) {
		json_object(j, "state");
		json_object(j, v.subject);
		json_str(j, "text", v.value);
		json_end(j);
		json_end(j);
	}
	json_end(j);
	strbuf_free(&action);
	rep_view_free(&v);
}

static void code_flow(struct json *j, const struct report *r, enum dsp_which w)
{
	const struct dsp_side *s = &r->dsp->side[w];

	json_object(j, NULL);
	message(j, rep_title(r, w));
	json_array(j, "threadFlows");
	for (uint32_t th = 0; th < r->trace->nthreads; th++) {
		bool begun = false;

		for (size_t i = 0; i < s->nevents; i++) {
			if (s->events[i].ref.thread != th || !s->events[i].executed)
				continue;
			if (!begun) {
				json_object(j, NULL);
				json_str(j, "id", r->trace->threads[th].id);
				json_array(j, "locations");
				begun = true;
			}
			step(j, r, w, &s->events[i], i + 1);
		}
		if (begun) {
			json_end(j);
			json_end(j);
		}
	}
	json_end(j);
	json_end(j);
}

static void explain(struct json *j, const struct report *r)
{
	struct strbuf b = { 0 };
	char *headline = rep_headline(r), *program = rep_program(r);
	char **why;
	size_t n;

	char *sure = rep_confidence(r);

	strbuf_fmt(&b, "%s: %s.", program, headline);
	if (sure)
		strbuf_fmt(&b, " %s", sure);
	free(sure);
	n = rep_causes(r, &why);
	for (size_t i = 0; i < n; i++) {
		strbuf_fmt(&b, "%s%s %s%s", i ? ";" : " ", i ? "" : rep_because(r), why[i],
			   i + 1 < n ? "" : ".");
		free(why[i]);
	}
	free(why);
	if (r->dsp->hint.text && !dsp_is_refuted(&r->dsp->hint))
		strbuf_fmt(&b, " %s", r->dsp->hint.text);
	else if (r->dsp->note)
		strbuf_fmt(&b, " %s", r->dsp->note);
	message(j, b.s);
	strbuf_free(&b);
	free(program);
	free(headline);
}

static void related(struct json *j, const struct report *r)
{
	json_array(j, "relatedLocations");
	for (size_t i = 0; i < r->dsp->npairs; i++) {
		struct sched_ref ends[] = { r->dsp->pairs[i].before, r->dsp->pairs[i].after };

		for (int k = 0; k < 2; k++) {
			struct strbuf b = { 0 };

			rep_cause(&b, r, ends[0], ends[1]);
			json_object(j, NULL);
			json_uint(j, "id", 2 * i + (size_t)k);
			location(j, r, ends[k], b.s);
			json_end(j);
			strbuf_free(&b);
		}
	}
	json_end(j);
}

static void result(struct json *j, const struct report *r)
{
	struct sched_ref ref;
	char *headline = rep_headline(r);

	json_object(j, NULL);
	json_str(j, "ruleId", rep_failure_kind(r));
	json_str(j, "level", "error");
	explain(j, r);
	json_array(j, "locations");
	if (rep_failure_ref(r, &ref)) {
		json_object(j, NULL);
		location(j, r, ref, headline);
		json_end(j);
	}
	json_end(j);
	related(j, r);
	json_array(j, "codeFlows");
	for (int w = 0; w < DSP_SIDES; w++)
		if (r->dsp->side[w].nevents)
			code_flow(j, r, w);
	json_end(j);
	json_object(j, "properties");
	json_str(j, "confidence", rep_confidence_name(r->confidence));
	json_end(j);
	json_object(j, "partialFingerprints");
	json_str(j, "cschedRootCause/v1", r->dsp->fingerprint);
	json_end(j);
	json_end(j);
	free(headline);
}

void report_sarif(FILE *f, const struct report *r)
{
	struct json j = { 0 };

	json_object(&j, NULL);
	json_str(&j, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
	json_str(&j, "version", "2.1.0");
	json_array(&j, "runs");
	json_object(&j, NULL);
	json_object(&j, "tool");
	json_object(&j, "driver");
	json_str(&j, "name", "csched");
	json_str(&j, "version", CSCHED_VERSION);
	json_array(&j, "rules");
	json_object(&j, NULL);
	json_str(&j, "id", rep_failure_kind(r));
	json_object(&j, "shortDescription");
	json_str(&j, "text", "A failure that depends on the order of events in several threads");
	json_end(&j);
	json_end(&j);
	json_end(&j);
	json_end(&j);
	json_end(&j);
	json_array(&j, "results");
	result(&j, r);
	json_end(&j);
	json_end(&j);
	json_end(&j);
	json_end(&j);
	json_print(&j, f);
}
