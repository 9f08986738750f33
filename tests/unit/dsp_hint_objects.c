/* Hints about objects: freed while somebody uses them, made known before they are filled in, changed by readers. */
#include "tests/lib/dsp_expect.h"

/*
 * T0.1 makes an item known and fills it in afterwards; T0.2 looks into it, at line `at', when it finds it. In between
 * T0.1 may have made known something else.
 */
static void known(struct fixture *fx, unsigned at, bool again)
{
	fixture_init(fx, "/home/u/shop", "/src/shop.c");
	struct sym_trace *t = fx->trace;
	uint32_t item = fixture_var(fx, "item", "struct item *", 0), price = fixture_var(fx, "item->price", "int", 0);

	fixture_children(fx);
	uint32_t publish = fixture_event(fx, 1, SYM_WRITE, item, "make", 10);
	if (again)
		fixture_writes(fx, 1, item, 0, "make", 9);
	uint32_t fill = fixture_event(fx, 1, SYM_WRITE, price, "make", 11);
	uint32_t find = fixture_event(fx, 2, SYM_READ, item, "sell", 20);
	uint32_t look = fixture_event(fx, 2, SYM_READ, price, "sell", at);

	fixture_at(fx, 1, publish)->value = expr_const(t->pool, 64, 0x5000);
	fixture_at(fx, 1, fill)->value = expr_const(t->pool, 32, 7);
	fixture_event(fx, 2, SYM_FAIL, SYM_NONE, "sell", 22);
	fixture_cond(fx, 2, find, expr_binary(t->pool, EX_EQ, fixture_sym(fx, 2, find),
					      expr_const(t->pool, 64, 0x5000)));
	fixture_fails(fx, SYM_FAIL_ASSERT, 2, "Assertion `item->price' failed",
		      expr_binary(t->pool, EX_EQ, fixture_sym(fx, 2, look), expr_const(t->pool, 32, 0)));
	fixture_order(fx, &fx->answer.failing, again ? "00 1 222 11" : "00 1 222 1");
	fixture_cause(fx, 2, look, 1, fill);
	fixture_alternate(fx, again ? "00 1 2 11 22" : "00 1 2 1 22");
}

static void known_too_early(struct fixture *fx)
{
	known(fx, 21, false);
}

/* Both are read in one expression: the other order would be seen there, too. */
static void compared_with(struct fixture *fx)
{
	known(fx, 20, false);
}

/* What T0.2 found is over before T0.1 writes. */
static void known_before(struct fixture *fx)
{
	known(fx, 21, true);
}

/* How much there is to do was there before T0.1 was made; by that it came to look for what comes behind its creation. */
static void given_a_count(struct fixture *fx)
{
	fixture_init(fx, "/home/u/shop", "/src/shop.c");
	struct sym_trace *t = fx->trace;
	uint32_t count = fixture_var(fx, "count", "int", 0), owner = fixture_var(fx, "owner", "int", 0);

	sym_add_thread(t, "T0", NULL);
	sym_add_thread(t, "T0.1", NULL);
	fixture_writes(fx, 0, count, 3, "main", 35);
	fixture_event(fx, 0, SYM_FORK, 1, "main", 37);
	uint32_t set = fixture_writes(fx, 0, owner, 7, "main", 39);
	uint32_t many = fixture_event(fx, 1, SYM_READ, count, "work", 20);
	uint32_t look = fixture_event(fx, 1, SYM_READ, owner, "work", 27);

	fixture_cond(fx, 1, many, expr_binary(t->pool, EX_EQ, fixture_sym(fx, 1, many), expr_const(t->pool, 32, 3)));
	fixture_event(fx, 1, SYM_FAIL, SYM_NONE, "work", 27);
	fixture_fails(fx, SYM_FAIL_ASSERT, 1, "Assertion `owner' failed",
		      expr_binary(t->pool, EX_EQ, fixture_sym(fx, 1, look), expr_const(t->pool, 32, 0)));
	fixture_order(fx, &fx->answer.failing, "00 111 0");
	fixture_cause(fx, 1, look, 0, set);
	fixture_alternate(fx, "00 1 0 11");
}

/* T0.1 posts the semaphore and stores the item afterwards; T0.2 takes what is there, and empties the place. */
static void posted_too_early(struct fixture *fx)
{
	fixture_init(fx, "/home/u/shop", "/src/shop.c");
	struct sym_object sem = { .name = (char *)"items", .kind = SYM_SEM, .owner = SYM_NONE };
	uint32_t items = sym_add_object(fx->trace, &sem), slot = fixture_var(fx, "slot", "int", 0);

	fixture_children(fx);
	fixture_event(fx, 1, SYM_READ, slot, "make", 8);
	fixture_event(fx, 1, SYM_SEMPOST, items, "make", 10);
	uint32_t fill = fixture_writes(fx, 1, slot, 7, "make", 11);
	uint32_t wait = fixture_event(fx, 2, SYM_SEMWAIT, items, "sell", 20);
	uint32_t look = fixture_event(fx, 2, SYM_READ, slot, "sell", 21);
	uint32_t clear = fixture_writes(fx, 2, slot, 0, "sell", 22);

	fixture_at(fx, 2, wait)->result = 1;
	fixture_event(fx, 2, SYM_FAIL, SYM_NONE, "sell", 23);
	fixture_asserts(fx, 2, look, 0, "Assertion `item' failed");
	fixture_order(fx, &fx->answer.failing, "00 11 2222 1");
	fixture_cause(fx, 2, clear, 1, fill);
	fixture_alternate(fx, "00 111 2222");
}

