/* Hints about two variables that belong together, and the locks that each of two threads holds there. */
#include "tests/lib/dsp_expect.h"

enum { MOVER = 1, AUDITOR = 2 };

static void locked(struct fixture *fx, uint32_t thread, uint32_t lock, enum sym_op op, const char *function,
		   unsigned line)
{
	if (lock != SYM_NONE)
		fixture_event(fx, thread, op, lock, function, line);
}

/*
 * T0.1 takes one from a, then gives one to b; T0.2 adds the two up in a loop and finds 9, or 11,
 * instead of 10. The locks: at a and at b, of T0.1 and of T0.2; SYM_NONE: none, or held on from the one to the other.
 */
static void accounts(struct fixture *fx, const uint32_t mover[2], const uint32_t auditor[2], const char *failing,
		     const char *alternate, uint64_t sum)
{
	struct sym_trace *t = fx->trace;
	uint32_t var[2] = { fixture_var(fx, "a", "int", 5), fixture_var(fx, "b", "int", 5) };
	uint32_t write[2], read[2];

	fixture_children(fx);
	for (unsigned i = 0; i < 2; i++) {
		locked(fx, MOVER, mover[i], SYM_LOCK, "move", 9 + 10 * i);
		write[i] = fixture_event(fx, MOVER, SYM_WRITE, var[i], "move", 10 + 10 * i);
		fixture_at(fx, MOVER, write[i])->value = expr_const(t->pool, 32, i ? 6 : 4);
		if (mover[1] != SYM_NONE || i)
			locked(fx, MOVER, mover[mover[1] != SYM_NONE ? i : 0], SYM_UNLOCK, "move", 11 + 10 * i);
		locked(fx, AUDITOR, auditor[i], SYM_LOCK, "audit", 39);
		read[i] = fixture_event(fx, AUDITOR, SYM_READ, var[i], "audit", 40);
		fixture_at(fx, AUDITOR, read[i])->pc = 0x4040;
		fixture_at(fx, AUDITOR, read[i])->occurrence = i + 1;
		if (auditor[1] != SYM_NONE || i)
			locked(fx, AUDITOR, auditor[auditor[1] != SYM_NONE ? i : 0], SYM_UNLOCK, "audit", 41);
	}
	fixture_event(fx, AUDITOR, SYM_FAIL, SYM_NONE, "audit", 42);
	fixture_fails(fx, SYM_FAIL_ASSERT, AUDITOR, "Assertion `sum == 10' failed",
		      expr_binary(t->pool, EX_EQ,
				  expr_binary(t->pool, EX_ADD, fixture_sym(fx, AUDITOR, read[0]),
					      fixture_sym(fx, AUDITOR, read[1])), expr_const(t->pool, 32, sum)));
	fixture_order(fx, &fx->answer.failing, failing);
	if (sum == 11) { /* a before, b after */
		fixture_cause(fx, AUDITOR, read[0], MOVER, write[0]);
		fixture_cause(fx, MOVER, write[1], AUDITOR, read[1]);
	} else {
		fixture_cause(fx, MOVER, write[0], AUDITOR, read[0]);
		fixture_cause(fx, AUDITOR, read[1], MOVER, write[1]);
	}
	fixture_alternate(fx, alternate);
}

/* A lock for each variable, and the mover is between the two. */
static void mover_cut(struct fixture *fx)
{
	fixture_init(fx, "/home/u/bank", "/src/bank.c");
	uint32_t each[2] = { fixture_mutex(fx, "lock_a"), fixture_mutex(fx, "lock_b") };

	accounts(fx, each, each, "00 111 2222222 111", "00 111111 2222222", 9);
}

/* The same, and the one who adds up is between the two. */
static void auditor_cut(struct fixture *fx)
{
	fixture_init(fx, "/home/u/bank", "/src/bank.c");
	uint32_t each[2] = { fixture_mutex(fx, "lock_a"), fixture_mutex(fx, "lock_b") };

	accounts(fx, each, each, "00 222 111111 2222", "00 2222222 111111", 11);
}

/* Each has a lock of its own, and holds it all the time. */
static void two_locks(struct fixture *fx)
{
	fixture_init(fx, "/home/u/bank", "/src/bank.c");
	uint32_t one[2] = { fixture_mutex(fx, "bank_lock"), SYM_NONE };
	uint32_t other[2] = { fixture_mutex(fx, "report_lock"), SYM_NONE };

	accounts(fx, one, other, "00 22 1111 222", "00 22222 1111", 11);
}

