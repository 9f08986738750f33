/* Hints where threads wait for each other: for locks, conditions, semaphores, barriers. */
#include "tests/lib/dsp_expect.h"

/* T0.1 signals before T0.2 waits. */
static void lost_wakeup(struct fixture *fx)
{
	fixture_init(fx, "/home/u/wake", "/src/wake.c");
	struct sym_trace *t = fx->trace;
	uint32_t m = fixture_mutex(fx, "m");
	struct sym_object cond = { .name = (char *)"ready", .kind = SYM_COND, .owner = SYM_NONE };
	uint32_t c = sym_add_object(t, &cond);

	fixture_children(fx);
	fixture_event(fx, 1, SYM_START, SYM_NONE, "waker", 9);
	fixture_event(fx, 1, SYM_SIGNAL, c, "waker", 10);
	fixture_event(fx, 2, SYM_START, SYM_NONE, "waiter", 19);
	fixture_event(fx, 2, SYM_LOCK, m, "waiter", 20);
	uint32_t unlock = fixture_event(fx, 2, SYM_UNLOCK, m, "waiter", 21);
	uint32_t wait = fixture_event(fx, 2, SYM_WAIT, c, "waiter", 21);

	fixture_at(fx, 2, wait)->link = unlock;
	fixture_fails(fx, SYM_FAIL_DEADLOCK, SYM_NONE, "deadlock", EXPR_NONE);
	t->failure.blocked = xcalloc(1, sizeof *t->failure.blocked);
	t->failure.nblocked = 1;
	t->failure.blocked[0] = (struct sym_blocked){ 2, wait };
	fixture_order(fx, &fx->answer.failing, "00 11 222");
	fixture_cause(fx, 1, 1, 2, unlock);
	fixture_alternate(fx, "00 222 11 2");
}

static void blocked(struct fixture *fx, size_t k, uint32_t thread, uint32_t event)
{
	struct sym_failure *f = &fx->trace->failure;

	f->blocked = xrealloc(f->blocked, (k + 1) * sizeof *f->blocked);
	f->nblocked = k + 1;
	f->blocked[k] = (struct sym_blocked){ thread, event };
}

/* T0.1 reads under the lock and wants to once more; T0.2 waits to write. */
static void reads_twice(struct fixture *fx)
{
	fixture_init(fx, "/home/u/table", "/src/table.c");
	struct sym_trace *t = fx->trace;
	struct sym_object lock = { .name = (char *)"rw", .kind = SYM_RWLOCK, .owner = SYM_NONE };
	uint32_t rw = sym_add_object(t, &lock);

	fixture_children(fx);
	fixture_event(fx, 1, SYM_RDLOCK, rw, "sum", 10);
	uint32_t again = fixture_event(fx, 1, SYM_RDLOCK, rw, "sum", 11);
	uint32_t write = fixture_event(fx, 2, SYM_LOCK, rw, "put", 20);

	fixture_fails(fx, SYM_FAIL_DEADLOCK, SYM_NONE, "deadlock", EXPR_NONE);
	blocked(fx, 0, 1, again);
	blocked(fx, 1, 2, write);
	fixture_order(fx, &fx->answer.failing, "00 1");
	fixture_cause(fx, 2, write, 1, again);
	fixture_alternate(fx, "00 11");
}

/* T0.1 waits with `outer' locked; T0.2, which would signal, wants that. */
static void waits_with_lock(struct fixture *fx)
{
	fixture_init(fx, "/home/u/nested", "/src/nested.c");
	struct sym_trace *t = fx->trace;
	uint32_t outer = fixture_mutex(fx, "outer"), inner = fixture_mutex(fx, "inner");
	struct sym_object cond = { .name = (char *)"ready", .kind = SYM_COND, .owner = SYM_NONE };
	uint32_t c = sym_add_object(t, &cond);

	fixture_children(fx);
	uint32_t take = fixture_event(fx, 1, SYM_LOCK, outer, "get", 10);
	fixture_event(fx, 1, SYM_LOCK, inner, "get", 11);
	uint32_t unlock = fixture_event(fx, 1, SYM_UNLOCK, inner, "get", 12);
	uint32_t wait = fixture_event(fx, 1, SYM_WAIT, c, "get", 12);
	uint32_t want = fixture_event(fx, 2, SYM_LOCK, outer, "put", 20);

	fixture_at(fx, 1, wait)->link = unlock;
	fixture_fails(fx, SYM_FAIL_DEADLOCK, SYM_NONE, "deadlock", EXPR_NONE);
	blocked(fx, 0, 1, wait);
	blocked(fx, 1, 2, want);
	fixture_order(fx, &fx->answer.failing, "00 111");
	fixture_cause(fx, 1, take, 2, want);
	fixture_alternate(fx, "00 2 111");
}

