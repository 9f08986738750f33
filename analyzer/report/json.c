/* The JSON report; csched-report(5) is its description. */
#include "analyzer/report/internal.h"
#include "common/json.h"

#include <inttypes.h>
#include <stdlib.h>

static void stack(struct json *j, const struct report *r, const struct sym_event *e)
{
	json_array(j, "stack");
	for (uint32_t i = 0; e->stack < r->trace->nstacks && i < r->trace->stacks[e->stack].n;
	     i++) {
		const struct sym_frame *f = &r->trace->stacks[e->stack].frames[i];

		json_object(j, NULL);
		json_str(j, "function", rep_frame_name(f));
		json_str(j, "file", rep_frame_file(f));
		if (rep_frame_file(f) && f->line)
			json_uint(j, "line", f->line);
		else
			json_null(j, "line");
		json_str(j, "module", f->module);
		json_hex(j, "pc", f->pc);
		json_end(j);
	}
	json_end(j);
}

/* Members of an event object; o: the schedule that gives the value. */
static void event_but_stack(struct json *j, const struct report *r, const struct sched_order *o,
			    struct sched_ref ref)
{
	struct rep_view v;

	rep_view(r, o, ref, &v);
	json_str(j, "thread", v.thread);
	json_uint(j, "index", ref.index);
	json_str(j, "op", sym_op_name(v.e->op));
	json_str(j, "file", v.place ? rep_frame_file(v.place) : NULL);
	if (v.place && rep_frame_file(v.place) && v.place->line)
		json_uint(j, "line", v.place->line);
	else
		json_null(j, "line");
	json_str(j, "function", v.place ? rep_frame_name(v.place) : NULL);
	json_str(j, "variable", *v.subject ? v.subject : NULL);
	json_str(j, "value", v.value);
	json_str(j, "via", v.via);
	char *position = rep_position(r, ref);

	json_str(j, "position", position);
	free(position);
	rep_view_free(&v);
}

static void event_members(struct json *j, const struct report *r, const struct sched_order *o,
			  struct sched_ref ref)
{
	event_but_stack(j, r, o, ref);
	stack(j, r, order_event_at(r->trace, ref));
}

static void event(struct json *j, const char *key, const struct report *r,
		  const struct sched_order *o, struct sched_ref ref)
{
	json_object(j, key);
	event_members(j, r, o, ref);
	json_end(j);
}

static void failure(struct json *j, const struct report *r)
{
	const struct sym_failure *x = &r->trace->failure;
	char *headline = rep_headline(r);
	char signal[16];
	struct sched_ref ref;
	bool known = rep_failure_ref(r, &ref);

	json_object(j, "failure");
	json_str(j, "kind", rep_failure_kind(r));
	char *text = rep_failure_text(r);

	json_str(j, "text", text);
	free(text);
	json_str(j, "headline", headline);
	json_str(j, "misuse", r->failure.misuse);
	json_str(j, "program", r->trace->program);
	json_str(j, "command", r->failure.command);
	json_str(j, "time", r->failure.when);
	json_str(j, "signal", rep_signal(r, signal));
	if (r->failure.has_address && !r->redact)
		json_hex(j, "address", r->failure.address);
	else
		json_null(j, "address");
	if (known)
		event(j, "event", r, rep_order(r, DSP_FAILING), ref);
	else
		json_null(j, "event");
	json_array(j, "blocked");
	for (size_t i = 0; i < x->nblocked; i++) {
		ref = (struct sched_ref){ x->blocked[i].thread, x->blocked[i].event };
		if (order_event_at(r->trace, ref))
			event(j, NULL, r, NULL, ref);
	}
	json_end(j);
	json_bool(j, "deterministic", r->dsp->deterministic);
	json_str(j, "fingerprint", r->dsp->fingerprint);
	json_end(j);
	free(headline);
}

static void validation(struct json *j, const struct report_validation *v)
{
	json_bool(j, "validated", report_validated(v));
	json_object(j, "validation");
	for (int x = 0; x < REPORT_EXECUTORS; x++) {
		json_object(j, rep_executor(x));
		json_uint(j, "runs", v->by[x].runs);
		json_uint(j, "agreed", v->by[x].agreed);
		json_str(j, "why", v->by[x].why);
		json_bool(j, "fails_later", v->by[x].fails_later);
		json_end(j);
	}
	json_end(j);
}