/* No lock at all: the loop is cut in two all the same. */
static void no_locks(struct fixture *fx)
{
	fixture_init(fx, "/home/u/bank", "/src/bank.c");
	uint32_t none[2] = { SYM_NONE, SYM_NONE };

	accounts(fx, none, none, "00 2 11 22", "00 222 11", 11);
}

/* The creator reads under one lock what the thread writes under another: no order is missing. */
static void creator_has_another(struct fixture *fx)
{
	fixture_init(fx, "/home/u/list", "/src/list.c");
	uint32_t m = fixture_mutex(fx, "m"), own = fixture_mutex(fx, "own"), size = fixture_var(fx, "size", "int", 0);

	fixture_children(fx);
	fixture_event(fx, 0, SYM_LOCK, own, "look", 9);
	uint32_t read = fixture_event(fx, 0, SYM_READ, size, "look", 10);
	fixture_event(fx, 0, SYM_FAIL, SYM_NONE, "look", 11);
	fixture_event(fx, 2, SYM_LOCK, m, "add", 20);
	uint32_t write = fixture_writes(fx, 2, size, 9, "add", 21);

	fixture_asserts(fx, 0, read, 9, "Assertion `size == 0' failed");
	fixture_order(fx, &fx->answer.failing, "00 22 000");
	fixture_cause(fx, 2, write, 0, read);
	fixture_alternate(fx, "00000 22");
}

/* T0 makes T0.1, then sets a pointer, under the lock that T0.1 takes elsewhere; T0.1 has used the pointer already. */
static void set_after_made(struct fixture *fx)
{
	fixture_init(fx, "/home/u/get", "/src/get.c");
	uint32_t m = fixture_mutex(fx, "m"), config = fixture_var(fx, "config", "int", 0);

	fixture_children(fx);
	fixture_event(fx, 1, SYM_LOCK, m, "back", 10);
	fixture_event(fx, 1, SYM_UNLOCK, m, "back", 11);
	uint32_t use = fixture_event(fx, 1, SYM_READ, config, "back", 12);

	fixture_event(fx, 1, SYM_FAIL, SYM_NONE, "back", 12);
	fixture_event(fx, 0, SYM_LOCK, m, "main", 20);
	uint32_t set = fixture_writes(fx, 0, config, 9, "main", 21);

	fixture_asserts(fx, 1, use, 0, "SIGSEGV");
	fixture_order(fx, &fx->answer.failing, "00 1111 00");
	fixture_cause(fx, 1, use, 0, set);
	fixture_alternate(fx, "0000 1111");
}

/* Both look whether `held' is free, take it, count, and let it go. */
static void own_lock(struct fixture *fx, const char *failing)
{
	fixture_init(fx, "/home/u/spin", "/src/spin.c");
	struct sym_trace *t = fx->trace;
	uint32_t held = fixture_var(fx, "held", "int", 0), n = fixture_var(fx, "n", "int", 0), read = 0, write = 0;
	expr_id one = expr_const(t->pool, 32, 1);

	fixture_children(fx);
	for (uint32_t k = 1; k < 3; k++) {
		uint32_t look = fixture_event(fx, k, SYM_READ, held, "take", 10);

		fixture_cond(fx, k, look, expr_binary(t->pool, EX_EQ, fixture_sym(fx, k, look),
						      expr_const(t->pool, 32, 0)));
		fixture_writes(fx, k, held, 1, "take", 12);
		read = fixture_event(fx, k, SYM_READ, n, "count", 20);
		write = fixture_event(fx, k, SYM_WRITE, n, "count", 20);
		fixture_at(fx, k, write)->value = expr_binary(t->pool, EX_ADD, fixture_sym(fx, k, read), one);
		fixture_writes(fx, k, held, 0, "drop", 15);
	}
	uint32_t end = fixture_event(fx, 0, SYM_READ, n, "main", 60);

	fixture_event(fx, 0, SYM_FAIL, SYM_NONE, "main", 61);
	fixture_asserts(fx, 0, end, 1, "Assertion `n == 2' failed");
	fixture_order(fx, &fx->answer.failing, failing);
	fixture_cause(fx, 1, read, 2, write);
	fixture_alternate(fx, "00 11111 22222 00");
}

static void lets_in_two(struct fixture *fx)
{
	own_lock(fx, "00 1 22 11 222 11 00");
}

/* T0.1 takes nothing: it writes what it found. */
static void lets_in_one(struct fixture *fx)
{
	own_lock(fx, "00 111 22222 11 00");
	fixture_at(fx, 1, 1)->value = expr_const(fx->trace->pool, 32, 0);
}

