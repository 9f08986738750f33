/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pairs of calls as tests: the pruning rules of ConCrash, the order in which they are tried, and what comes of it. */
#include "analyzer/testgen/search.h"

#include "analyzer/hunt/child.h"

#include <inttypes.h>
#include <stdlib.h>

#define STATES_OF_A_PAIR 4  /* coverage knows no values: the same pair may fail only from or with the next state */
#define MOST_SOLVED 6       /* orders that the solver is asked for, of one test */
#define MOST_GROUPS 4096    /* tests of three or more threads from one state */
#define NO_CANDIDATE 100    /* rank of a pair without an interleaving */

bool search_on(const struct search *s, enum testgen_rule rule)
{
	return s->o->rules & rule;
}

void search_pruned(struct search *s, enum testgen_rule rule)
{
	s->r->pruned[__builtin_ctz(rule)]++;
}

bool search_seen(const uint64_t *v, size_t n, uint64_t x)
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

/* Level, tests tried, and what each rule pruned. */
void search_show(struct search *s)
{
	struct strbuf b = { 0 };

	if (s->o->quiet)
		return;
	for (unsigned k = 0; k < TESTGEN_RULES; k++)
		if (s->r->pruned[k])
			strbuf_fmt(&b, "%s%s %" PRIu64, b.n ? ", " : "; pruned: ", testgen_rule_names[k], s->r->pruned[k]);
	progress_words(&s->progress, "%s, %" PRIu64 " tests%s", s->where, s->r->tests, b.n ? b.s : "");
	strbuf_free(&b);
}

static bool is_new(void *arg, const struct failure *f)
{
	struct search *s = arg;

	if (search_seen(s->prints.v, s->prints.n, failure_print(f)))
		return false;
	return !s->o->wanted || s->o->wanted(s->o->arg, f);
}