/* A schedule has thousands of events on few stacks: each is given once. */
static void events_of(struct json *j, const struct report *r, enum dsp_which w)
{
	const struct sched_order *o = rep_order(r, w);
	uint32_t *first = xcalloc(r->trace->nstacks + 1, sizeof *first); /* event + 1; 0: none */

	json_array(j, "events");
	for (size_t i = 0; o && i < o->n; i++) {
		const struct sym_event *e = order_event_at(r->trace, o->refs[i]);
		bool known = e && e->stack < r->trace->nstacks;

		json_object(j, NULL);
		event_but_stack(j, r, i < r->dsp->side[w].exact ? o : NULL, o->refs[i]);
		if (known && first[e->stack]) {
			json_array(j, "stack");
			json_end(j);
			json_uint(j, "same_stack", first[e->stack] - 1);
		} else {
			stack(j, r, e);
		}
		if (known && !first[e->stack])
			first[e->stack] = (uint32_t)i + 1;
		json_end(j);
	}
	json_end(j);
	free(first);
}

static void schedule(struct json *j, const struct report *r)
{
	const struct sched_order *o = rep_order(r, DSP_FAILING);

	json_object(j, "schedule");
	json_bool(j, "found", o);
	events_of(j, r, DSP_FAILING);
	json_uint(j, "context_switches", o ? o->switches : 0);
	if (r->answer->recorded.n)
		json_uint(j, "context_switches_before", r->answer->recorded.switches);
	else
		json_null(j, "context_switches_before");
	validation(j, &r->failing_proof);
	json_end(j);
}

/* The failing schedule if it executes the event (else there is no value), or NULL. */
static const struct sched_order *executing(const struct report *r, struct sched_ref ref)
{
	const struct sched_order *o = rep_order(r, DSP_FAILING);

	for (size_t i = 0; o && i < o->n; i++)
		if (o->refs[i].thread == ref.thread && o->refs[i].index == ref.index)
			return o;
	return NULL;
}

static void edge(struct json *j, const char *key, const struct report *r, struct sched_ref before,
		 struct sched_ref after, const bool *inverted)
{
	struct strbuf text = { 0 };

	rep_cause(&text, r, before, after);
	json_object(j, key);
	event(j, "before", r, executing(r, before), before);
	event(j, "after", r, executing(r, after), after);
	if (inverted)
		json_bool(j, "inverted", *inverted);
	json_str(j, "text", text.s);
	json_end(j);
	strbuf_free(&text);
}

static void root_cause(struct json *j, const struct report *r)
{
	json_object(j, "root_cause");
	json_array(j, "edges");
	for (size_t i = 0; i < r->dsp->npairs; i++) {
		const struct dsp_pair *p = &r->dsp->pairs[i];

		edge(j, NULL, r, p->before, p->after, &p->inverted);
	}
	json_end(j);
	json_str(j, "origin", !r->dsp->npairs ? NULL : r->answer->rule ? "rule" :
			      r->answer->cause_executed ? "difference" : "core");
	json_bool(j, "proved", r->dsp->npairs && r->confidence == REPORT_PROVED);
	json_end(j);
}

static void alternate(struct json *j, const struct report *r)
{
	const struct sched_order *o = rep_order(r, DSP_ALTERNATE);
	const struct sched_alternate *a = o ? &r->answer->alternates[0] : NULL;

	json_object(j, "alternate");
	json_bool(j, "found", a);
	if (a && order_event_at(r->trace, a->inverted.before) &&
	    order_event_at(r->trace, a->inverted.after))
		edge(j, "inverted", r, a->inverted.before, a->inverted.after, NULL);
	else
		json_null(j, "inverted");
	validation(j, &r->alternate_proof);
	json_bool(j, "single", a && a->single);
	json_bool(j, "path_differs", a && a->path_differs);
	json_uint(j, "distance", a ? a->distance : 0);
	json_uint(j, "context_switches", o ? o->switches : 0);
	json_uint(j, "exact", r->dsp->side[DSP_ALTERNATE].exact);
	events_of(j, r, DSP_ALTERNATE);
	json_end(j);
}

