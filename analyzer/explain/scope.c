/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What may be looked at is a value; what is extracted from a run follows from it alone. */
#include "analyzer/explain/candidate.h"

#include "common/strbuf.h"

#include <inttypes.h>
#include <string.h>

char *scope_text(const struct explain_scope *s, const struct ext_result *x)
{
	struct strbuf b = { 0 };

	if (!x)
		strbuf_fmt(&b, "the last %" PRIu64 " shared events", s->window);
	else if (s->in_middle)
		strbuf_fmt(&b, "%" PRIu64 " events around an update that was lost", x->total);
	else if (x->from)
		strbuf_fmt(&b, "the last %" PRIu64 " shared events", x->total);
	else
		strbuf_fmt(&b, "the whole run, %" PRIu64 " shared events", x->total);
	if (s->focus)
		strbuf_str(&b, ", only what the failing thread touched");
	if (s->onward)
		strbuf_str(&b, ", and what threads do next");
	if (s->model == SCHED_TSO)
		strbuf_str(&b, ", with store buffers");
	return strbuf_take(&b);
}

bool scope_same(const struct explain_scope *a, const struct explain_scope *b)
{
	return a->window == b->window && a->whole == b->whole && a->in_middle == b->in_middle && a->focus == b->focus &&
	       a->onward == b->onward && a->model == b->model &&
	       (!a->in_middle || !memcmp(&a->around, &b->around, sizeof a->around));
}

struct stop {
	struct explanation *e;
	const struct explain_options *o;
};

static bool stops(void *arg, const char *phase, double part)
{
	const struct stop *x = arg;

	return explain_out_of_time(x->e) || (x->o->progress && x->o->progress(x->o->progress_arg, phase, part));
}

struct ext_options explain_extraction(struct explanation *e, const struct explain_scope *s)
{
	struct ext_survey **survey = &e->surveys[s->in_middle ? 0 : 1 + s->focus + 2 * s->onward];

	/* Which memory is shared was surveyed for one stretch in the middle; in another it is another. */
	if (s->in_middle) {
		ext_survey_free(*survey);
		*survey = NULL;
	}
	if (!*survey)
		*survey = ext_survey_new();
	return (struct ext_options){ .survey = *survey, .window = s->window, .whole = s->whole,
				     .tail = s->model == SCHED_TSO ? (uint64_t)LIMIT_TAIL_TSO : 0, .onward = s->onward,
				     .focus = s->focus, .middle = s->in_middle ? &s->around : NULL };
}

err_t scope_extract(struct explanation *e, const struct explain_options *o, const struct explain_scope *s,
		    struct ext_result **out)
{
	struct stop stop = { e, o };
	struct ext_options x = explain_extraction(e, s);
	double since = explain_clock();

	x.progress = stops;
	x.progress_arg = &stop;
	*out = NULL;
	err_t bad = ext_extract(e->t, e->images, e->run, &x, out);
	if (bad)
		return explain_out_of_time(e) ? err_wrap(bad, "--timeout is over") : bad;
	explain_phase_done(e, "symbolic traces", since);
	return NULL;
}

uint64_t scope_larger(const struct explanation *e, uint64_t window, const struct ext_result *x)
{
	if (x->total >= window / (uint64_t)LIMIT_THIN)
		return window * (uint64_t)LIMIT_GROWTH;
	if (window < LIMIT_LARGEST_WINDOW / LIMIT_THIN || LIMIT_EXECUTIONS * explain_effort_again(e) > e->effort / 2)
		return window * (uint64_t)LIMIT_THIN;
	return UINT64_MAX;
}