/*
 * T0.1 and T0.2 wait for one condition variable at different places; T0.3 signals, and T0.1 wakes
 * up to wait again.
 */
static void wakes_wrong_one(struct fixture *fx)
{
	fixture_init(fx, "/home/u/slot", "/src/slot.c");
	struct sym_trace *t = fx->trace;
	uint32_t m = fixture_mutex(fx, "m");
	struct sym_object cond = { .name = (char *)"changed", .kind = SYM_COND, .owner = SYM_NONE };
	uint32_t c = sym_add_object(t, &cond), wait[2];

	for (int i = 0; i < 4; i++)
		sym_add_thread(t, (const char *[]){ "T0", "T0.1", "T0.2", "T0.3" }[i], NULL);
	for (int i = 0; i < 3; i++)
		fixture_event(fx, 0, SYM_FORK, (uint32_t)i + 1, "main", 50);
	for (int round = 0; round < 2; round++) {
		fixture_event(fx, 1, SYM_LOCK, m, "put", 10);
		uint32_t unlock = fixture_event(fx, 1, SYM_UNLOCK, m, "put", 11);

		wait[0] = fixture_event(fx, 1, SYM_WAIT, c, "put", 11);
		fixture_at(fx, 1, wait[0])->link = unlock;
	}
	fixture_event(fx, 2, SYM_LOCK, m, "get", 20);
	uint32_t unlock = fixture_event(fx, 2, SYM_UNLOCK, m, "get", 21);
	wait[1] = fixture_event(fx, 2, SYM_WAIT, c, "get", 21);
	fixture_at(fx, 2, wait[1])->link = unlock;
	uint32_t signal = fixture_event(fx, 3, SYM_SIGNAL, c, "get", 25);

	fixture_fails(fx, SYM_FAIL_DEADLOCK, SYM_NONE, "deadlock", EXPR_NONE);
	blocked(fx, 0, 1, wait[0]);
	blocked(fx, 1, 2, wait[1]);
	fixture_order(fx, &fx->answer.failing, "000 11 22 3 111");
	fixture_cause(fx, 3, signal, 1, wait[0] - 1);
	fixture_alternate(fx, "000 22 3 2 1111");
}

/* T0.1 and T0.2 wait at the same place, T0.3 signals once: T0.1 is woken and goes on, T0.2 is not. */
static void wakes_one_of_two(struct fixture *fx)
{
	fixture_init(fx, "/home/u/gate", "/src/gate.c");
	struct sym_trace *t = fx->trace;
	uint32_t m = fixture_mutex(fx, "m"), unlock[3];
	struct sym_object cond = { .name = (char *)"open", .kind = SYM_COND, .owner = SYM_NONE };
	uint32_t c = sym_add_object(t, &cond), wait = 0;

	for (int i = 0; i < 4; i++)
		sym_add_thread(t, (const char *[]){ "T0", "T0.1", "T0.2", "T0.3" }[i], NULL);
	for (int i = 0; i < 3; i++)
		fixture_event(fx, 0, SYM_FORK, (uint32_t)i + 1, "main", 50);
	for (uint32_t i = 1; i < 3; i++) {
		fixture_event(fx, i, SYM_LOCK, m, "pass", 10);
		unlock[i] = fixture_event(fx, i, SYM_UNLOCK, m, "pass", 11);
		wait = fixture_event(fx, i, SYM_WAIT, c, "pass", 11);
		fixture_at(fx, i, wait)->link = unlock[i];
	}
	uint32_t signal = fixture_event(fx, 3, SYM_SIGNAL, c, "let", 25);

	fixture_fails(fx, SYM_FAIL_DEADLOCK, SYM_NONE, "deadlock", EXPR_NONE);
	blocked(fx, 0, 2, wait);
	fixture_order(fx, &fx->answer.failing, "000 11 22 3 1");
	fixture_cause(fx, 3, signal, 2, unlock[2]);
	fixture_alternate(fx, "000 22 3 2 11");
}

