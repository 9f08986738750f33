/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The systematic searches. Breadth first (Figure 5 of ConCrash, of which a search without a stack is a special case):
 * prefixes of growing length, from each state every pair of calls that can disturb each other. In front of that, when it
 * is asked for, call sequences by coverage (autocontest.c).
 */
#include "analyzer/testgen/search.h"

#include "analyzer/hunt/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ROOTS 4        /* ways to make an object, with different states ... */
#define PROBED_ROOTS 24     /* ... of so many that are tried */
#define MOST_VALUES 6       /* calls of one function with different values */
#define MOST_MOVES 64
#define MOST_PREFIXES 400   /* of one level */

const char *const testgen_rule_names[] = { "exception", "stack", "redundant", "interfere", "interleave", "state",
					   "d1", "d2", "d3", "b1", "b2", NULL };

static bool is_crashing(const struct search *s, unsigned move)
{
	const struct seq *m = &s->moves.v[move];

	return !s->o->crashing || s->later ||
	       !strcmp(s->lab->api->functions.v[m->calls[m->n - 1].function].symbol, s->o->crashing);
}

/* Which of equals is tried first is up to the seed; without one it is the order of their names. */
static void shuffle(struct search *s)
{
	uint64_t x = s->o->seed * 0x9e3779b97f4a7c15ull;

	for (size_t i = s->moves.n; s->o->seed && i > 1; i--) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		struct seq t = s->moves.v[i - 1];
		s->moves.v[i - 1] = s->moves.v[x % i];
		s->moves.v[x % i] = t;
	}
}

static void find_moves(struct search *s)
{
	const struct api *a = s->lab->api;
	unsigned values = MOST_VALUES, functions = 0;

	for (size_t i = 0; i < a->functions.n; i++)
		functions += api_is_move(a, &a->functions.v[i], s->o->object);
	while (values > 1 && functions * values > MOST_MOVES)
		values--;
	for (size_t i = 0; i < a->functions.n; i++) {
		if (api_is_move(a, &a->functions.v[i], s->o->object))
			seq_moves(&s->lab->pools, (int)i, values, &s->moves);
	}
	shuffle(s);
}

static void remark(struct search *s, int function, const char *what)
{
	struct api_function *f = (struct api_function *)&s->lab->api->functions.v[function];

	if (f->left_out)
		return;
	api_leave_out(f, what);
	vec_push(&s->r->remarks, xasprintf("%s is left out: %s", f->name, what));
}

/* A function that ends the process or never returns is not called again. */
static void look_at_end(struct search *s, const struct seq *m, const struct trace *t)
{
	int function = m->calls[m->n - 1].function;

	if (t->end == JOB_EXIT)
		remark(s, function, "it ends the process");
	else if (t->end == JOB_HANG)
		remark(s, function, "it does not return");
}

struct test search_test(const struct prefix *p, const struct seq *a, const struct seq *b)
{
	struct test t = { .prefix = p->s, .object_call = p->object_call };

	if (a)
		t.a = *a;
	if (b)
		t.b = *b;
	return t;
}

/* Does it make an object? */
static err_t probe(struct search *s, const struct seq *root, const struct prefix *p, bool *makes, uint64_t *state)
{
	struct test t = search_test(p, NULL, NULL);
	const struct job *j = s->lab->server.job;
	struct trace alone;

	if (root->n && s->lab->api->functions.v[root->calls[root->n - 1].function].left_out) {
		*makes = false;
		return NULL;
	}
	TRY(lab_trace(s->lab, &t, JOB_A, &alone));
	if (root->n)
		look_at_end(s, root, &alone);
	*makes = alone.end == JOB_DONE && (t.object_call == TEST_NO_OBJECT || j->results[t.object_call]);
	*state = alone.state;
	trace_free(&alone);
	return NULL;
}

static err_t no_roots(const struct search *s, bool tried)
{
	const char *type = s->lab->api->objects.v[s->o->object].name;

	if (!tried)
		return err_new(ERR_NOANSWER, "no function makes a '%s': csched testgen --list shows what was understood, "
			       "and a testgen.conf can name a constructor", type);
	if (s->r->remarks.n)
		return err_new(ERR_NOANSWER, "no call made a '%s' (%s); a testgen.conf can name values for the constructor",
			       type, s->r->remarks.v[0]);
	return err_new(ERR_NOANSWER, "no call made a '%s': the constructor returned NULL or failed each time; a testgen.conf "
		       "can name values for it", type);
}

