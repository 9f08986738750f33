/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The systematic search (Figure 5 of ConCrash, of which a search without a stack is a special case): prefixes
 * breadth first, from each state every pair of calls that can disturb each other.
 */
#include "analyzer/testgen/testgen.h"

#include "analyzer/hunt/child.h"
#include "analyzer/term.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ROOTS 4
#define MOST_VALUES 6       /* calls of one function with different values */
#define MOST_MOVES 64
#define STATES_OF_A_PAIR 4  /* coverage knows no values: the same pair may fail only from or with the next state */
#define MOST_PREFIXES 400   /* of one level */

const char *const testgen_rule_names[] = { "exception", "stack", "redundant", "interfere", "interleave", "state",
					   NULL };

struct prefix {
	struct seq s;
	unsigned object_call;
	bool first; /* what leads there interferes with the crashing call */
};
typedef VEC(struct prefix) prefixes_t;

struct search {
	struct lab *lab;
	const struct testgen_options *o;
	struct testgen_result *r;
	seq_list_t moves;
	VEC(uint64_t) pairs;  /* coverage */
	VEC(uint64_t) states;
	VEC(uint64_t) prints; /* failures found */
	prefixes_t level, next;
	double began;
	bool done;
};

struct pair {
	unsigned a, b, rank;
	uint64_t coverage, states; /* what the two calls lead to */
};

static bool on(const struct search *s, enum testgen_rule rule)
{
	return s->o->rules & rule;
}

static void pruned(struct search *s, enum testgen_rule rule)
{
	s->r->pruned[__builtin_ctz(rule)]++;
}

static bool seen(uint64_t *v, size_t n, uint64_t x)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == x)
			return true;
	return false;
}

static unsigned times_seen(const uint64_t *v, size_t n, uint64_t x)
{
	unsigned times = 0;

	for (size_t i = 0; i < n; i++)
		times += v[i] == x;
	return times;
}

static bool is_crashing(const struct search *s, unsigned move)
{
	const struct seq *m = &s->moves.v[move];

	return !s->o->crashing ||
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
		functions += !a->functions.v[i].left_out && a->functions.v[i].role == API_METHOD &&
			     a->functions.v[i].object == s->o->object;
	while (values > 1 && functions * values > MOST_MOVES)
		values--;
	for (size_t i = 0; i < a->functions.n; i++) {
		const struct api_function *f = &a->functions.v[i];

		if (!f->left_out && f->role == API_METHOD && f->object == s->o->object)
			seq_moves(&s->lab->pools, (int)i, values, &s->moves);
	}
	shuffle(s);
}