/* T0.2 wakes T0.1, and has begun the next round before T0.1 looks; or only signals, for one of those who wait. */
static void changes_again(struct fixture *fx, enum sym_op wakes)
{
	fixture_init(fx, "/home/u/round", "/src/round.c");
	struct sym_object cond = { .name = (char *)"turn", .kind = SYM_COND, .owner = SYM_NONE };
	uint32_t m = fixture_mutex(fx, "m"), c = sym_add_object(fx->trace, &cond);
	uint32_t waiting = fixture_var(fx, "waiting", "int", 1), wait = 0, read = 0;

	fixture_children(fx);
	for (int round = 0; round < 2; round++) {
		fixture_event(fx, 1, SYM_LOCK, m, "meet", 10);
		if (round)
			read = fixture_event(fx, 1, SYM_READ, waiting, "meet", 11);
		uint32_t unlock = fixture_event(fx, 1, SYM_UNLOCK, m, "meet", 12);

		wait = fixture_event(fx, 1, SYM_WAIT, c, "meet", 12);
		fixture_at(fx, 1, wait)->link = unlock;
	}
	fixture_event(fx, 2, wakes, c, "meet", 14);
	uint32_t write = fixture_writes(fx, 2, waiting, 1, "meet", 9);

	fixture_fails(fx, SYM_FAIL_DEADLOCK, SYM_NONE, "deadlock", EXPR_NONE);
	blocked(fx, 0, 1, wait);
	fixture_order(fx, &fx->answer.failing, "00 11 22 1111");
	fixture_cause(fx, 2, write, 1, read);
	fixture_alternate(fx, "00 11 2 1111 2");
}

static void came_and_went(struct fixture *fx)
{
	changes_again(fx, SYM_BROADCAST);
}

static void another_was_quicker(struct fixture *fx)
{
	changes_again(fx, SYM_SIGNAL);
}

/* T0.1 takes the lock and ends; T0 wants it. */
static void ended_with_lock(struct fixture *fx)
{
	fixture_init(fx, "/home/u/stop", "/src/stop.c");
	struct sym_trace *t = fx->trace;
	uint32_t m = fixture_mutex(fx, "m");

	for (int i = 0; i < 2; i++)
		sym_add_thread(t, (const char *[]){ "T0", "T0.1" }[i], NULL);
	fixture_event(fx, 0, SYM_FORK, 1, "main", 50);
	uint32_t want = fixture_event(fx, 0, SYM_LOCK, m, "main", 52);
	fixture_event(fx, 1, SYM_START, SYM_NONE, "worker", 9);
	uint32_t take = fixture_event(fx, 1, SYM_LOCK, m, "worker", 10);
	fixture_event(fx, 1, SYM_EXIT, SYM_NONE, "worker", 11);
	fixture_fails(fx, SYM_FAIL_DEADLOCK, SYM_NONE, "deadlock", EXPR_NONE);
	t->failure.blocked = xcalloc(1, sizeof *t->failure.blocked);
	t->failure.nblocked = 1;
	t->failure.blocked[0] = (struct sym_blocked){ 0, want };
	fixture_order(fx, &fx->answer.failing, "0 111");
	fixture_cause(fx, 1, take, 0, want);
	fixture_alternate(fx, "00 111");
}

/* T0.1 has the semaphore, as everybody has it who gives it back, and wants the mutex; T0.2 the reverse. */
static void ring_of(struct fixture *fx, bool given_before)
{
	fixture_init(fx, "/home/u/desk", "/src/desk.c");
	struct sym_trace *t = fx->trace;
	uint32_t books = fixture_mutex(fx, "books");
	struct sym_object sem = { .name = (char *)"token", .kind = SYM_SEM, .count = 1, .owner = SYM_NONE };
	uint32_t token = sym_add_object(t, &sem);

	fixture_children(fx);
	if (given_before) {
		fixture_event(fx, 1, SYM_SEMWAIT, token, "normal", 10);
		fixture_event(fx, 1, SYM_SEMPOST, token, "normal", 13);
	}
	fixture_event(fx, 1, SYM_SEMWAIT, token, "normal", 10);
	uint32_t lock = fixture_event(fx, 1, SYM_LOCK, books, "normal", 11);
	uint32_t take = fixture_event(fx, 2, SYM_LOCK, books, "hurry", 20);
	uint32_t wait = fixture_event(fx, 2, SYM_SEMWAIT, token, "hurry", 21);

	fixture_fails(fx, SYM_FAIL_DEADLOCK, SYM_NONE, "deadlock", EXPR_NONE);
	blocked(fx, 0, 1, lock);
	blocked(fx, 1, 2, wait);
	fixture_order(fx, &fx->answer.failing, given_before ? "00 111 2" : "00 1 2");
	fixture_cause(fx, 2, take, 1, lock);
	fixture_alternate(fx, given_before ? "00 1111 22" : "00 11 22");
}