static err_t find_roots(struct search *s)
{
	seq_list_t roots = { 0 };
	VEC(uint64_t) states = { 0 };
	err_t e = NULL;

	seq_roots(&s->lab->pools, s->o->object, PROBED_ROOTS, &roots);
	for (size_t i = 0; i < roots.n && s->roots.n < MOST_ROOTS && !e; i++) {
		struct prefix p = { .s = s->lab->setup };
		uint64_t state = 0;
		bool makes = false;

		if (!seq_append(&p.s, &roots.v[i]))
			continue;
		p.object_call = roots.v[i].n ? p.s.n - 1 : TEST_NO_OBJECT;
		e = probe(s, &roots.v[i], &p, &makes, &state);
		if (makes && !search_seen(states.v, states.n, state)) {
			vec_push(&s->roots, p);
			vec_push(&states, state);
		}
	}
	if (!e && !s->roots.n)
		e = no_roots(s, roots.n > 0);
	vec_free(&states);
	vec_free(&roots);
	return e;
}

/* Which arguments are nothing. */
static uint64_t shape_of(const struct api *a, const struct seq_call *c)
{
	const struct api_function *f = &a->functions.v[c->function];
	uint64_t h = 1;

	for (unsigned i = 0; i < c->nargs; i++)
		h = 2 * h + (f->params[i].kind != API_INT && c->args[i].kind == SEQ_NUMBER && !c->args[i].number);
	return h * 0x9e3779b97f4a7c15ull;
}

err_t search_trace(struct search *s, const struct prefix *p, const struct seq *move, struct trace *out)
{
	struct test t = search_test(p, move, NULL);

	search_show(s);
	TRY(lab_trace(s->lab, &t, JOB_A, out));
	look_at_end(s, move, out);
	out->shape = shape_of(s->lab->api, &move->calls[move->n - 1]);
	return NULL;
}

/* ---- one prefix ---- */

static err_t try_pairs(struct search *s, const struct prefix *p, const struct trace *traces)
{
	pairs_t list = { 0 };

	for (unsigned i = 0; i < s->moves.n; i++)
		for (unsigned k = s->o->crashing && !s->later ? 0 : i; k < s->moves.n; k++)
			if (is_crashing(s, i))
				search_consider(s, (struct pair){ .prefix = p, .move_a = &s->moves.v[i],
					.move_b = &s->moves.v[k], .a = &traces[i], .b = &traces[k] }, &list);
	err_t e = search_pairs(s, &list);
	vec_free(&list);
	return e;
}

/* The prefixes that this one leads to, those first that do something to what the crashing call uses. */
static void extend(struct search *s, const struct prefix *p, const struct trace *traces, prefixes_t *next)
{
	for (unsigned i = 0; i < s->moves.n && next->n < MOST_PREFIXES; i++) {
		struct prefix longer = *p;

		if (traces[i].end != JOB_DONE || traces[i].frees_object)
			continue;
		if (search_on(s, TESTGEN_STATE) && search_seen(s->states.v, s->states.n, traces[i].state)) {
			search_pruned(s, TESTGEN_STATE);
			continue;
		}
		vec_push(&s->states, traces[i].state);
		if (!seq_append(&longer.s, &s->moves.v[i]))
			continue;
		for (unsigned k = 0; k < s->moves.n && !longer.first; k++)
			longer.first = is_crashing(s, k) && trace_interferes(&traces[k], &traces[i]);
		vec_push(next, longer);
	}
}

static void note_sequential(struct search *s, const struct prefix *p, unsigned move)
{
	struct failure f;

	failure_of(s->lab->server.job, &f);
	f.thread = 0; /* no other thread has a part in it */
	if (!s->r->sequential && s->o->wanted && s->o->wanted(s->o->arg, &f)) {
		s->r->sequential_test = search_test(p, &s->moves.v[move], NULL);
		s->r->sequential = seq_call_text(s->lab->api, &s->moves.v[move], s->moves.v[move].n - 1);
	}
	failure_free(&f);
}

static err_t try_prefix(struct search *s, const struct prefix *p, prefixes_t *next)
{
	struct trace *traces = xcalloc(s->moves.n + 1, sizeof *traces);
	err_t e = NULL;

	for (unsigned i = 0; i < s->moves.n && !e && !lab_expired(s->lab); i++) {
		const struct seq *move = &s->moves.v[i];

		if (s->lab->api->functions.v[move->calls[move->n - 1].function].left_out)
			continue;
		e = search_trace(s, p, move, &traces[i]);
		if (!e && traces[i].end == JOB_SIGNAL && !s->later && is_crashing(s, i))
			note_sequential(s, p, i);
	}
	if (!e)
		e = try_pairs(s, p, traces);
	/* What fails alone needs no second thread: nothing is gained by a longer prefix. */
	s->done |= s->r->sequential != NULL;
	if (!e && !s->done)
		extend(s, p, traces, next);
	for (unsigned i = 0; i < s->moves.n; i++)
		trace_free(&traces[i]);
	free(traces);
	return e;
}

