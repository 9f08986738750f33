/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One comparison of candidates: a strict weak order over all that execution can come to, and the better by what was executed. */
#include "analyzer/explain/judge.h"
#include "tests/lib/check.h"

#define KINDS 256

/* All combinations of what is known of a candidate. */
static void make(unsigned bits, struct candidate *c, struct sched_answer *a, struct ext_result *x)
{
	static struct sched_alternate passing;
	static struct sched_edge edge;
	static uint32_t computed[2] = { SYM_NONE, SYM_NONE };

	*x = (struct ext_result){ .computed = computed };
	*a = (struct sched_answer){ .found = bits & 1, .ncause = bits >> 1 & 1, .cause = &edge, .cause_minimal = bits >> 2 & 1,
				    .cause_executed = bits >> 3 & 1, .nalternates = bits >> 4 & 1, .alternates = &passing };
	*c = (struct candidate){ .extracted = x, .answer = a };
	c->failing_proof.by[REPORT_MACHINE] = (struct report_proof){ .runs = 1, .agreed = 1 };
	c->alternate_proof.by[REPORT_MACHINE] = (struct report_proof){ .runs = 1, .agreed = bits >> 5 & 1,
								      .fails_later = bits >> 6 & 1, .met = bits >> 7 & 1 };
}

static bool better(unsigned a, unsigned b)
{
	struct candidate x, y;
	struct sched_answer p, q;
	struct ext_result r, s;

	make(a, &x, &p, &r);
	make(b, &y, &q, &s);
	return judge_is_better(&x, &y);
}

static enum judge_grade grade(unsigned bits)
{
	struct candidate c;
	struct sched_answer a;
	struct ext_result x;

	make(bits, &c, &a, &x);
	return judge_grade(&c);
}

enum { FOUND = 1, CAUSE = 2, MINIMAL = 4, EXECUTED = 8, ALTERNATE = 16, PASSES = 32, LATER = 64, MET = 128 };

int main(void)
{
	unsigned wrong = 0, pairs = 0;
	static bool is[KINDS][KINDS];

	for (unsigned a = 0; a < KINDS; a++)
		for (unsigned b = 0; b < KINDS; b++)
			pairs += is[a][b] = better(a, b);
	for (unsigned a = 0; a < KINDS; a++)
		for (unsigned b = 0; b < KINDS; b++) {
			wrong += is[a][b] && is[b][a];
			wrong += grade(a) > grade(b) && !is[a][b];
			for (unsigned c = 0; c < KINDS; c++) {
				wrong += is[a][b] && is[b][c] && !is[a][c];
				wrong += !is[a][b] && !is[b][a] && is[a][c] != is[b][c];
			}
		}
	CHECK(pairs && !wrong, "of %u pairs each has an order, the same by any way, grades first: %u wrong", pairs, wrong);

	const unsigned core = FOUND | CAUSE | MINIMAL | ALTERNATE, executed = core | EXECUTED;

	CHECK(grade(core | PASSES) == JUDGE_PROVED, "a minimal core, both orders executed: proved");
	CHECK(grade(executed | PASSES) == JUDGE_CONFIRMED, "the same by executing: confirmed");
	CHECK(grade((executed | PASSES) & ~MINIMAL) == JUDGE_DIFFERS, "and of a pair that was not shown to be enough: less");
	CHECK(grade(core) == JUDGE_REFUTED, "whose passing order fails: nothing");
	CHECK(grade(core | PASSES | LATER) == JUDGE_FAILS_LATER, "or fails later: not confirmed");
	CHECK(better(executed | PASSES | MET, executed | PASSES), "past the failure point with its condition holding is better "
	      "than never coming there");
	CHECK(better(executed | PASSES, core | MET | PASSES | LATER), "but not better than not failing at all");
	CHECK_END();
}