static err_t find_roots(struct search *s)
{
	seq_list_t roots = { 0 };

	seq_roots(&s->lab->pools, s->o->object, MOST_ROOTS, &roots);
	if (!roots.n)
		return err_new(ERR_NOANSWER, "no function makes a '%s': csched testgen --list shows what was understood, "
			       "and a testgen.conf can name a constructor", s->lab->api->objects.v[s->o->object].name);
	for (size_t i = 0; i < roots.n; i++) {
		struct prefix p = { .s = s->lab->setup };

		if (!seq_append(&p.s, &roots.v[i]))
			continue;
		p.object_call = p.s.n - 1;
		vec_push(&s->level, p);
	}
	vec_free(&roots);
	return NULL;
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

static void make_test(const struct search *s, const struct prefix *p, const struct seq *a, const struct seq *b,
		      struct test *out)
{
	*out = (struct test){ .prefix = p->s, .object_call = p->object_call };
	if (a)
		out->a = *a;
	if (b)
		out->b = *b;
	(void)s;
}

/* ---- one pair ---- */

static bool is_new(void *arg, const struct failure *f)
{
	struct search *s = arg;

	if (seen(s->prints.v, s->prints.n, failure_print(f)))
		return false;
	return !s->o->wanted || s->o->wanted(s->o->arg, f);
}

static err_t try_pair(struct search *s, const struct prefix *p, const struct trace *traces, const struct pair *pair)
{
	const struct trace *a = &traces[pair->a], *b = &traces[pair->b];
	struct violation v;
	struct test t;
	bool found = false;
	err_t e = NULL;

	make_test(s, p, &s->moves.v[pair->a], &s->moves.v[pair->b], &t);
	seq_ending(&s->lab->pools, &t.post);
	s->r->tests++;
	TRY(lab_explore(s->lab, &t, a, b, is_new, s, &found, &v));
	if (found) {
		v.seconds = child_now() - s->began;
		v.number = s->r->tests;
		if (!s->r->violations.n)
			s->r->first_seconds = v.seconds;
		e = lab_minimise(s->lab, s->o->wanted, s->o->arg, &v);
		vec_push(&s->prints, failure_print(&v.failure));
		vec_push(&s->r->violations, v);
	}
	if (!found)
		e = testgen_compare(s->lab, s->o, &t, a, b, s->began, s->r);
	s->done = s->done || lab_expired(s->lab) || (s->o->most_tests && s->r->tests >= s->o->most_tests) ||
		  (s->o->most_violations && s->r->violations.n >= s->o->most_violations);
	return e;
}

/* ---- one prefix ---- */

static int by_rank(const void *x, const void *y)
{
	const struct pair *a = x, *b = y;

	return a->rank != b->rank ? (a->rank < b->rank ? -1 : 1) : (int)a->a - (int)b->a ? (int)a->a - (int)b->a :
	       (int)a->b - (int)b->b;
}

static unsigned rank_of(const struct trace *a, const struct trace *b)
{
	candidate_list_t list = { 0 };

	trace_candidates(a, b, 1, &list);
	unsigned rank = list.n ? list.v[0].rank : 100;
	vec_free(&list);
	return rank;
}

static bool fails_alone(const struct trace *t)
{
	return t->end != JOB_DONE;
}

static void consider(struct search *s, const struct trace *traces, unsigned i, unsigned k, struct pair **pairs,
		     size_t *n)
{
	const struct trace *a = &traces[i], *b = &traces[k];
	uint64_t low = a->hash < b->hash ? a->hash : b->hash, high = a->hash < b->hash ? b->hash : a->hash;
	uint64_t both = low * 31 + (high ^ high >> 7), states = a->state ^ b->state * 31;

	s->r->considered++;
	if (fails_alone(a) || fails_alone(b)) {
		pruned(s, TESTGEN_EXCEPTION);
		if (on(s, TESTGEN_EXCEPTION) || !a->nevents || !b->nevents)
			return;
	}
	if (s->o->reaches && on(s, TESTGEN_STACK) && !s->o->reaches(s->o->arg, a)) {
		pruned(s, TESTGEN_STACK);
		return;
	}
	if (on(s, TESTGEN_REDUNDANT) && times_seen(s->pairs.v, s->pairs.n, both) >= STATES_OF_A_PAIR) {
		pruned(s, TESTGEN_REDUNDANT);
		return;
	}
	if (on(s, TESTGEN_INTERFERE) && !trace_interferes(a, b) && !trace_interferes(b, a)) {
		pruned(s, TESTGEN_INTERFERE);
		return;
	}
	if (on(s, TESTGEN_INTERLEAVE) && !trace_interleaves(a, b)) {
		pruned(s, TESTGEN_INTERLEAVE);
		return;
	}
	for (size_t p = 0; p < *n && on(s, TESTGEN_REDUNDANT); p++)
		if ((*pairs)[p].coverage == both && (*pairs)[p].states == states) {
			pruned(s, TESTGEN_REDUNDANT);
			return;
		}
	/* What was not seen at all comes first. */
	unsigned again = times_seen(s->pairs.v, s->pairs.n, both), rank = rank_of(a, b);
	vec_push(&s->pairs, both);
	*pairs = xrealloc(*pairs, (*n + 1) * sizeof **pairs);
	(*pairs)[(*n)++] = (struct pair){ i, k, rank + 20 * again, both, states };
}

static err_t try_pairs(struct search *s, const struct prefix *p, const struct trace *traces)
{
	struct pair *pairs = NULL;
	size_t n = 0;
	err_t e = NULL;

	for (unsigned i = 0; i < s->moves.n; i++)
		for (unsigned k = s->o->crashing ? 0 : i; k < s->moves.n; k++)
			if (is_crashing(s, i))
				consider(s, traces, i, k, &pairs, &n);
	qsort(pairs, n, sizeof *pairs, by_rank);
	for (size_t i = 0; i < n && !e && !s->done; i++)
		if (pairs[i].rank < 100)
			e = try_pair(s, p, traces, &pairs[i]);
	free(pairs);
	return e;
}

/* The prefixes that this one leads to, those first that do something to what the crashing call uses. */
static void extend(struct search *s, const struct prefix *p, const struct trace *traces)
{
	for (unsigned i = 0; i < s->moves.n && s->next.n < MOST_PREFIXES; i++) {
		struct prefix longer = *p;

		if (traces[i].end != JOB_DONE || traces[i].frees_object)
			continue;
		if (on(s, TESTGEN_STATE) && seen(s->states.v, s->states.n, traces[i].state)) {
			pruned(s, TESTGEN_STATE);
			continue;
		}
		vec_push(&s->states, traces[i].state);
		if (!seq_append(&longer.s, &s->moves.v[i]))
			continue;
		for (unsigned k = 0; k < s->moves.n && !longer.first; k++)
			longer.first = is_crashing(s, k) && trace_interferes(&traces[k], &traces[i]);
		vec_push(&s->next, longer);
	}
}

static void note_sequential(struct search *s, const struct prefix *p, unsigned move)
{
	struct failure f;

	failure_of(s->lab->server.job, &f);
	f.thread = 0; /* no other thread has a part in it */
	if (!s->r->sequential && s->o->wanted && s->o->wanted(s->o->arg, &f)) {
		make_test(s, p, &s->moves.v[move], NULL, &s->r->sequential_test);
		s->r->sequential = seq_call_text(s->lab->api, &s->moves.v[move], s->moves.v[move].n - 1);
	}
	failure_free(&f);
}

static err_t try_prefix(struct search *s, const struct prefix *p)
{
	struct trace *traces = xcalloc(s->moves.n + 1, sizeof *traces);
	err_t e = NULL;

	for (unsigned i = 0; i < s->moves.n && !e && !lab_expired(s->lab); i++) {
		struct test t;

		make_test(s, p, &s->moves.v[i], NULL, &t);
		if (s->lab->api->functions.v[s->moves.v[i].calls[s->moves.v[i].n - 1].function].left_out)
			continue;
		e = lab_trace(s->lab, &t, JOB_A, &traces[i]);
		if (!e && traces[i].end == JOB_SIGNAL && is_crashing(s, i))
			note_sequential(s, p, i);
		look_at_end(s, &s->moves.v[i], &traces[i]);
	}
	if (!e)
		e = try_pairs(s, p, traces);
	/* What fails alone needs no second thread: nothing is gained by a longer prefix. */
	s->done |= s->r->sequential != NULL;
	if (!e && !s->done)
		extend(s, p, traces);
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

static void show(struct search *s, struct progress *p, size_t i)
{
	if (!s->o->quiet)
		progress_at(p, i, s->level.n);
}

static err_t levels(struct search *s)
{
	struct progress p = { .what = "testing" };
	err_t e = NULL;

	for (unsigned depth = 0; depth <= s->o->depth && !e && !s->done && s->level.n; depth++) {
		s->r->depth = depth;
		for (size_t i = 0; i < s->level.n && !e && !s->done; i++) {
			show(s, &p, i);
			e = try_prefix(s, &s->level.v[i]);
			s->done |= lab_expired(s->lab);
		}
		vec_free(&s->level);
		/* A stable order: the same search every time. */
		if (s->next.n > 1)
			qsort(s->next.v, s->next.n, sizeof *s->next.v, first_ones);
		s->level = s->next;
		s->next = (prefixes_t){ 0 };
	}
	progress_end(&p);
	s->r->exhausted = !s->done;
	return e;
}

err_t testgen_search(struct lab *lab, const struct testgen_options *o, struct testgen_result *r)
{
	struct search s = { .lab = lab, .o = o, .r = r, .began = child_now() };

	lab->deadline = o->seconds > 0 ? s.began + o->seconds : 0;
	find_moves(&s);
	err_t e = find_roots(&s);
	if (!e && !s.moves.n)
		e = err_new(ERR_NOANSWER, "no usable function takes a '%s'", lab->api->objects.v[o->object].name);
	if (!e)
		e = levels(&s);
	r->seconds = child_now() - s.began;
	r->jobs = lab->server.jobs;
	vec_free(&s.moves);
	vec_free(&s.pairs);
	vec_free(&s.states);
	vec_free(&s.prints);
	vec_free(&s.level);
	vec_free(&s.next);
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

err_t testgen_compare(struct lab *lab, const struct testgen_options *o, const struct test *t, const struct trace *a,
		      const struct trace *b, double began, struct testgen_result *r)
{
	struct violation v;
	bool found = false;

	if (!o->results || is_known(r, t))
		return NULL;
	TRY(lab_compare(lab, t, a, b, &found, &v));
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
