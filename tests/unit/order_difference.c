/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Orders with pairs turned round, and delta debugging over them, judged by brute force on small random programs: a failing
 * and a passing order are enumerated, and every set of the pairs in which they differ. All pairs turned pass, none fails,
 * the set found passes without needing any other, and each pair of it is needed.
 */
#include "analyzer/order/turn.h"
#include "tests/lib/brute.h"
#include "tests/lib/check.h"
#include "tests/lib/random_trace.h"

#define MOST_PAIRS 10 /* whose sets are enumerated */

struct seen {
	struct sched_order failing, passing;
};

static struct sched_order take(const struct sym_trace *t, const struct brute_state *s)
{
	struct sched_order o = { .refs = xcalloc(BT * BE, sizeof *o.refs) };

	for (uint32_t i = 0; i < t->nthreads; i++)
		for (uint32_t k = 0; k < t->threads[i].nevents; k++)
			if (s->at[i][k] >= 0)
				o.refs[s->at[i][k]] = (struct sched_ref){ i, k };
	o.n = (size_t)s->n;
	return o;
}

static bool note(struct brute *b, const struct brute_state *s)
{
	struct seen *seen = b->arg;

	if (!seen->failing.n && brute_fails(b, s))
		seen->failing = take(b->t, s);
	if (!seen->passing.n && brute_avoids(b, s))
		seen->passing = take(b->t, s);
	return seen->failing.n && seen->passing.n;
}

struct verdict {
	bool fails, passes;
};

static bool judge(struct brute *b, const struct brute_state *s)
{
	struct verdict *v = b->arg;

	v->fails |= brute_fails(b, s);
	v->passes |= brute_avoids(b, s);
	return true;
}

struct subject {
	struct brute *b;
	const struct seen *seen;
	struct sched_edge pairs[MOST_PAIRS];
	size_t n;
	unsigned tests, followed; /* orders that were executed with exactly the marked pairs turned */
	bool strayed;
};

/* Exactly the marked ones of the pairs, and what these imply. */
static bool is_followed(const struct subject *x, const struct sched_order *o, const bool *marked)
{
	struct order_places p = order_places_of(x->b->t, o);
	bool good = o->n == x->seen->failing.n;

	for (size_t i = 0; i < x->n; i++) {
		bool turned = false;

		for (size_t k = 0; k < x->n; k++)
			turned |= marked[k] && order_turn_implies(&x->pairs[k], &x->pairs[i]);
		good &= (order_place(&p, x->pairs[i].after) < order_place(&p, x->pairs[i].before)) == turned;
	}
	order_places_free(&p);
	return good;
}

static enum order_verdict execute(void *arg, const bool *marked)
{
	struct subject *x = arg;
	struct verdict v = { 0 };
	struct sched_order o;
	size_t end;

	x->tests++;
	if (!order_turn(x->b->t, &x->seen->failing, x->pairs, x->n, marked, &o, &end))
		return ORDER_UNRESOLVED;
	x->strayed |= !is_followed(x, &o, marked) || end > o.n;
	x->b->forced = &o;
	x->b->arg = &v;
	x->b->done = judge;
	brute_all(x->b);
	sched_order_free(&o);
	return v.passes ? ORDER_PASSES : v.fails ? ORDER_FAILS : ORDER_UNRESOLVED;
}

struct tally {
	unsigned programs, subjects, minimal, smallest, strayed, wrong;
};

static enum order_verdict of_set(struct subject *x, unsigned set)
{
	bool marked[MOST_PAIRS];

	for (size_t i = 0; i < x->n; i++)
		marked[i] = set >> i & 1;
	return execute(x, marked);
}

static void complain(struct tally *y, uint64_t seed, const char *what)
{
	if (y->wrong++ < 3)
		printf("# seed %llu: %s\n", (unsigned long long)seed, what);
}

