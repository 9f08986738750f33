/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The random search: Algorithm 1 of ConTeGe, with its parameters; interleavings are explored, not left to chance. */
#include "analyzer/testgen/testgen.h"

#include "analyzer/hunt/child.h"

#include <string.h>

#define MAX_PREFIXES 25       /* maxPrefixes */
#define STATE_CHANGERS 5      /* maxStateChangerTries */
#define CUT_CALLS 2           /* maxCUTCallsTries */
#define SUFFIXES 20           /* of a prefix; later rounds of the paper go to 500 over all prefixes */
#define TRIES 10              /* to make a call that does not fail */

struct suffix {
	struct seq s;
	struct trace trace;
};

struct plan {
	struct seq prefix;
	unsigned object_call;
	struct suffix suffixes[SUFFIXES];
	unsigned n;
};

struct random {
	struct lab *lab;
	const struct testgen_options *o;
	struct testgen_result *r;
	seq_list_t roots, moves;
	struct plan *plans;
	unsigned nplans;
	VEC(uint64_t) prints;
	uint64_t state;
	double began;
	uint64_t skipped;
};

static unsigned pick(struct random *r, size_t n)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return (unsigned)(r->state % n);
}

static bool is_new(void *arg, const struct failure *f)
{
	struct random *r = arg;
	uint64_t print = failure_print(f);

	for (size_t i = 0; i < r->prints.n; i++)
		if (r->prints.v[i] == print)
			return false;
	return true;
}

/* callCUTTask: a random call is appended to *to that does not fail in one thread. */
static err_t call_task(struct random *r, struct test *t, struct seq *to, struct trace *out)
{
	for (unsigned i = 0; i < TRIES; i++) {
		struct seq before = *to;

		if (!seq_append(to, &r->moves.v[pick(r, r->moves.n)]))
			return NULL;
		struct test probe = *t;
		if (to == &t->prefix)
			probe.a.n = 0;
		struct trace trace;
		TRY(lab_trace(r->lab, &probe, JOB_A, &trace));
		if (trace.end == JOB_DONE) {
			if (out) {
				trace_free(out);
				*out = trace;
			} else {
				trace_free(&trace);
			}
			return NULL;
		}
		trace_free(&trace);
		*to = before;
	}
	return NULL;
}

static err_t new_plan(struct random *r, struct plan *p)
{
	struct test t = { .prefix = r->lab->setup };
	const struct seq *root = &r->roots.v[pick(r, r->roots.n)];

	if (!seq_append(&t.prefix, root))
		return NULL;
	t.object_call = root->n ? t.prefix.n - 1 : TEST_NO_OBJECT;
	for (unsigned i = 0; i < STATE_CHANGERS && t.prefix.n + 2 < SEQ_CALLS; i++)
		TRY(call_task(r, &t, &t.prefix, NULL));
	*p = (struct plan){ .prefix = t.prefix, .object_call = t.object_call };
	return NULL;
}

static err_t new_suffix(struct random *r, struct plan *p)
{
	struct suffix *s = &p->suffixes[p->n];
	struct test t = { .prefix = p->prefix, .object_call = p->object_call };

	*s = (struct suffix){ .s = { .n = 0 } };
	for (unsigned i = 0; i < CUT_CALLS; i++)
		TRY(call_task(r, &t, &t.a, &s->trace));
	s->s = t.a;
	p->n += s->s.n > 0;
	return NULL;
}

static err_t save(struct random *r)
{
	return r->o->save ? r->o->save(r->o->save_arg, r->lab, r->r) : NULL;
}