/*
 * T0.1 reads the head of a list and what comes next, and swaps. In between T0.2 takes the first two elements, and
 * brings the first one back, which `later' comes behind.
 */
static void swapped(struct fixture *fx, uint64_t later)
{
	fixture_init(fx, "/home/u/list", "/src/list.c");
	struct sym_trace *t = fx->trace;
	uint32_t head = fixture_var(fx, "head", "int", 1), next = fixture_var(fx, "next[1]", "int", 2);

	fixture_children(fx);
	uint32_t read = fixture_event(fx, 1, SYM_READ, head, "get", 10);
	uint32_t second = fixture_event(fx, 1, SYM_READ, next, "get", 11);
	uint32_t swap = fixture_event(fx, 1, SYM_RMW, head, "get", 12);

	fixture_at(fx, 1, swap)->value = fixture_sym(fx, 1, second);
	fixture_cond(fx, 1, swap, expr_binary(t->pool, EX_EQ, fixture_sym(fx, 1, swap), fixture_sym(fx, 1, read)));
	fixture_writes(fx, 2, head, 2, "get", 12);
	uint32_t away = fixture_writes(fx, 2, head, 3, "get", 12);
	fixture_writes(fx, 2, next, later, "put", 20);
	fixture_writes(fx, 2, head, 1, "put", 21);
	uint32_t end = fixture_event(fx, 0, SYM_READ, head, "main", 30);

	fixture_event(fx, 0, SYM_FAIL, SYM_NONE, "main", 31);
	fixture_asserts(fx, 0, end, 2, "Assertion `head == 3' failed");
	fixture_order(fx, &fx->answer.failing, "00 11 2222 1 00");
	fixture_cause(fx, 1, second, 2, away + 1);
	fixture_alternate(fx, "00 2222 111 00");
}

static void swapped_blindly(struct fixture *fx)
{
	swapped(fx, 3);
}

/* It was away, but what comes next is what was read: nothing is lost by that. */
static void swapped_rightly(struct fixture *fx)
{
	swapped(fx, 2);
}

/* Both count under a lock that both have for reading. */
static void readers_count(struct fixture *fx)
{
	fixture_init(fx, "/home/u/stats", "/src/stats.c");
	struct sym_trace *t = fx->trace;
	struct sym_object lock = { .name = (char *)"rw", .kind = SYM_RWLOCK, .owner = SYM_NONE };
	uint32_t rw = sym_add_object(t, &lock), n = fixture_var(fx, "n", "int", 0);
	uint32_t read[3];

	fixture_children(fx);
	for (uint32_t k = 1; k < 3; k++) {
		fixture_event(fx, k, SYM_RDLOCK, rw, "count", 10);
		read[k] = fixture_event(fx, k, SYM_READ, n, "count", 11);
		uint32_t write = fixture_event(fx, k, SYM_WRITE, n, "count", 11);

		fixture_at(fx, k, write)->value = expr_binary(t->pool, EX_ADD, fixture_sym(fx, k, read[k]),
							      expr_const(t->pool, 32, 1));
		fixture_event(fx, k, SYM_UNLOCK, rw, "count", 12);
	}
	fixture_event(fx, 0, SYM_JOIN, 1, "main", 30);
	fixture_event(fx, 0, SYM_JOIN, 2, "main", 31);
	uint32_t sum = fixture_event(fx, 0, SYM_READ, n, "main", 32);

	fixture_event(fx, 0, SYM_FAIL, SYM_NONE, "main", 33);
	fixture_fails(fx, SYM_FAIL_ASSERT, 0, "Assertion `n == 2' failed",
		      expr_unary(t->pool, EX_BNOT, expr_binary(t->pool, EX_EQ, fixture_sym(fx, 0, sum),
							       expr_const(t->pool, 32, 2))));
	fixture_order(fx, &fx->answer.failing, "00 11 2222 11 0000");
	fixture_cause(fx, 1, read[1], 2, 2);
	fixture_alternate(fx, "00 2222 1111 0000");
}