static void check_difference(struct tally *y, struct subject *x, uint64_t seed)
{
	bool marked[MOST_PAIRS] = { false };
	unsigned left = 1000, set = 0, least = (unsigned)x->n;

	if (of_set(x, 0) != ORDER_FAILS)
		complain(y, seed, "the failing order does not fail");
	/* What decides need not be a pair of accesses where locks or waits do. */
	if (of_set(x, (1u << x->n) - 1) != ORDER_PASSES)
		return;
	y->subjects++;
	if (!order_ddmin(x->n, execute, x, &left, marked))
		complain(y, seed, "not minimal, with tests left");
	for (size_t i = 0; i < x->n; i++)
		set |= (unsigned)marked[i] << i;
	if (of_set(x, set) != ORDER_PASSES)
		complain(y, seed, "what was found does not pass");
	for (size_t i = 0; i < x->n; i++)
		if (marked[i] && __builtin_popcount(set) > 1 && of_set(x, set & ~(1u << i)) == ORDER_PASSES)
			complain(y, seed, "more than is needed");
	y->minimal++;
	for (unsigned s = 1; s < 1u << x->n; s++)
		if (of_set(x, s) == ORDER_PASSES && (unsigned)__builtin_popcount(s) < least)
			least = (unsigned)__builtin_popcount(s);
	y->smallest += (unsigned)__builtin_popcount(set) == least;
	y->strayed += x->strayed;
	if (x->strayed)
		complain(y, seed, "an order turns other pairs than it was asked to");
}

static void one(struct tally *y, enum kind kind, uint64_t seed)
{
	struct seen seen = { 0 };
	struct brute b = { .limit = 300000, .onward = true, .arg = &seen, .done = note };

	state = seed * 0x9e3779b97f4a7c15ull + 88172645463325252ull;
	for (int i = 0; i < 8; i++)
		rnd(2);
	struct sym_trace *t = make(kind, false);
	struct subject x = { .b = &b, .seen = &seen };

	b.t = t;
	brute_all(&b);
	y->programs++;
	if (seen.failing.n && seen.passing.n) {
		x.n = order_turned(t, &seen.failing, &seen.passing, 0, SIZE_MAX, x.pairs, MOST_PAIRS);
		b.limit = UINT64_MAX;
		if (x.n && x.n < MOST_PAIRS)
			check_difference(y, &x, seed);
	}
	sched_order_free(&seen.failing);
	sched_order_free(&seen.passing);
	sym_trace_free(t);
}

/* A thread that has to wait in a critical section waits before it. */
static void check_locks(void)
{
	struct sym_trace *t = sym_trace_new();
	struct sym_event e;
	struct sched_order out, was = { .refs = xcalloc(8, sizeof *was.refs) };
	bool marked = true;
	size_t end = 0;

	for (uint32_t th = 0; th < 2; th++)
		sym_add_thread(t, th ? "T0.1" : "T0", NULL);
	sym_add_var(t, &(struct sym_var){ .name = (char *)"n", .width = 8, .has_init = true, .init = expr_const(t->pool, 8, 0) });
	sym_add_object(t, &(struct sym_object){ .name = (char *)"m", .kind = SYM_MUTEX, .owner = SYM_NONE });
	for (uint32_t th = 0; th < 2; th++)
		for (int i = 0; i < 3; i++) {
			sym_event_init(&e, i == 0 ? SYM_LOCK : i == 1 ? SYM_WRITE : SYM_UNLOCK);
			e.target = 0;
			e.value = i == 1 ? expr_const(t->pool, 8, th) : EXPR_NONE;
			sym_add_event(t, th, &e);
			was.refs[was.n++] = (struct sched_ref){ th, (uint32_t)i };
		}
	const struct sched_edge pair = { { 0, 1 }, { 1, 1 } };

	CHECK(order_innermost_lock(t, 0, 1) == 0 && order_innermost_lock(t, 0, 0) == SYM_NONE,
	      "the innermost lock at an event");
	CHECK(order_turn(t, &was, &pair, 1, &marked, &out, &end), "two critical sections can change places");
	CHECK(out.n == 6 && out.refs[0].thread == 1 && out.refs[2].thread == 1 && out.refs[3].thread == 0 && end == 5,
	      "as a whole");
	sched_order_free(&out);
	sched_order_free(&was);
	sym_trace_free(t);
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 400;

	check_locks();
	for (enum kind k = RACES; k <= LOCKS; k++) {
		struct tally y = { 0 };

		for (unsigned i = 1; i <= n; i++)
			one(&y, k, (uint64_t)i * KINDS + k);
		CHECK(!y.wrong && y.minimal == y.subjects && y.subjects > n / 10 && y.smallest * 10 >= y.subjects * 9,
		      "%s: of %u programs %u have a difference, %u minimal, %u as small as any, %u wrong", kind_names[k],
		      y.programs, y.subjects, y.minimal, y.smallest, y.wrong);
	}
	CHECK_END();
}
