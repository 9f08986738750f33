/*
 * Thousands of small random programs, each judged by brute force: a failing
 * schedule is found exactly when one exists, an alternate exactly when one
 * exists, and the root cause forces the failure and holds nothing in excess.
 * The failing schedule has the fewest context switches there can be, nearly always.
 * Under TSO brute force is an operational model with store buffers; fences are
 * named exactly when the failure needs those, enough of them and no more.
 */
#include "analyzer/schedule/schedule.h"
#include "common/vec.h"
#include "tests/lib/brute.h"
#include "tests/lib/check.h"
#include "tests/lib/random_trace.h"

#include <stdlib.h>

static bool saw_fail(struct brute *b, const struct brute_state *s)
{
	return *(bool *)b->arg |= brute_fails(b, s);
}

static bool saw_avoid(struct brute *b, const struct brute_state *s)
{
	return *(bool *)b->arg |= brute_avoids(b, s);
}

/* Which sets of cause edges are broken by runs that do not fail? */
struct cause_check {
	const struct sched_answer *a;
	bool insufficient;
	uint64_t needed; /* bit k: some such run breaks edge k alone */
};

static bool judge_cause(struct brute *b, const struct brute_state *s)
{
	struct cause_check *c = b->arg;
	uint64_t broken = 0;

	if (!brute_avoids(b, s))
		return false;
	for (size_t k = 0; k < c->a->ncause; k++) {
		struct sched_edge e = c->a->cause[k];
		int x = s->at[e.before.thread][e.before.index];
		int y = s->at[e.after.thread][e.after.index];

		/* A pending event that never happens comes after everything. */
		if (y >= 0 && (x < 0 || x > y))
			broken |= 1ull << k;
	}
	if (!broken)
		c->insufficient = true;
	if (!(broken & (broken - 1)))
		c->needed |= broken;
	return c->insufficient;
}

/* Which sets of store-load pairs are out of program order in runs that fail? */
struct delay_check {
	const struct sched_answer *a;
	bool insufficient;
	uint64_t needed; /* bit k: some failing run has pair k alone turned */
};

static bool judge_delays(struct brute *b, const struct brute_state *s)
{
	struct delay_check *c = b->arg;
	uint64_t turned = 0;

	if (!brute_fails(b, s))
		return false;
	for (size_t k = 0; k < c->a->ndelays; k++) {
		struct sched_delay d = c->a->delays[k];

		if (s->at[d.store.thread][d.store.index] > s->at[d.load.thread][d.load.index])
			turned |= 1ull << k;
	}
	if (!turned)
		c->insufficient = true;
	if (!(turned & (turned - 1)))
		c->needed |= turned;
	return c->insufficient && !c->a->ndelays;
}

/* Of all failing runs, the fewest times another thread comes on. */
static bool count_switches(struct brute *b, const struct brute_state *s)
{
	size_t switches = 0, *fewest = b->arg;
	int by[BT * BE];

	if (!brute_fails(b, s))
		return false;
	for (int t = 0; t < BT; t++)
		for (int i = 0; i < BE; i++)
			if (s->at[t][i] >= 0)
				by[s->at[t][i]] = t;
	for (int k = 1; k < s->n; k++)
		switches += by[k] != by[k - 1];
	if (switches < *fewest)
		*fewest = switches;
	return false;
}

struct tally {
	unsigned programs, skipped, failing, alternates, causes, deterministic, buffers;
	unsigned counted, fewest; /* failing schedules judged by their switches, and as good as any */
	unsigned wrong;
};

static void complain(struct tally *y, const struct sym_trace *t, uint64_t seed, const char *what)
{
	if (y->wrong++ < 2) {
		printf("# seed %llu: %s\n", (unsigned long long)seed, what);
		err_free(sym_write(stdout, t));
	}
}

static bool brute_order(struct brute *b, const struct sched_order *o, bool want_fail)
{
	bool yes = false;

	b->forced = o;
	b->arg = &yes;
	b->done = want_fail ? saw_fail : saw_avoid;
	brute_all(b);
	b->forced = NULL;
	return yes;
}

/* Fences: none are named exactly when it fails without store buffers; else enough, and no more. */
static void judge_fences(struct tally *y, const struct sym_trace *t, struct brute *b, uint64_t seed,
			 const struct sched_answer *a)
{
	struct delay_check c = { .a = a };
	bool fails_in_order = false;

	if (!b->tso)
		return;
	b->onward = false;
	b->tso = false;
	b->arg = &fails_in_order;
	b->done = saw_fail;
	brute_all(b);
	b->tso = true;
	if (b->steps > b->limit && !fails_in_order) {
		y->skipped++;
		return;
	}
	if (fails_in_order != !a->ndelays)
		complain(y, t, seed, a->ndelays ? "fences invented" : "fences missed");
	if (fails_in_order)
		return;
	y->buffers++;
	b->arg = &c;
	b->done = judge_delays;
	brute_all(b);
	if (b->steps > b->limit)
		y->skipped++;
	else if (c.insufficient)
		complain(y, t, seed, "fences do not help");
	else if (c.needed != (1ull << a->ndelays) - 1)
		complain(y, t, seed, "more fences than needed");
}

