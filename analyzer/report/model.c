#include "analyzer/report/internal.h"

#include "analyzer/term.h"
#include "analyzer/symtrace/sym_names.h"

#include <string.h>

static void prove(struct report_validation *v, bool have)
{
	for (int x = 0; x < REPORT_EXECUTORS; x++)
		v->by[x].why = have ? REP_NOT_ATTEMPTED : "there is no such schedule";
	if (have)
		v->by[REPORT_CHECKER] = (struct report_proof){ .runs = 1, .agreed = 1 };
}

void report_init(struct report *r, const struct sym_trace *t, const struct sched_answer *a,
		 const struct dsp *d)
{
	memset(r, 0, sizeof *r);
	r->trace = t;
	r->answer = a;
	r->dsp = d;
	r->failure.text = t->failure.text;
	prove(&r->failing_proof, a->found);
	prove(&r->alternate_proof, a->found && a->nalternates);
	/* So far: by the solver and the checker. */
	if (a->found && a->deterministic) {
		r->confidence = REPORT_ALWAYS;
		r->confidence_text = "no order of the events avoids the failure: proved for the symbolic trace";
	} else if (a->found && a->ncause && a->nalternates) {
		r->confidence = a->cause_minimal && !a->rule ? REPORT_PROVED : REPORT_CONFIRMED;
		r->confidence_text = "of the symbolic trace: the checker executed both orders; the machine executed nothing";
	} else if (a->found && a->ncause) {
		r->confidence = REPORT_UNCONFIRMED;
		r->confidence_text = "no order that passes was found to compare with";
	}
	if (a->nalternates && a->alternates[0].executed)
		r->alternate_proof.by[REPORT_CHECKER] = (struct report_proof){ .why = REP_NOT_ATTEMPTED };
}

bool report_validated(const struct report_validation *v)
{
	const struct report_proof *p = &v->by[REPORT_MACHINE];

	if (!p->runs)
		p = &v->by[REPORT_CHECKER];
	return p->runs && p->agreed == p->runs;
}

const struct sched_order *rep_order(const struct report *r, enum dsp_which w)
{
	if (!r->answer->found || (w == DSP_ALTERNATE && !r->answer->nalternates))
		return NULL;
	return w == DSP_FAILING ? &r->answer->failing : &r->answer->alternates[0].order;
}

char *rep_replay(const struct report *r)
{
	char *program = rep_program(r);
	const char *command = r->failure.start ? r->failure.start : r->failure.command ? r->failure.command : program;
	struct strbuf b = { 0 };

	/* What happens in every order needs none to be enforced. */
	if (r->trace_path && r->answer->found && !r->answer->deterministic && !r->redact) {
		strbuf_str(&b, "csched replay --native ");
		strbuf_word(&b, r->trace_path, strlen(r->trace_path));
		strbuf_fmt(&b, " -- %s", command);
	}
	free(program);
	return b.n ? strbuf_take(&b) : NULL;
}

char *rep_debug(const struct report *r)
{
	struct strbuf b = { 0 };

	if (!r->trace_path || !r->position || r->redact)
		return NULL;
	strbuf_str(&b, "csched debug ");
	strbuf_word(&b, r->trace_path, strlen(r->trace_path));
	return strbuf_take(&b);
}

char *rep_program(const struct report *r)
{
	const char *command = r->failure.command, *slash;
	char *all;

	if (r->trace->program && *r->trace->program)
		all = xstrdup(r->trace->program);
	else if (command && *command)
		all = xasprintf("%.*s", (int)strcspn(command, " "), command);
	else
		all = xstrdup("program");
	slash = strrchr(all, '/');
	if (slash && slash[1])
		memmove(all, slash + 1, strlen(slash));
	return all;
}

const char *rep_failure_kind(const struct report *r)
{
	unsigned k = r->trace->failure.kind;

	return k < SYM_FAIL_KINDS ? sym_failure_names[k] : "unknown";
}