static const char *const side_names[DSP_SIDES] = { "failing", "alternate" };

static void dsp_event(struct json *j, const struct report *r, enum dsp_which w,
		      const struct dsp_event *e)
{
	json_object(j, NULL);
	event_members(j, r, e->has_value ? rep_order(r, w) : NULL, e->ref);
	json_str(j, "in", side_names[w]);
	if (e->executed)
		json_uint(j, "step", e->at + 1);
	else
		json_null(j, "step");
	json_bool(j, "buffered", e->buffered);
	json_bool(j, "dataflow", e->in_flow);
	json_bool(j, "reordered", e->reordered);
	json_bool(j, "cause", e->in_cause);
	json_bool(j, "failure", e->failure);
	json_bool(j, "context", e->context);
	json_end(j);
}

static void order_flow(struct json *j, const struct report *r, enum dsp_which w,
		       const struct order_flow *f)
{
	const struct sym_event *e = order_event_at(r->trace, f->read);
	char value[128];

	json_object(j, NULL);
	if (f->initial)
		json_null(j, "write");
	else
		event(j, "write", r, rep_order(r, w), f->write);
	event(j, "read", r, rep_order(r, w), f->read);
	json_str(j, "in", side_names[w]);
	json_bool(j, "differs", f->differs);
	if (f->has_value && !r->redact) {
		rep_event_value(r, e, f->value, value, sizeof value);
		json_str(j, "value", value);
	} else {
		json_null(j, "value");
	}
	json_end(j);
}

static const char *lock_name(const struct report *r, uint32_t object)
{
	return object < r->trace->nobjects ? r->trace->objects[object].name : NULL;
}

static void dsp_region(struct json *j, const struct report *r, const struct dsp_region *x)
{
	const struct sched_order *o = rep_order(r, DSP_FAILING);

	json_object(j, NULL);
	json_str(j, "thread", r->trace->threads[x->thread].id);
	event(j, "first", r, o, (struct sched_ref){ x->thread, x->first });
	event(j, "last", r, x->last == SYM_NONE ? NULL : o, x->end);
	json_bool(j, "finished", x->last != SYM_NONE);
	event(j, "intruder", r, o, x->intruder);
	json_str(j, "variable", x->var < r->trace->nvars ? r->trace->vars[x->var].name : NULL);
	json_str(j, "common_lock", lock_name(r, x->common_lock));
	json_str(j, "intruders_lock", lock_name(r, x->other_lock));
	json_end(j);
}

void report_trial_json(struct json *j, const char *key, const struct dsp_trial *t)
{
	json_object(j, key);
	json_str(j, "verdict", dsp_tried_name(t->verdict));
	json_uint(j, "runs", t->runs);
	json_uint(j, "failures", t->failures);
	json_uint(j, "deadlocks", t->deadlocks);
	json_uint(j, "timeouts", t->timeouts);
	json_uint(j, "without_runs", t->without_runs);
	json_uint(j, "without_failures", t->without_failures);
	json_end(j);
}

static void dsp_hint(struct json *j, const char *key, const struct dsp_hint *h)
{
	json_object(j, key);
	json_str(j, "kind", dsp_hint_name(h->kind));
	json_str(j, "text", h->text);
	report_trial_json(j, "tried", &h->trial);
	json_end(j);
}

static void projection(struct json *j, const struct report *r)
{
	const struct dsp *d = r->dsp;

	json_object(j, "dsp");
	json_array(j, "events");
	for (int w = 0; w < DSP_SIDES; w++)
		for (size_t i = 0; i < d->side[w].nevents; i++)
			dsp_event(j, r, w, &d->side[w].events[i]);
	json_end(j);
	json_array(j, "dataflows");
	for (int w = 0; w < DSP_SIDES; w++)
		for (size_t i = 0; i < d->side[w].nflows; i++)
			order_flow(j, r, w, &d->side[w].flows[i]);
	json_end(j);
	json_array(j, "waits");
	for (size_t i = 0; i < d->nwaits; i++) {
		json_object(j, NULL);
		event(j, "wants", r, NULL, d->waits[i].wants);
		event(j, "holds", r, NULL, d->waits[i].holds);
		json_end(j);
	}
	json_end(j);
	json_array(j, "atomic_regions");
	for (size_t i = 0; i < d->nregions; i++)
		dsp_region(j, r, &d->regions[i]);
	json_end(j);
	dsp_hint(j, "hint", &d->hint);
	dsp_hint(j, "also", &d->also);
	json_str(j, "note", d->note);
	json_end(j);
}