static uint64_t hash_text(uint64_t h, char *text)
{
	for (const char *p = text; *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211ull;
	free(text);
	return h * 31;
}

/* By what the test says, which is the same in each shard. */
bool testgen_is_elsewhere(const struct testgen_options *o, const struct api *a, const struct test *t, uint64_t *skipped)
{
	uint64_t h = 14695981039346656037ull;

	if (!o->parts)
		return false;
	for (unsigned p = JOB_PREFIX; p < JOB_POST; p++)
		h = p < JOB_A + 2 || test_part_of(t, p)->n ? hash_text(h, seq_text(a, test_part_of(t, p))) : h;
	if ((h >> 20) % o->parts != o->part - 1)
		return true;
	return *skipped < o->skip && ++*skipped;
}

/* Calls from the same state, one for each thread. */
struct group {
	const struct prefix *prefix;
	const struct seq *moves[JOB_THREADS];
	const struct trace *traces[JOB_THREADS];
	unsigned n, rank;
};

/* The orders that the solver has for the failure: the crashing call is the first one. */
static void solve(struct search *s, const struct group *g, candidate_list_t *out)
{
	if (!s->o->solve || s->later || g->n != 2)
		return;
	uint64_t questions = s->r->questions;
	solve_orders(g->traces[0], g->traces[1], s->o->solve, MOST_SOLVED, out, &s->r->questions);
	s->r->asked += s->r->questions > questions;
	s->r->answered += out->n > 0;
}

/* Only what was allocated can be used after it was freed, or overrun; and a buffer of the caller's. */
static bool has_blocks(const struct api *a, const struct group *g)
{
	for (unsigned i = 0; i < g->n; i++)
		for (uint32_t k = 0; k < g->traces[i]->nevents; k++)
			if (g->traces[i]->events[k].kind == JOB_FREE || g->traces[i]->events[k].kind == JOB_ALLOC)
				return true;
	for (unsigned i = 0; i < g->n; i++) {
		const struct seq_call *c = &g->moves[i]->calls[g->moves[i]->n - 1];

		for (unsigned k = 0; k < c->nargs; k++)
			if (c->args[k].kind == SEQ_BUFFER || a->functions.v[c->function].params[k].sets.n)
				return true;
	}
	return false;
}

/* With the heap as it is; where nothing fails, or nothing says where, with a guarded one. */
static err_t explore(struct search *s, const struct group *g, const struct test *t, bool *found, struct violation *v)
{
	struct violation better;
	bool again = false;

	if (s->o->race)
		return lab_find_race(s->lab, t, g->traces[0], g->traces[1], s->o->race, found, v);
	TRY(lab_explore(s->lab, t, g->traces, is_new, s, found, v));
	if (!s->o->guard_too || (*found && (v->failure.nframes || v->failure.end != JOB_SIGNAL)) || !has_blocks(s->lab->api, g))
		return NULL;
	s->lab->server.guard = true;
	err_t e = lab_explore(s->lab, t, g->traces, is_new, s, &again, &better);
	s->lab->server.guard = false;
	if (e || !again)
		return e;
	if (*found)
		violation_free(v);
	*v = better;
	*found = true;
	return NULL;
}

static err_t try_group(struct search *s, const struct group *g)
{
	struct test t = search_test(g->prefix, NULL, NULL);
	candidate_list_t solved = { 0 };
	struct violation v;
	bool found = false;
	err_t e = NULL;

	for (unsigned i = 0; i < g->n; i++)
		t.part[i] = *g->moves[i];
	if (testgen_is_elsewhere(s->o, s->lab->api, &t, &s->skipped)) {
		s->done |= lab_expired(s->lab);
		return NULL;
	}
	seq_ending(&s->lab->pools, &t.post);
	solve(s, g, &solved);
	s->r->tests++;
	s->r->groups += g->n > 2;
	search_show(s);
	s->lab->solved = &solved;
	e = explore(s, g, &t, &found, &v);
	s->lab->solved = NULL;
	vec_free(&solved);
	if (!s->r->violations.n)
		s->r->orders = s->lab->runs;
	if (e)
		return e;
	if (found) {
		v.seconds = child_now() - s->began;
		v.number = s->r->tests;
		if (!s->r->violations.n)
			s->r->first_seconds = v.seconds;
		e = v.race ? NULL : lab_minimise(s->lab, s->o->wanted, s->o->arg, &v);
		vec_push(&s->prints, failure_print(&v.failure));
		vec_push(&s->r->violations, v);
	}
	if (!found)
		e = testgen_compare(s->lab, s->o, &t, g->traces, s->began, s->r);
	if (!e && s->o->save)
		e = s->o->save(s->o->save_arg, s->lab, s->r);
	s->done = s->done || lab_expired(s->lab) || (s->o->most_tests && s->r->tests >= s->o->most_tests) ||
		  (s->o->most_violations && s->r->violations.n >= s->o->most_violations);
	return e;
}

static int by_rank(const void *x, const void *y)
{
	const struct pair *a = x, *b = y;

	return a->rank != b->rank ? (a->rank < b->rank ? -1 : 1) : (int)a->number - (int)b->number;
}

static unsigned rank_of(const struct trace *a, const struct trace *b)
{
	candidate_list_t list = { 0 };

	trace_candidates(a, b, 1, &list);
	unsigned rank = list.n ? list.v[0].rank : NO_CANDIDATE;
	vec_free(&list);
	return rank;
}

void search_consider(struct search *s, struct pair pair, pairs_t *list)
{
	const struct trace *a = pair.a, *b = pair.b;
	uint64_t low = a->hash < b->hash ? a->hash : b->hash, high = a->hash < b->hash ? b->hash : a->hash;

	pair.coverage = low * 31 + (high ^ high >> 7);
	pair.shaped = pair.coverage ^ (a->shape + b->shape);
	pair.states = a->state ^ b->state * 31;
	s->r->considered++;
	if (a->end != JOB_DONE || b->end != JOB_DONE) {
		search_pruned(s, TESTGEN_EXCEPTION);
		if (search_on(s, TESTGEN_EXCEPTION) || !a->nevents || !b->nevents)
			return;
	}
	if (s->o->reaches && !s->later && search_on(s, TESTGEN_STACK) && !s->o->reaches(s->o->arg, a)) {
		search_pruned(s, TESTGEN_STACK);
		return;
	}
	if (search_on(s, TESTGEN_REDUNDANT) && times_seen(s->shaped.v, s->shaped.n, pair.shaped) >= STATES_OF_A_PAIR) {
		search_pruned(s, TESTGEN_REDUNDANT);
		return;
	}
	if (search_on(s, TESTGEN_INTERFERE) && !trace_interferes(a, b) && !trace_interferes(b, a)) {
		search_pruned(s, TESTGEN_INTERFERE);
		return;
	}
	if (search_on(s, TESTGEN_INTERLEAVE) && !trace_interleaves(a, b)) {
		search_pruned(s, TESTGEN_INTERLEAVE);
		return;
	}
	for (size_t p = 0; p < list->n && search_on(s, TESTGEN_REDUNDANT); p++)
		if (list->v[p].shaped == pair.shaped && list->v[p].states == pair.states) {
			search_pruned(s, TESTGEN_REDUNDANT);
			return;
		}
	/* What was not seen at all comes first. */
	pair.rank = rank_of(a, b) + 20 * times_seen(s->pairs.v, s->pairs.n, pair.coverage);
	pair.number = (unsigned)list->n;
	vec_push(&s->pairs, pair.coverage);
	vec_push(&s->shaped, pair.shaped);
	vec_push(list, pair);
}

static struct group group_of(const struct pair *p)
{
	return (struct group){ p->prefix, { p->move_a, p->move_b }, { p->a, p->b }, 2, p->rank };
}

/* Adds to the group what makes a pair with its first call; a call twice where it makes one with itself. */
static bool enlarge(struct group *g, const struct pair *p)
{
	bool first = p->move_a == g->moves[0];

	if (p->prefix != g->prefix || (!first && p->move_b != g->moves[0]))
		return false;
	g->moves[g->n] = first ? p->move_b : p->move_a;
	g->traces[g->n++] = first ? p->b : p->a;
	g->rank += p->rank;
	return true;
}

static int by_group_rank(const void *x, const void *y)
{
	const struct group *a = x, *b = y;

	return a->rank != b->rank ? (a->rank < b->rank ? -1 : 1) : a < b ? -1 : a > b;
}

typedef VEC(struct group) groups_t;

static void gather(const pairs_t *list, const struct group *from, size_t behind, unsigned n, groups_t *out)
{
	for (size_t k = behind; k < list->n && out->n < MOST_GROUPS; k++) {
		struct group g = *from;

		if (!enlarge(&g, &list->v[k]))
			continue;
		if (g.n == n)
			vec_push(out, g);
		else
			gather(list, &g, k, n, out);
	}
}

/* Pairs with a call in common are a test of three threads, and so on. */
static err_t try_groups(struct search *s, const pairs_t *list, unsigned n)
{
	groups_t groups = { 0 };
	err_t e = NULL;

	for (size_t i = 0; i < list->n; i++) {
		struct group g = group_of(&list->v[i]);

		gather(list, &g, list->v[i].move_a == list->v[i].move_b ? i : i + 1, n, &groups);
	}
	if (groups.n > 1)
		qsort(groups.v, groups.n, sizeof *groups.v, by_group_rank);
	for (size_t i = 0; i < groups.n && !e && !s->done; i++)
		e = try_group(s, &groups.v[i]);
	vec_free(&groups);
	return e;
}

err_t search_pairs(struct search *s, pairs_t *list)
{
	err_t e = NULL;

	if (list->n > 1)
		qsort(list->v, list->n, sizeof *list->v, by_rank);
	for (size_t i = 0; i < list->n && !e && !s->done; i++) {
		struct group g = group_of(&list->v[i]);

		if (g.rank < NO_CANDIDATE)
			e = try_group(s, &g);
	}
	for (unsigned n = 3; n <= s->o->threads && !e && !s->done; n++)
		e = try_groups(s, list, n);
	return e;
}