const char *rep_signal(const struct report *r, char buf[16])
{
	const char *text = r->failure.signal ? r->failure.signal : r->failure.text;
	size_t n;

	if (!r->failure.signal && r->trace->failure.kind != SYM_FAIL_SIGNAL)
		return NULL;
	if (!text || strncmp(text, "SIG", 3))
		return NULL;
	n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
	snprintf(buf, 16, "%.*s", n < 15 ? (int)n : 15, text);
	return buf;
}

bool rep_failure_ref(const struct report *r, struct sched_ref *ref)
{
	const struct sym_failure *f = &r->trace->failure;

	if (f->nblocked) {
		*ref = (struct sched_ref){ f->blocked[0].thread, f->blocked[0].event };
		return order_event_at(r->trace, *ref);
	}
	if (f->thread >= r->trace->nthreads)
		return false;
	const struct sym_thread *th = &r->trace->threads[f->thread];

	for (size_t i = th->nevents; i-- > 0;) {
		*ref = (struct sched_ref){ f->thread, (uint32_t)i };
		if (th->events[i].op == SYM_FAIL)
			return true;
	}
	return false;
}

size_t rep_missing(const struct report *r, char ***out)
{
	VEC(char *) all = { 0 };

	/* That no order is to blame is an answer, and told as one. */
	if (r->dsp->note && !r->dsp->deterministic && !r->answer->tried_always)
		vec_push(&all, xstrdup(r->dsp->note));
	else if (r->answer->why && !r->dsp->deterministic)
		vec_push(&all, xstrdup(r->answer->why));
	if (r->answer->timed_out)
		vec_push(&all,
			 xstrdup("The search was cut short by its time limit: what is shown is "
				 "the best found until then."));
	for (size_t i = 0; i < r->ngaps; i++) {
		/* The answer's own reason is said above. */
		if (r->answer->why && !strcmp(r->gaps[i].why, r->answer->why))
			continue;
		vec_push(&all, xasprintf("%s: %s", r->gaps[i].phase, r->gaps[i].why));
	}
	*out = all.v;
	return all.n;
}

const char *rep_assumption(const struct report *r, size_t idx)
{
	if (idx < r->trace->nassumptions)
		return r->trace->assumptions[idx];
	idx -= r->trace->nassumptions;
	return idx < r->nassumptions ? r->assumptions[idx] : NULL;
}

size_t rep_shown_flows(const struct report *r)
{
	const struct dsp_side *s = &r->dsp->side[DSP_FAILING];

	return r->dsp->has_alternate ? s->ndiffers : s->nflows;
}

unsigned rep_percent_less(size_t all, size_t part)
{
	return all && part < all ? (unsigned)((all - part) * 100 / all) : 0;
}

void rep_phases(const struct report *r, struct rep_phase_list *out)
{
	const struct report_phase solver[] = {
		{ "failing schedule", r->answer->stats.t_fail },
		{ "fewer switches", r->answer->stats.t_csr },
		{ "root cause", r->answer->stats.t_root },
		{ "alternate", r->answer->stats.t_alt },
	};
	const size_t room = sizeof out->v / sizeof *out->v - 4;

	out->n = 0;
	for (size_t i = 0; i < r->nphases && i < room; i++)
		out->v[out->n++] = r->phases[i];
	for (size_t i = 0; i < 4; i++)
		out->v[out->n++] = solver[i];
}

char *report_event_line(const struct report *r, enum dsp_which w, const struct dsp_event *e)
{
	struct strbuf b = { 0 }, clean = { 0 };
	struct rep_view v;

	rep_view_shown(r, w, e, &v);
	strbuf_fmt(&b, "%s  %s ", v.where ? v.where : "?", v.thread);
	rep_action(&b, r, e, &v, w);
	term_text(&clean, b.s, b.n);
	rep_view_free(&v);
	strbuf_free(&b);
	return strbuf_take(&clean);
}