static void stats(struct json *j, const struct report *r)
{
	const struct sched_answer *a = r->answer;
	const struct dsp_side *s = &r->dsp->side[DSP_FAILING];
	struct rep_phase_list phases;

	json_object(j, "stats");
	json_uint(j, "threads", r->trace->nthreads);
	json_uint(j, "events", s->all_events);
	json_uint(j, "dsp_events", s->nprojected);
	json_uint(j, "events_fewer_percent", rep_percent_less(s->all_events, s->nprojected));
	json_uint(j, "dataflows", s->all_flows);
	json_uint(j, "dsp_dataflows", rep_shown_flows(r));
	json_uint(j, "dataflows_fewer_percent",
		  rep_percent_less(s->all_flows, rep_shown_flows(r)));
	json_uint(j, "common_prefix", r->dsp->common_prefix);
	json_uint(j, "trace_events", a->stats.events);
	json_uint(j, "window", a->stats.window);
	json_uint(j, "questions", a->stats.questions);
	json_uint(j, "constraints", a->stats.constraints);
	json_uint(j, "variables", a->stats.variables);
	json_uint(j, "core_plain", a->stats.core_plain);
	json_uint(j, "core_minimal", a->stats.core_minimal);
	json_uint(j, "pairs_tried", a->stats.pairs_tried);
	json_bool(j, "timed_out", a->timed_out);
	json_uint(j, "peak_bytes", r->peak_bytes);
	json_uint(j, "run_instructions", r->run_insns);
	json_uint(j, "executed_instructions", r->executed_insns);
	rep_phases(r, &phases);
	json_array(j, "phases");
	for (size_t i = 0; i < phases.n; i++) {
		json_object(j, NULL);
		json_str(j, "name", phases.v[i].name);
		json_num(j, "seconds", phases.v[i].seconds);
		json_end(j);
	}
	json_end(j);
	json_array(j, "missing");
	char **why;
	size_t n = rep_missing(r, &why);

	for (size_t i = 0; i < n; i++) {
		json_str(j, NULL, why[i]);
		free(why[i]);
	}
	free(why);
	json_end(j);
	json_bool(j, "redacted", r->redact);
	json_end(j);
}

static void attempts(struct json *j, const struct report *r)
{
	json_array(j, "attempts");
	for (size_t i = 0; i < r->nattempts; i++) {
		const struct report_attempt *t = &r->attempts[i];

		json_object(j, NULL);
		json_str(j, "scope", t->scope);
		json_str(j, "method", t->method);
		json_num(j, "effort", t->effort);
		json_str(j, "outcome", t->outcome);
		json_str(j, "grade", t->grade);
		json_bool(j, "chosen", t->chosen);
		json_end(j);
	}
	json_end(j);
}

void report_json(FILE *f, const struct report *r)
{
	struct json j = { 0 };
	const char *text;

	json_object(&j, NULL);
	json_uint(&j, "schema", REPORT_SCHEMA);
	json_str(&j, "version", CSCHED_VERSION);
	json_object(&j, "confidence");
	json_str(&j, "level", rep_confidence_name(r->confidence));
	json_str(&j, "why", r->confidence_text);
	json_end(&j);
	failure(&j, r);
	schedule(&j, r);
	root_cause(&j, r);
	alternate(&j, r);
	projection(&j, r);
	stats(&j, r);
	attempts(&j, r);
	json_array(&j, "assumptions");
	for (size_t i = 0; (text = rep_assumption(r, i)); i++)
		json_str(&j, NULL, text);
	json_end(&j);
	json_end(&j);
	json_print(&j, f);
}