/* T0.1 changes `head' under a lock that it has for reading, T0.2 fails by it, under the same lock. */
static void head_changed(struct fixture *fx, const char *failing)
{
	fixture_init(fx, "/home/u/lru", "/src/lru.c");
	uint32_t m = fixture_mutex(fx, "lock"), head = fixture_var(fx, "head", "int", 1);

	fx->trace->objects[m].kind = SYM_RWLOCK;
	fixture_children(fx);
	fixture_event(fx, 1, SYM_RDLOCK, m, "lookup", 10);
	uint32_t write = fixture_writes(fx, 1, head, 0, "lookup", 11);

	fixture_event(fx, 1, SYM_UNLOCK, m, "lookup", 12);
	fixture_event(fx, 2, SYM_RDLOCK, m, "walk", 20);
	uint32_t read = fixture_event(fx, 2, SYM_READ, head, "walk", 21);

	fixture_event(fx, 2, SYM_FAIL, SYM_NONE, "walk", 22);
	fixture_asserts(fx, 2, read, 0, "Assertion `head' failed");
	fixture_order(fx, &fx->answer.failing, failing);
	fixture_cause(fx, 1, write, 2, read);
	fixture_alternate(fx, "00 222 111");
}

static void two_readers(struct fixture *fx)
{
	head_changed(fx, "00 2 11 22 1");
}

/* One after the other: that they only read is not what it fails by. */
static void reader_after_reader(struct fixture *fx)
{
	head_changed(fx, "00 111 222");
}

static const struct expected table[] = {
	{ "changed under a lock that both have for reading", two_readers, DSP_HINT_ATOMIC,
	  { "Lock `lock' for writing where T0.1 writes `head' at lru.c:11",
	    "it holds it for reading, as T0.2 does, which reads `head' at lru.c:21" }, DSP_HINT_NONE, 0 },
	{ "changed under a lock that the other takes for reading later", reader_after_reader, DSP_HINT_ATOMIC,
	  { "Both hold `lock', so either may come first" }, DSP_HINT_NONE, 0 },
	{ "a lock of one's own that lets in two", lets_in_two, DSP_HINT_ATOMIC,
	  { "Make spin.c:10 to 12 one atomic step (an exchange",
	    "T0.1 finds `held' free there and takes it, and so does T0.2",
	    "Both are inside when T0.1 reads `n' at spin.c:20 and T0.2" }, DSP_HINT_NONE, 1 },
	{ "a variable that both write, but which is no lock", lets_in_one, DSP_HINT_ATOMIC,
	  { "Make spin.c:20 one atomic step", "no lock is held at both places" }, DSP_HINT_NONE, 1 },
	{ "a lock for each of two, who changes them is seen in between", mover_cut, DSP_HINT_ATOMIC,
	  { "Make bank.c:10 to 20 one atomic step", "T0.1 holds `lock_a' for the one",
	    "`lock_b' for the other, but not both at once", "who reads both, has to hold both locks" },
	  DSP_HINT_NONE, 1 },
	{ "a lock for each of two, who reads them is overtaken", auditor_cut, DSP_HINT_ATOMIC,
	  { "Make bank.c:40 (from `a' to `b') one atomic step: T0.1 writes `a'", "T0.2 holds `lock_a' for the one",
	    "has to hold both locks" }, DSP_HINT_NONE, 1 },
	{ "each holds a lock of its own", two_locks, DSP_HINT_ATOMIC,
	  { "T0.2 holds `report_lock' throughout, T0.1 holds `bank_lock'", "the same lock at both places" },
	  DSP_HINT_NONE, 1 },
	{ "a loop that adds up, without locks", no_locks, DSP_HINT_ATOMIC,
	  { "Make bank.c:40 (from `a' to `b') one atomic step: T0.1 writes `a'", "no lock is held at both places" },
	  DSP_HINT_NONE, 1 },
	{ "the creator sets something too late, under a lock", set_after_made, DSP_HINT_ORDER,
	  { "Do get.c:21 (writes `config') before T0.1 is created" }, DSP_HINT_NONE, 0 },
	{ "the creator holds another lock", creator_has_another, DSP_HINT_ATOMIC,
	  { "Hold the same lock at both places", "T0.2 holds `m' when it writes `size' at list.c:21",
	    "T0 holds `own' when it reads `size' at list.c:10" }, DSP_HINT_NONE, 0 },
};

int main(void)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		check_hint(&table[i]);
	CHECK_END();
}
