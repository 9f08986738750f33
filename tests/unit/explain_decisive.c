/* Of what a saved run turns round, the pair that cut something in two is told. */
#include "analyzer/explain/explain.h"
#include "tests/lib/check.h"
#include "tests/lib/sym_fixture.h"

/* T0.1 does two things to one variable, T0.2 one in between; `saving' has them behind each other. */
static enum explain_pair told(enum sym_op first, enum sym_op last, enum sym_op between, bool goes_on)
{
	struct fixture fx;
	struct sched_edge pair = { { 0, SYM_NONE }, { 0, SYM_NONE } };
	struct sched_order saving = { 0 };
	size_t end = 0;

	fixture_init(&fx, "/home/u/shop", "/src/shop.c");
	struct expr_pool *pool = fx.trace->pool;
	uint32_t n = fixture_var(&fx, "n", "int", 0);
	expr_id one = expr_const(pool, 32, 1);

	sym_add_thread(fx.trace, "T0.1", NULL);
	sym_add_thread(fx.trace, "T0.2", NULL);
	fixture_event(&fx, 0, first, n, "sell", 10);
	fixture_event(&fx, 0, last, n, "sell", 12);
	fixture_event(&fx, 1, between, n, "sell", 12);
	for (uint32_t th = 0; th < 2; th++)
		for (uint32_t i = 0; i < fx.trace->threads[th].nevents; i++) {
			struct sym_event *e = fixture_at(&fx, th, i);
			expr_id seen = th == 0 && i == 1 && goes_on ? fixture_sym(&fx, 0, 0) : e->symbol;

			if (e->op != SYM_READ)
				e->value = seen == EXPR_NONE ? one : expr_binary(pool, EX_ADD, seen, one);
		}
	fixture_order(&fx, &fx.answer.failing, "0 1 0");
	fixture_order(&fx, &saving, "0 0 1");
	enum explain_pair got = explain_decisive_pair(fx.trace, &fx.answer.failing, 1, 3, &saving, 1, &pair, &end);

	CHECK(pair.before.thread == 1 && pair.after.thread == 0 && pair.after.index == 1 && end == 3,
	      "it is what came in between, and before what");
	fixture_order_free(&saving);
	fixture_free(&fx);
	return got;
}

int main(void)
{
	CHECK(told(SYM_READ, SYM_WRITE, SYM_WRITE, true) == EXPLAIN_PAIR_CUTS, "a write between read and write cuts");
	CHECK(told(SYM_RMW, SYM_RMW, SYM_RMW, false) == EXPLAIN_PAIR_ACCESSES,
	      "counting between two that count, too, cuts nothing");
	CHECK(told(SYM_RMW, SYM_RMW, SYM_RMW, true) == EXPLAIN_PAIR_CUTS,
	      "it does where the second goes on with what the first one read");
	CHECK(told(SYM_RMW, SYM_RMW, SYM_READ, false) == EXPLAIN_PAIR_CUTS,
	      "so does a look in between");
	CHECK_END();
}