static int first_ones(const void *x, const void *y)
{
	const struct prefix *a = x, *b = y;

	return (int)b->first - (int)a->first;
}

static err_t breadth_first(struct search *s)
{
	prefixes_t level = { 0 }, next = { 0 };
	err_t e = NULL;

	for (size_t i = 0; i < s->roots.n; i++)
		vec_push(&level, s->roots.v[i]);
	for (unsigned depth = 0; depth <= s->o->depth && !e && !s->done && level.n; depth++) {
		s->r->depth = depth;
		for (size_t i = 0; i < level.n && !e && !s->done; i++) {
			snprintf(s->where, sizeof s->where, "level %u, prefix %zu of %zu", depth, i + 1, level.n);
			e = try_prefix(s, &level.v[i], &next);
			s->done |= lab_expired(s->lab);
		}
		vec_free(&level);
		/* A stable order: the same search every time. */
		if (next.n > 1)
			qsort(next.v, next.n, sizeof *next.v, first_ones);
		level = next;
		next = (prefixes_t){ 0 };
	}
	vec_free(&level);
	vec_free(&next);
	s->r->exhausted = !s->done;
	return e;
}

/*
 * The crashing call need not be one of the two that disturb each other: it may stumble over what two others have left.
 * Any two calls, and the crashing one behind them.
 */
static err_t crash_later(struct search *s)
{
	struct seq *looks = &s->lab->looks;

	for (unsigned i = 0; i < s->moves.n && !looks->n; i++)
		if (is_crashing(s, i) && s->moves.v[i].n == 1)
			seq_append(looks, &s->moves.v[i]);
	if (!looks->n)
		return NULL;
	s->later = true;
	vec_free(&s->pairs);
	vec_free(&s->shaped);
	vec_free(&s->states);
	err_t e = breadth_first(s);
	looks->n = 0;
	return e;
}

err_t testgen_search(struct lab *lab, const struct testgen_options *o, struct testgen_result *r)
{
	struct search s = { .lab = lab, .o = o, .r = r, .began = child_now(), .progress.what = "testing" };

	lab->deadline = o->seconds > 0 ? s.began + o->seconds : 0;
	find_moves(&s);
	err_t e = find_roots(&s);
	if (!e && !s.moves.n)
		e = err_new(ERR_NOANSWER, "%s has no usable function for '%s'", lab->api->soname,
			    lab->api->objects.v[o->object].name);
	if (!e && o->strategy && !strcmp(o->strategy, "coverage"))
		e = search_sequences(&s);
	if (!e && !s.done)
		e = breadth_first(&s);
	if (!e && !s.done && o->crashing && !r->violations.n)
		e = crash_later(&s);
	progress_end(&s.progress);
	r->seconds = child_now() - s.began;
	r->jobs = lab->server.jobs;
	r->traces = lab->traces;
	r->trace_seconds = lab->trace_seconds;
	vec_free(&s.moves);
	vec_free(&s.pairs);
	vec_free(&s.shaped);
	vec_free(&s.states);
	vec_free(&s.prints);
	vec_free(&s.roots);
	return e;
}

/* One test of two functions is enough: what they return is a matter of values. */
static bool is_known(const struct testgen_result *r, const struct test *t)
{
	int x = t->a.calls[t->a.n - 1].function, y = t->b.calls[t->b.n - 1].function;

	for (size_t i = 0; i < r->odd.n; i++) {
		const struct test *o = &r->odd.v[i].test;
		int ox = o->a.calls[o->a.n - 1].function, oy = o->b.calls[o->b.n - 1].function;

		if ((x == ox && y == oy) || (x == oy && y == ox))
			return true;
	}
	return false;
}

err_t testgen_compare(struct lab *lab, const struct testgen_options *o, const struct test *t,
		      const struct trace *const *traces, double began, struct testgen_result *r)
{
	struct violation v;
	bool found = false;

	if (!o->results || is_known(r, t))
		return NULL;
	TRY(lab_compare(lab, t, traces, &found, &v));
	if (!found)
		return NULL;
	v.seconds = child_now() - began;
	v.number = r->tests;
	vec_push(&r->odd, v);
	return NULL;
}

void testgen_result_free(struct testgen_result *r)
{
	for (size_t i = 0; i < r->odd.n; i++)
		violation_free(&r->odd.v[i]);
	vec_free(&r->odd);
	for (size_t i = 0; i < r->violations.n; i++)
		violation_free(&r->violations.v[i]);
	for (size_t i = 0; i < r->remarks.n; i++)
		free(r->remarks.v[i]);
	free(r->sequential);
	vec_free(&r->violations);
	vec_free(&r->remarks);
}