static err_t one_test(struct random *r, const struct plan *p, const struct suffix *a, const struct suffix *b)
{
	struct test t = { .prefix = p->prefix, .a = a->s, .b = b->s, .object_call = p->object_call };
	const struct trace *traces[JOB_THREADS] = { &a->trace, &b->trace };
	struct violation v;
	bool found = false;

	/* Further threads run other suffixes of the same prefix. */
	for (unsigned i = 2; i < r->o->threads; i++) {
		const struct suffix *more = &p->suffixes[pick(r, p->n)];

		t.part[i] = more->s;
		traces[i] = &more->trace;
	}
	if (testgen_is_elsewhere(r->o, r->lab->api, &t, &r->skipped))
		return NULL;
	seq_ending(&r->lab->pools, &t.post);
	r->r->tests++;
	r->r->considered++;
	TRY(lab_explore(r->lab, &t, traces, is_new, r, &found, &v));
	if (!found && r->o->guard_too) {
		r->lab->server.guard = true;
		err_t bad = lab_explore(r->lab, &t, traces, is_new, r, &found, &v);
		r->lab->server.guard = false;
		if (bad)
			return bad;
	}
	if (!found)
		TRY(testgen_compare(r->lab, r->o, &t, traces, r->began, r->r));
	if (!found)
		return save(r);
	v.seconds = child_now() - r->began;
	v.number = r->r->tests;
	if (!r->r->violations.n)
		r->r->first_seconds = v.seconds;
	err_t e = lab_minimise(r->lab, NULL, NULL, &v);
	vec_push(&r->prints, failure_print(&v.failure));
	vec_push(&r->r->violations, v);
	return e ? e : save(r);
}

static bool is_over(const struct random *r)
{
	return lab_expired(r->lab) || (r->o->most_tests && r->r->tests >= r->o->most_tests) ||
	       (r->o->most_violations && r->r->violations.n >= r->o->most_violations);
}

static err_t rounds(struct random *r)
{
	unsigned idle = 0;

	while (!is_over(r) && idle < 100) {
		struct plan *p;

		if (r->nplans < MAX_PREFIXES && (!r->nplans || pick(r, 3) == 0)) {
			TRY(new_plan(r, &r->plans[r->nplans]));
			r->nplans++;
		}
		p = &r->plans[pick(r, r->nplans)];
		if (p->n == SUFFIXES) {
			idle++;
			continue;
		}
		unsigned before = p->n;
		TRY(new_suffix(r, p));
		idle = p->n == before ? idle + 1 : 0;
		for (unsigned i = 0; p->n > before && i < p->n && !is_over(r); i++)
			TRY(one_test(r, p, &p->suffixes[p->n - 1], &p->suffixes[i]));
	}
	r->r->exhausted = !is_over(r);
	return NULL;
}

err_t testgen_random(struct lab *lab, const struct testgen_options *o, struct testgen_result *out)
{
	struct random r = { .lab = lab, .o = o, .r = out, .began = child_now(), .state = (o->seed + 1) * 0x9e3779b97f4a7c15ull };
	const struct api *a = lab->api;
	err_t e = NULL;

	lab->deadline = o->seconds > 0 ? r.began + o->seconds : 0;
	seq_roots(&lab->pools, o->object, 8, &r.roots);
	for (size_t i = 0; i < a->functions.n; i++)
		if (api_is_move(a, &a->functions.v[i], o->object))
			seq_moves(&lab->pools, (int)i, 8, &r.moves);
	if (!r.roots.n || !r.moves.n)
		e = err_new(ERR_NOANSWER, "'%s' has no constructor or no method", a->objects.v[o->object].name);
	r.plans = xcalloc(MAX_PREFIXES, sizeof *r.plans);
	if (!e)
		e = rounds(&r);
	for (unsigned i = 0; i < r.nplans; i++)
		for (unsigned k = 0; k < r.plans[i].n; k++)
			trace_free(&r.plans[i].suffixes[k].trace);
	free(r.plans);
	vec_free(&r.roots);
	vec_free(&r.moves);
	vec_free(&r.prints);
	out->seconds = child_now() - r.began;
	out->jobs = lab->server.jobs;
	out->traces = lab->traces;
	out->trace_seconds = lab->trace_seconds;
	return e;
}