static const struct expected table[] = {
	{ "an object that is known before it is filled in", known_too_early, DSP_HINT_ORDER,
	  { "Do shop.c:11 (T0.1 writes `item->price') before shop.c:10", "writes `item'", "T0.2 reads",
	    "shop.c:21 too early" }, DSP_HINT_NONE, 1 },
	{ "two things that are compared", compared_with, DSP_HINT_ATOMIC,
	  { "Make shop.c:10 to 11 one atomic step: T0.2 reads `item->price' at shop.c:20" }, DSP_HINT_NONE, 1 },
	{ "an object that is known before another one is filled in", known_before, DSP_HINT_ATOMIC,
	  { "one atomic step" }, DSP_HINT_NONE, 1 },
	{ "what a thread was started with", given_a_count, DSP_HINT_ORDER,
	  { "Do shop.c:39 (writes `owner') before T0.1 is created at shop.c:37" }, DSP_HINT_NONE, 0 },
	{ "a semaphore that is posted before the item is there", posted_too_early, DSP_HINT_ORDER,
	  { "Do shop.c:11 (T0.1 writes `slot') before shop.c:10", "posts `items'", "T0.2 reads `slot'",
	    "shop.c:21 too early" }, DSP_HINT_NONE, 1 },
	{ "a swap that does not notice", swapped_blindly, DSP_HINT_ATOMIC,
	  { "compare-and-swap of `head' at list.c:12 notice", "(ABA)",
	    "T0.2 changes it at list.c:12 and makes it the same again at list.c:21",
	    "read from `next[1]' at list.c:11" },
	  DSP_HINT_NONE, 0 },
	{ "a swap that need not notice", swapped_rightly, DSP_HINT_ORDER, { "list.c:11" }, DSP_HINT_NONE, 0 },
	{ "readers that count", readers_count, DSP_HINT_ATOMIC,
	  { "Make stats.c:11 one atomic step", "Both hold `rw', but for reading", "lock it for writing" },
	  DSP_HINT_NONE, 1 },
};

/* T0.2 frees a block, T0.1 uses it, each with or without the lock; the root cause is about another thing. */
static void check_freed(const char *what, bool freeing_locked, bool using_locked, uint64_t block,
			enum dsp_hint_kind kind, const char *words)
{
	struct fixture fx;
	struct dsp *d = NULL;

	fixture_init(&fx, "/home/u/list", "/src/list.c");
	uint32_t m = fixture_mutex(&fx, "m"), n = fixture_var(&fx, "n", "int", 0);

	fx.trace->vars[n].address = 0x4000;
	fixture_children(&fx);
	if (using_locked)
		fixture_event(&fx, 1, SYM_LOCK, m, "use", 10);
	uint32_t read = fixture_event(&fx, 1, SYM_READ, n, "use", 11);
	if (freeing_locked)
		fixture_event(&fx, 2, SYM_LOCK, m, "drop", 20);
	uint32_t write = fixture_event(&fx, 2, SYM_WRITE, n, "drop", 21);

	fixture_at(&fx, 2, write)->value = expr_const(fx.trace->pool, 32, 1);
	fixture_event(&fx, 1, SYM_FAIL, SYM_NONE, "use", 13);
	fixture_fails(&fx, SYM_FAIL_SIGNAL, 1, "SIGSEGV", EXPR_NONE);
	char turns[32];

	snprintf(turns, sizeof turns, "00 %s %s", freeing_locked ? "22" : "2", using_locked ? "111" : "11");
	fixture_order(&fx, &fx.answer.failing, turns);
	fixture_cause(&fx, 2, write, 1, read);
	err_t e = dsp_build(fx.trace, &fx.answer, &d);

	if (CHECK(!e, "%s projects", what)) {
		struct dsp_freed f = { .base = block, .size = 32, .thread = 1, .event = read + 1,
				       .stack = fixture_stack(&fx, "use", 12, "worker"), .freed_by = 2,
				       .freed_event = write + 1,
				       .freed_stack = fixture_stack(&fx, "drop", 22, "worker"), .name = "p->next" };

		d->hint = (struct dsp_hint){ .kind = DSP_HINT_RECHECK, .text = xstrdup("as it was") };
		dsp_freed_hint(fx.trace, &f, d);
		CHECK(d->hint.kind == kind, "%s: hint is %s (is %s)", what, dsp_hint_name(kind),
		      dsp_hint_name(d->hint.kind));
		CHECK(d->hint.text && strstr(d->hint.text, words), "%s: says \"%s\" (says %s)", what,
		      words, d->hint.text);
	}
	err_free(e);
	dsp_free(d);
	fixture_free(&fx);
}

int main(void)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		check_hint(&table[i]);
	check_freed("freed while it is used", false, false, 0x5000, DSP_HINT_ORDER,
		    "Let T0.2 wait, before it frees what `p->next' is part of at list.c:22, until T0.1 is past list.c:12");
	check_freed("used without the lock", true, false, 0x5000, DSP_HINT_ATOMIC,
		    "Hold `m' where T0.1 uses `p->next', from where it finds it up to list.c:12: T0.2 holds that");
	check_freed("freed between two locked regions", true, true, 0x5000, DSP_HINT_ATOMIC,
		    "Keep `m' locked from where T0.1 finds `p->next' until it uses it at list.c:12");
	check_freed("the root cause is about the block", true, false, 0x3ff0, DSP_HINT_RECHECK, "as it was");
	CHECK_END();
}