static void semaphore_ring(struct fixture *fx)
{
	ring_of(fx, true);
}

/* The first time already: nobody has given anything yet. */
static void first_ring(struct fixture *fx)
{
	ring_of(fx, false);
}

/* The same, but others count with it: who takes one does not give it back. */
static void semaphore_counts(struct fixture *fx)
{
	semaphore_ring(fx);
	fixture_at(fx, 1, 0)->op = SYM_SEMPOST;
	fixture_at(fx, 1, 1)->op = SYM_SEMWAIT;
}

/* T0.2 has the mutex to the end, and waits for nothing that is an event. */
static void kept_lock(struct fixture *fx)
{
	fixture_init(fx, "/home/u/pipe", "/src/pipe.c");
	uint32_t m = fixture_mutex(fx, "state");

	fixture_children(fx);
	uint32_t want = fixture_event(fx, 1, SYM_LOCK, m, "writer", 10);
	uint32_t take = fixture_event(fx, 2, SYM_LOCK, m, "reader", 20);

	fixture_fails(fx, SYM_FAIL_DEADLOCK, SYM_NONE, "hang", EXPR_NONE);
	blocked(fx, 0, 1, want);
	fixture_order(fx, &fx->answer.failing, "00 2");
	fixture_cause(fx, 2, take, 1, want);
	fixture_alternate(fx, "00 1 2");
}

/* Both are past the barrier; T0.1 goes on to write what T0.2 still has to read. */
static void behind_a_barrier(struct fixture *fx)
{
	fixture_init(fx, "/home/u/phase", "/src/phase.c");
	struct sym_trace *t = fx->trace;
	struct sym_object barrier = { .name = (char *)"bar", .kind = SYM_BARRIER, .count = 2, .owner = SYM_NONE };
	uint32_t b = sym_add_object(t, &barrier), v = fixture_var(fx, "cell", "int", 0), leave;

	fixture_children(fx);
	for (uint32_t i = 1; i < 3; i++) {
		uint32_t enter = fixture_event(fx, i, SYM_BARRIER_ENTER, b, "work", 11);

		leave = fixture_event(fx, i, SYM_BARRIER_LEAVE, b, "work", 11);
		fixture_at(fx, i, leave)->link = enter;
	}
	uint32_t write = fixture_writes(fx, 1, v, 1, "work", 10);
	uint32_t read = fixture_event(fx, 2, SYM_READ, v, "work", 12);

	fixture_event(fx, 2, SYM_FAIL, SYM_NONE, "work", 13);
	fixture_fails(fx, SYM_FAIL_ASSERT, 2, "Assertion `cell == 0' failed",
		      expr_unary(t->pool, EX_BNOT, expr_binary(t->pool, EX_EQ, fixture_sym(fx, 2, read),
							       expr_const(t->pool, 32, 0))));
	fixture_order(fx, &fx->answer.failing, "00 1 2 11 222");
	fixture_cause(fx, 1, write, 2, read);
	fixture_alternate(fx, "00 1 2 1 222 1");
}

/* The same, and no order that was tried passes: then it is not that one came before the other. */
static void lost_in_every_order(struct fixture *fx)
{
	lost_wakeup(fx);
	fx->answer.tried_always = true;
	fx->answer.ncause = 0; /* as the judge leaves it */
	while (fx->answer.nalternates)
		sched_order_free(&fx->answer.alternates[--fx->answer.nalternates].order);
}