static void judge_switches(struct tally *y, const struct sym_trace *t, struct brute *b,
			   uint64_t seed, const struct sched_answer *a)
{
	size_t fewest = SIZE_MAX;

	if (a->failing.switches > a->recorded.switches)
		complain(y, t, seed, "reduction added context switches");
	if (seed % 2) /* every run there is: half of the programs will do */
		return;
	b->arg = &fewest;
	b->done = count_switches;
	brute_all(b);
	if (b->steps > b->limit)
		return;
	if (a->failing.switches < fewest)
		complain(y, t, seed, "context switches miscounted");
	y->counted++;
	y->fewest += a->failing.switches == fewest;
}

static void judge(struct tally *y, const struct sym_trace *t, struct brute *b, uint64_t seed,
		  const struct sched_answer *a, bool fail_exists)
{
	bool avoid_exists = false, has_alternate = false;
	struct cause_check c = { .a = a };

	if (a->timed_out || a->found != fail_exists) {
		complain(y, t, seed, a->found ? "failing schedule invented" : "failing schedule missed");
		return;
	}
	if (!a->found)
		return;
	y->failing++;
	b->onward = false;
	if (!brute_order(b, &a->recorded, true))
		complain(y, t, seed, "recorded schedule does not execute");
	/* Time stamps bind the recorded run, not others. */
	b->times = false;
	if (!brute_order(b, &a->failing, true))
		complain(y, t, seed, "failing schedule does not execute");
	judge_switches(y, t, b, seed, a);
	judge_fences(y, t, b, seed, a);
	b->onward = true;
	b->arg = &avoid_exists;
	b->done = saw_avoid;
	brute_all(b);
	if (b->steps > b->limit && !avoid_exists) {
		y->skipped++;
		return;
	}
	for (size_t i = 0; i < a->nalternates; i++) {
		if (a->alternates[i].path_differs)
			continue;
		has_alternate = true;
		if (!brute_order(b, &a->alternates[i].order, false))
			complain(y, t, seed, "alternate does not execute");
	}
	if (has_alternate != avoid_exists)
		complain(y, t, seed, avoid_exists ? "alternate missed" : "alternate invented");
	if (a->deterministic && avoid_exists)
		complain(y, t, seed, "called deterministic");
	y->alternates += has_alternate;
	y->deterministic += a->deterministic;
	if (!avoid_exists)
		return;
	if (!a->cause_minimal || !a->ncause) {
		complain(y, t, seed, "no minimal cause");
		return;
	}
	y->causes++;
	b->arg = &c;
	b->done = judge_cause;
	brute_all(b);
	if (b->steps > b->limit)
		y->skipped++;
	else if (c.insufficient)
		complain(y, t, seed, "cause does not force the failure");
	else if (c.needed != (a->ncause == 64 ? ~0ull : (1ull << a->ncause) - 1))
		complain(y, t, seed, "cause is not minimal");
}

static void one(struct tally *y, enum kind kind, uint64_t seed, bool tso)
{
	struct sched_options o;
	struct sched_answer *a;
	struct sym_trace *t;
	struct brute b = { .tso = tso, .times = kind == TIMES, .limit = 3000000 };
	bool fail_exists = false;
	err_t e;

	state = seed * 0x9e3779b97f4a7c15ull + 88172645463325252ull;
	for (int i = 0; i < 8; i++)
		rnd(2);
	t = make(kind, tso);
	b.t = t;
	b.arg = &fail_exists;
	b.done = saw_fail;
	brute_all(&b);
	/* Clocks that contradict the path are left aside. */
	if (b.times && !fail_exists) {
		b.times = false;
		brute_all(&b);
	}
	y->programs++;
	if (b.steps > b.limit && !fail_exists) {
		y->skipped++;
		sym_trace_free(t);
		return;
	}
	sched_options_init(&o);
	o.model = tso ? SCHED_TSO : SCHED_SC;
	e = sched_solve(t, &o, &a);
	if (e) {
		complain(y, t, seed, e->msg);
		err_free(e);
	} else {
		judge(y, t, &b, seed, a, fail_exists);
		sched_answer_free(a);
	}
	sym_trace_free(t);
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? atoi(argv[1]) : 220;
	unsigned first = argc > 2 ? atoi(argv[2]) : 1;

	for (int tso = 0; tso < 2; tso++) {
		for (enum kind k = 0; k < KINDS; k++) {
			struct tally y = { 0 };

			if (tso && (k == TIMES || k == DEADLOCKS || k == BARRIERS))
				continue;
			if (argc > 3 && atoi(argv[3]) != (int)k)
				continue;
			for (unsigned i = first; i < first + n; i++)
				one(&y, k, (uint64_t)i * KINDS + k, tso);
			CHECK(y.counted && y.fewest * 100 >= y.counted * 90,
			      "%s, %s: the fewest context switches for %u of %u",
			      tso ? "TSO" : "SC", kind_names[k], y.fewest, y.counted);
			CHECK(!y.wrong && y.failing > n / 20 && (!tso || k != BUFFERS || y.buffers > n / 20),
			      "%s, %s: %u programs, %u fail, %u with alternate, %u causes, "
			      "%u deterministic, %u by store buffers, %u too large, %u wrong",
			      tso ? "TSO" : "SC", kind_names[k], y.programs, y.failing,
			      y.alternates, y.causes, y.deterministic, y.buffers, y.skipped,
			      y.wrong);
		}
	}
	CHECK_END();
}