static const struct expected table[] = {
	{ "a wake-up in a program that always fails", lost_in_every_order, DSP_HINT_NONE, { 0 }, DSP_HINT_NONE, 0 },
	{ "a lost wake-up", lost_wakeup, DSP_HINT_ORDER,
	  { "T0.1 signals `ready' at wake.c:10", "before T0.2 waits at wake.c:21" },
	  DSP_HINT_NONE, 0 },
	{ "an owner that has ended", ended_with_lock, DSP_HINT_RELEASE,
	  { "T0.1 ended while it held `m'", "stop.c:10" }, DSP_HINT_NONE, 0 },
	{ "a lock taken for reading twice", reads_twice, DSP_HINT_NONE,
	  { "already holds it since table.c:10", "T0.2 waits to write at table.c:20",
	    "Do not acquire it for reading twice" }, DSP_HINT_NONE, 0 },
	{ "a wait with a lock", waits_with_lock, DSP_HINT_RELEASE,
	  { "Do not wait with `outer' locked", "T0.1 waits for `ready' at nested.c:12",
	    "since nested.c:10", "T0.2, which might end that wait, wants it at nested.c:20" },
	  DSP_HINT_NONE, 0 },
	{ "a signal for the wrong one", wakes_wrong_one, DSP_HINT_WAKE,
	  { "T0.3 signals `changed' at slot.c:25", "wakes T0.1", "waits again at slot.c:11",
	    "not T0.2, which waits at slot.c:21" }, DSP_HINT_NONE, 0 },
	{ "a signal that woke one of two", wakes_one_of_two, DSP_HINT_WAKE,
	  { "where T0.3 signals `open' at gate.c:25 both T0.2 and T0.1 wait", "only T0.1 is woken", "T0.2 still waits at gate.c:11" },
	  DSP_HINT_NONE, 0 },
	{ "a condition that came and went", came_and_went, DSP_HINT_ORDER,
	  { "What T0.1 waits for at round.c:12 came and went", "T0.2 broadcasts `turn' at round.c:14",
	    "before T0.1 looks again T0.2 writes `waiting' at round.c:9" }, DSP_HINT_NONE, 0 },
	{ "a signal that was heard is not lost", another_was_quicker, DSP_HINT_ATOMIC,
	  { "Hold `m' where T0.2 writes `waiting' at round.c:9" }, DSP_HINT_NONE, 0 },
	{ "a semaphore used as a lock", semaphore_ring, DSP_HINT_LOCK_ORDER,
	  { "T0.1 takes `token' at desk.c:10, then `books' at desk.c:11",
	    "T0.2 takes `books' at desk.c:20, then `token' at desk.c:21" }, DSP_HINT_NONE, 0 },
	{ "a semaphore that nobody has given back yet", first_ring, DSP_HINT_LOCK_ORDER,
	  { "T0.1 takes `token' at desk.c:10, then `books' at desk.c:11",
	    "T0.2 takes `books' at desk.c:20, then `token' at desk.c:21" }, DSP_HINT_NONE, 0 },
	{ "a semaphore that counts", semaphore_counts, DSP_HINT_ORDER, { "desk.c:20" }, DSP_HINT_NONE, 0 },
	{ "an owner that does not come back", kept_lock, DSP_HINT_RELEASE,
	  { "T0.1 wants `state' at pipe.c:10", "T0.2, which has it since pipe.c:20" }, DSP_HINT_NONE, 0 },
	{ "a second barrier that is missing", behind_a_barrier, DSP_HINT_ORDER,
	  { "before T0.1 writes `cell' at phase.c:10", "came past `bar' at phase.c:11",
	    "T0.2, which still has to do phase.c:12" }, DSP_HINT_NONE, 0 },
};

static char *fingerprint(void (*make)(struct fixture *fx), const char *signals_in)
{
	struct fixture fx;
	struct dsp *d = NULL;
	char *print;

	make(&fx);
	if (signals_in) {
		struct sched_ref by = fx.answer.cause[0].before;

		fixture_at(&fx, by.thread, by.index)->stack = fixture_stack(&fx, signals_in, 35, "main");
	}
	CHECK(!dsp_build(fx.trace, &fx.answer, &d), "it projects");
	print = xstrdup(d->fingerprint);
	dsp_free(d);
	fixture_free(&fx);
	return print;
}

/* One condition variable for two things is one bug, wherever the signal comes from that is lost. */
static void one_bug(void)
{
	char *one = fingerprint(wakes_wrong_one, NULL), *elsewhere = fingerprint(wakes_wrong_one, "flush");
	char *other = fingerprint(came_and_went, NULL);

	CHECK(!strcmp(one, elsewhere), "a wrong waiter has one fingerprint wherever the signal comes from");
	CHECK(strcmp(one, other), "another bug has another");
	free(one);
	free(elsewhere);
	free(other);
}

int main(void)
{
	one_bug();
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		check_hint(&table[i]);
	CHECK_END();
}
