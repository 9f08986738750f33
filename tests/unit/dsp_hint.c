/* The hint names the kind of fix and its lines, from what the trace holds. */
#include "tests/lib/dsp_expect.h"

/* A lost update in a program without lines: functions are all that is known. */
static void stripped(struct fixture *fx)
{
	fixture_lost_update(fx);
	for (size_t i = 0; i < fx->trace->nstacks; i++)
		for (size_t k = 0; k < fx->trace->stacks[i].n; k++) {
			struct sym_frame *f = &fx->trace->stacks[i].frames[k];

			free(f->file);
			f->file = NULL;
			f->line = 0;
			free(f->function);
			f->function = xstrdup("bank+0x1263");
		}
}

/* T0.1 looks whether the file is open, and writes; T0.2 closes it in between, and tidies up. */
static void check_of_another(struct fixture *fx)
{
	fixture_init(fx, "/home/u/log", "/src/log.c");
	struct sym_trace *t = fx->trace;
	uint32_t open = fixture_var(fx, "open", "int", 1), dirty = fixture_var(fx, "dirty", "int", 0);

	fixture_children(fx);
	uint32_t look = fixture_event(fx, 1, SYM_READ, open, "put", 10);
	uint32_t set = fixture_event(fx, 1, SYM_WRITE, dirty, "put", 12);
	uint32_t shut = fixture_event(fx, 2, SYM_WRITE, open, "close", 20);
	uint32_t clear = fixture_event(fx, 2, SYM_WRITE, dirty, "close", 22);
	uint32_t end = fixture_event(fx, 0, SYM_READ, dirty, "main", 60);

	fixture_at(fx, 1, set)->value = expr_const(t->pool, 32, 1);
	fixture_at(fx, 2, shut)->value = fixture_at(fx, 2, clear)->value = expr_const(t->pool, 32, 0);
	fixture_cond(fx, 1, look, expr_unary(t->pool, EX_BNOT,
					     expr_binary(t->pool, EX_EQ, fixture_sym(fx, 1, look),
							 expr_const(t->pool, 32, 0))));
	fixture_event(fx, 0, SYM_FAIL, SYM_NONE, "main", 61);
	fixture_fails(fx, SYM_FAIL_ASSERT, 0, "Assertion `!dirty' failed",
		      expr_unary(t->pool, EX_BNOT, expr_binary(t->pool, EX_EQ, fixture_sym(fx, 0, end),
							       expr_const(t->pool, 32, 0))));
	fixture_order(fx, &fx->answer.failing, "00 1 22 1 00");
	fixture_cause(fx, 2, clear, 1, set);
	fixture_alternate(fx, "00 11 22 00");
}

/* T0.1 has `refs' in a register, and writes it out twice; what T0.2 writes in between is lost. */
static void kept_in_register(struct fixture *fx)
{
	fixture_init(fx, "/home/u/doc", "/src/doc.c");
	struct sym_trace *t = fx->trace;
	uint32_t refs = fixture_var(fx, "refs", "int", 2);
	expr_id one = expr_const(t->pool, 32, 1);

	fixture_children(fx);
	uint32_t load = fixture_event(fx, 1, SYM_READ, refs, "get", 10);
	uint32_t get = fixture_event(fx, 1, SYM_WRITE, refs, "get", 10);
	uint32_t put = fixture_event(fx, 1, SYM_WRITE, refs, "put", 14);
	uint32_t theirs = fixture_event(fx, 2, SYM_READ, refs, "get", 10);
	uint32_t more = fixture_event(fx, 2, SYM_WRITE, refs, "get", 10);
	uint32_t end = fixture_event(fx, 0, SYM_READ, refs, "main", 60);

	fixture_at(fx, 1, get)->value = expr_binary(t->pool, EX_ADD, fixture_sym(fx, 1, load), one);
	fixture_at(fx, 1, put)->value = fixture_sym(fx, 1, load);
	fixture_at(fx, 2, more)->value = expr_binary(t->pool, EX_ADD, fixture_sym(fx, 2, theirs), one);
	fixture_event(fx, 0, SYM_FAIL, SYM_NONE, "main", 61);
	fixture_fails(fx, SYM_FAIL_ASSERT, 0, "Assertion `refs == 3' failed",
		      expr_binary(t->pool, EX_EQ, fixture_sym(fx, 0, end), expr_const(t->pool, 32, 2)));
	fixture_order(fx, &fx->answer.failing, "00 11 22 1 00");
	fixture_cause(fx, 2, more, 1, put);
	fixture_alternate(fx, "00 111 22 00");
}

/* The same accesses, the intruder under a lock the other does not take. */
static void one_sided_lock(struct fixture *fx)
{
	fixture_check_then_act(fx);
	uint32_t other = fixture_mutex(fx, "other");

	for (uint32_t i = 0; i < fx->trace->threads[1].nevents; i++) {
		struct sym_event *e = fixture_at(fx, 1, i);

		if (e->op == SYM_LOCK || e->op == SYM_UNLOCK)
			e->target = other;
	}
}

static void self_deadlock(struct fixture *fx)
{
	fixture_deadlock(fx);
	fixture_at(fx, 1, 2)->target = fixture_at(fx, 1, 1)->target;
	fx->trace->failure.nblocked = 1;
	fx->answer.ncause = 0;
}

/* T0.2 writes under a lock what T0.1 reads without one. */
static void read_unguarded(struct fixture *fx)
{
	fixture_init(fx, "/home/u/list", "/src/list.c");
	uint32_t m = fixture_mutex(fx, "m"), size = fixture_var(fx, "size", "int", 0);

	fixture_children(fx);
	uint32_t read = fixture_event(fx, 1, SYM_READ, size, "look", 10);
	fixture_event(fx, 1, SYM_FAIL, SYM_NONE, "look", 11);
	fixture_event(fx, 2, SYM_LOCK, m, "add", 20);
	uint32_t write = fixture_writes(fx, 2, size, 9, "add", 21);

	fixture_asserts(fx, 1, read, 9, "Assertion `size == 0' failed");
	fixture_order(fx, &fx->answer.failing, "00 22 11");
	fixture_cause(fx, 2, write, 1, read);
	fixture_alternate(fx, "00 11 22");
}

/* The creator reads without the lock, which it takes elsewhere: no order is missing. */
static void creator_unguarded(struct fixture *fx)
{
	fixture_init(fx, "/home/u/list", "/src/list.c");
	struct sym_trace *t = fx->trace;
	uint32_t m = fixture_mutex(fx, "m"), size = fixture_var(fx, "size", "int", 0);

	fixture_children(fx);
	fixture_event(fx, 0, SYM_LOCK, m, "clear", 5);
	fixture_event(fx, 0, SYM_UNLOCK, m, "clear", 7);
	uint32_t read = fixture_event(fx, 0, SYM_READ, size, "look", 10);
	fixture_event(fx, 0, SYM_FAIL, SYM_NONE, "look", 11);
	fixture_event(fx, 2, SYM_LOCK, m, "add", 20);
	uint32_t write = fixture_event(fx, 2, SYM_WRITE, size, "add", 21);

	fixture_at(fx, 2, write)->value = expr_const(t->pool, 32, 9);
	fixture_fails(fx, SYM_FAIL_ASSERT, 0, "Assertion `size == 0' failed",
		      expr_binary(t->pool, EX_EQ, fixture_sym(fx, 0, read), expr_const(t->pool, 32, 9)));
	fixture_order(fx, &fx->answer.failing, "0000 22 00");
	fixture_cause(fx, 2, write, 0, read);
	fixture_alternate(fx, "000000 22");
}

/* T0.2 takes the lock for each of two writes; T0.1, which does not, reads between them. */
static void read_between(struct fixture *fx)
{
	fixture_init(fx, "/home/u/list", "/src/list.c");
	struct sym_trace *t = fx->trace;
	uint32_t m = fixture_mutex(fx, "m"), size = fixture_var(fx, "size", "int", 0), first = 0;

	fixture_children(fx);
	uint32_t read = fixture_event(fx, 1, SYM_READ, size, "look", 10);
	fixture_event(fx, 1, SYM_FAIL, SYM_NONE, "look", 11);
	for (uint32_t i = 0; i < 2; i++) {
		fixture_event(fx, 2, SYM_LOCK, m, "add", 20 + 10 * i);
		uint32_t write = fixture_event(fx, 2, SYM_WRITE, size, "add", 21 + 10 * i);

		fixture_at(fx, 2, write)->value = expr_const(t->pool, 32, i ? 0 : 9);
		fixture_event(fx, 2, SYM_UNLOCK, m, "add", 22 + 10 * i);
		first = i ? first : write;
	}
	fixture_fails(fx, SYM_FAIL_ASSERT, 1, "Assertion `size == 0' failed",
		      expr_binary(t->pool, EX_EQ, fixture_sym(fx, 1, read), expr_const(t->pool, 32, 9)));
	fixture_order(fx, &fx->answer.failing, "00 222 1 222 1");
	fixture_cause(fx, 2, first, 1, read);
	fixture_alternate(fx, "00 11 222222");
}

/* The same, but T0.1 takes the lock, too: it sees what T0.2 leaves behind. */
static void left_half_done(struct fixture *fx)
{
	fixture_init(fx, "/home/u/range", "/src/range.c");
	uint32_t m = fixture_mutex(fx, "m"), low = fixture_var(fx, "low", "int", 0);

	fixture_children(fx);
	fixture_event(fx, 1, SYM_LOCK, m, "look", 9);
	uint32_t read = fixture_event(fx, 1, SYM_READ, low, "look", 10);
	fixture_event(fx, 1, SYM_FAIL, SYM_NONE, "look", 11);
	fixture_event(fx, 2, SYM_LOCK, m, "move", 20);
	uint32_t write = fixture_writes(fx, 2, low, 9, "move", 21);
	fixture_event(fx, 2, SYM_UNLOCK, m, "move", 22);

	fixture_asserts(fx, 1, read, 9, "Assertion `low <= high' failed");
	fixture_order(fx, &fx->answer.failing, "00 222 111");
	fixture_cause(fx, 2, write, 1, read);
	fixture_alternate(fx, "00 111 22");
}

/* T0.1 writes twice under the lock; T0.2 looks in between, without it. */
static void looks_without_lock(struct fixture *fx)
{
	fixture_init(fx, "/home/u/config", "/src/config.c");
	struct sym_trace *t = fx->trace;
	uint32_t m = fixture_mutex(fx, "m"), port = fixture_var(fx, "port", "int", 0), write = 0;

	fixture_children(fx);
	fixture_event(fx, 1, SYM_LOCK, m, "get", 10);
	for (uint32_t i = 0; i < 2; i++) {
		write = fixture_event(fx, 1, SYM_WRITE, port, "get", 11 + i);
		fixture_at(fx, 1, write)->value = expr_const(t->pool, 32, i ? 80 : 1);
	}
	uint32_t read = fixture_event(fx, 2, SYM_READ, port, "use", 20);
	fixture_event(fx, 2, SYM_FAIL, SYM_NONE, "use", 21);

	fixture_asserts(fx, 2, read, 1, "Assertion `port == 80' failed");
	fixture_order(fx, &fx->answer.failing, "00 11 22 1");
	fixture_cause(fx, 2, read, 1, write);
	fixture_alternate(fx, "00 111 22");
}

/*
 * T0.1 reads `table' and then adds to a cell of it; T0.2 has copied the cell in between, and puts
 * the copy in its place afterwards.
 */
static void copied_meanwhile(struct fixture *fx)
{
	fixture_init(fx, "/home/u/table", "/src/table.c");
	struct sym_trace *t = fx->trace;
	uint32_t table = fixture_var(fx, "table", "int *", 0x7000);
	uint32_t cell = fixture_var(fx, "table[1]", "int", 0), sum = fixture_var(fx, "sum", "int", 0);

	t->vars[table].width = 64;
	t->vars[cell].address = 0x7004;
	fixture_children(fx);
	uint32_t pointer = fixture_event(fx, 1, SYM_READ, table, "add", 10);
	uint32_t add = fixture_writes(fx, 1, cell, 1, "add", 11);
	uint32_t copy = fixture_event(fx, 2, SYM_READ, cell, "grow", 20);
	uint32_t put = fixture_event(fx, 2, SYM_WRITE, sum, "grow", 21);
	uint32_t publish = fixture_event(fx, 2, SYM_WRITE, table, "grow", 22);
	uint32_t read = fixture_event(fx, 0, SYM_READ, sum, "main", 53);

	fixture_at(fx, 1, pointer)->seen = 0x7000;
	fixture_at(fx, 2, put)->value = fixture_sym(fx, 2, copy);
	fixture_at(fx, 2, publish)->value = expr_const(t->pool, 64, 0x9000);
	fixture_event(fx, 0, SYM_FAIL, SYM_NONE, "main", 53);
	fixture_asserts(fx, 0, read, 0, "Assertion `sum == 1' failed");
	fixture_order(fx, &fx->answer.failing, "00 1 2 1 22 00");
	fixture_cause(fx, 2, copy, 1, add);
	fixture_alternate(fx, "00 11 222 00");
}

/* T0.1 looks at `count', waits, and looks at it again, at `line`; T0.2 changes it while T0.1 has no lock. */
static void looks_and_waits(struct fixture *fx, uint32_t line)
{
	fixture_init(fx, "/home/u/queue", "/src/queue.c");
	struct sym_trace *t = fx->trace;
	uint32_t m = fixture_mutex(fx, "m"), count = fixture_var(fx, "count", "int", 0);
	struct sym_object cond = { .name = (char *)"ready", .kind = SYM_COND, .owner = SYM_NONE };
	uint32_t c = sym_add_object(t, &cond);

	fixture_children(fx);
	fixture_event(fx, 1, SYM_START, SYM_NONE, "take", 9);
	fixture_event(fx, 1, SYM_LOCK, m, "take", 10);
	fixture_event(fx, 1, SYM_READ, count, "take", 11);
	uint32_t unlock = fixture_event(fx, 1, SYM_UNLOCK, m, "take", 12);
	uint32_t wait = fixture_event(fx, 1, SYM_WAIT, c, "take", 12);
	fixture_event(fx, 1, SYM_LOCK, m, "take", 12);
	uint32_t use = fixture_event(fx, 1, SYM_READ, count, "take", line);
	fixture_event(fx, 1, SYM_FAIL, SYM_NONE, "take", 14);
	fixture_event(fx, 2, SYM_START, SYM_NONE, "thief", 19);
	fixture_event(fx, 2, SYM_SIGNAL, c, "thief", 20);
	uint32_t steal = fixture_writes(fx, 2, count, 0, "thief", 21);

	fixture_at(fx, 1, wait)->link = unlock;
	fixture_asserts(fx, 1, use, 0, "Assertion `count > 0' failed");
	fixture_order(fx, &fx->answer.failing, "00 1111 222 1111");
	fixture_cause(fx, 2, steal, 1, use);
	fixture_alternate(fx, "00 1111 22 111 2 1");
}

static void if_and_wait(struct fixture *fx)
{
	looks_and_waits(fx, 13);
}

/* While: the same test is made again. */
static void while_and_wait(struct fixture *fx)
{
	looks_and_waits(fx, 11);
}

/* As the solver has it: the order the path demands is not part of the cause. */
static void two_variables_one_edge(struct fixture *fx)
{
	fixture_two_variables(fx);
	fx->answer.ncause = 1;
}

/* T0.1 had read the second one before: that update came too late, too, but both belong together. */
static void two_variables_one_counted(struct fixture *fx)
{
	fixture_init(fx, "/home/u/2stage", "/src/2stage.c");
	struct sym_trace *t = fx->trace;
	uint32_t a = fixture_var(fx, "a", "int", 0), b = fixture_var(fx, "b", "int", 0);

	fixture_children(fx);
	uint32_t before = fixture_event(fx, 1, SYM_READ, b, "stage", 9);
	uint32_t wa = fixture_event(fx, 1, SYM_WRITE, a, "stage", 10);
	uint32_t wb = fixture_event(fx, 1, SYM_WRITE, b, "stage", 14);

	fixture_at(fx, 1, wa)->value = expr_const(t->pool, 32, 1);
	fixture_at(fx, 1, wb)->value = expr_binary(t->pool, EX_ADD, fixture_sym(fx, 1, before),
						   expr_const(t->pool, 32, 2));
	uint32_t ra = fixture_event(fx, 2, SYM_READ, a, "look", 20);
	uint32_t rb = fixture_event(fx, 2, SYM_READ, b, "look", 21);

	fixture_event(fx, 2, SYM_FAIL, SYM_NONE, "look", 22);
	fixture_fails(fx, SYM_FAIL_ASSERT, 2, "Assertion `b > a' failed",
		      expr_binary(t->pool, EX_SLE, fixture_sym(fx, 2, rb), fixture_sym(fx, 2, ra)));
	fixture_order(fx, &fx->answer.failing, "00 11 22 2 1");
	fixture_cause(fx, 2, rb, 1, wb);
	fixture_cause(fx, 1, wa, 2, ra);
	fixture_alternate(fx, "00 111 222");
}

/* The reader looks at them the other way round: it was inside the writer, not the writer inside it. */
static void two_variables_inside(struct fixture *fx)
{
	fixture_two_variables(fx);
	struct sym_event *ra = fixture_at(fx, 2, 1), *rb = fixture_at(fx, 2, 2);
	uint32_t target = ra->target;
	expr_id symbol = ra->symbol;

	ra->target = rb->target;
	ra->symbol = rb->symbol;
	rb->target = target;
	rb->symbol = symbol;
	fx->answer.ncause = 0;
	fixture_cause(fx, 2, 1, 1, 2);
	fixture_cause(fx, 1, 1, 2, 2);
}

/* The alternate lets the reader go first. */
static void two_variables_reader_first(struct fixture *fx)
{
	fixture_two_variables(fx);
	fx->answer.ncause = 1;
	fx->answer.cause[0] = fx->answer.cause[1];
	fixture_order_free(&fx->answer.alternates[0].order);
	free(fx->answer.alternates);
	fixture_alternate(fx, "00 2222 111");
}

/* The run ends before the second write; an earlier round shows where it would be. */
static void unfinished(struct fixture *fx, bool earlier_round)
{
	fixture_init(fx, "/home/u/pair", "/src/pair.c");
	struct sym_trace *t = fx->trace;
	uint32_t low = fixture_var(fx, "low", "int", 0), high = fixture_var(fx, "high", "int", 5);

	fixture_children(fx);
	for (int round = !earlier_round; round < 2; round++) {
		uint32_t w = fixture_event(fx, 1, SYM_WRITE, low, "move", 10);

		fixture_at(fx, 1, w)->value = expr_const(t->pool, 32, round ? 20 : 10);
		if (round)
			break;
		w = fixture_event(fx, 1, SYM_WRITE, high, "move", 12);
		fixture_at(fx, 1, w)->value = expr_const(t->pool, 32, 15);
	}
	uint32_t rl = fixture_event(fx, 2, SYM_READ, low, "watch", 20);
	uint32_t rh = fixture_event(fx, 2, SYM_READ, high, "watch", 21);

	fixture_event(fx, 2, SYM_FAIL, SYM_NONE, "watch", 22);
	fixture_fails(fx, SYM_FAIL_ASSERT, 2, "Assertion `low <= high' failed",
		      expr_binary(t->pool, EX_SLT, fixture_sym(fx, 2, rh), fixture_sym(fx, 2, rl)));
	fixture_order(fx, &fx->answer.failing, earlier_round ? "00 111 222" : "00 1 222");
	fixture_cause(fx, 1, earlier_round ? 2 : 0, 2, rl);
	fixture_alternate(fx, earlier_round ? "00 11 222 1" : "00 222 1");
}

static void unfinished_round(struct fixture *fx)
{
	unfinished(fx, true);
}

static void unfinished_first(struct fixture *fx)
{
	unfinished(fx, false);
}

/* Between check and use the thread waits at a barrier. */
static void across_a_barrier(struct fixture *fx)
{
	fixture_check_then_act(fx);
	struct sym_object barrier = { .name = (char *)"round", .kind = SYM_BARRIER, .count = 1,
				      .owner = SYM_NONE };
	uint32_t b = sym_add_object(fx->trace, &barrier);

	fixture_at(fx, 1, 3)->op = SYM_BARRIER_ENTER;
	fixture_at(fx, 1, 4)->op = SYM_BARRIER_LEAVE;
	fixture_at(fx, 1, 4)->link = 3;
	fixture_at(fx, 1, 3)->target = fixture_at(fx, 1, 4)->target = b;
}

/* Two rounds of a loop read the same variable at the same place. */
static void two_rounds(struct fixture *fx)
{
	fixture_check_then_act(fx);
	fixture_at(fx, 1, 2)->pc = fixture_at(fx, 1, 5)->pc;
	fixture_at(fx, 1, 2)->stack = fixture_at(fx, 1, 5)->stack;
	fixture_at(fx, 1, 5)->occurrence = fixture_at(fx, 1, 2)->occurrence + 1;
}

/* One instruction of a library's, called from two lines, and the one led to the other. */
static void two_calls(struct fixture *fx)
{
	fixture_check_then_act(fx);
	for (uint32_t i = 2; i <= 5; i += 3) {
		struct sym_event *e = fixture_at(fx, 1, i);
		struct sym_frame frames[] = {
			{ .function = (char *)"vector::empty", .pc = 0x900, .line = 5,
			  .file = (char *)"/usr/include/c++/vector" },
			fx->trace->stacks[e->stack].frames[0],
		};

		frames[1].pc = 0x100 * i;
		e->stack = sym_add_stack(fx->trace, frames, 2);
		e->pc = 0x900;
		e->occurrence = i;
	}
}

/* The same, but what is read first is what the second round puts there, or compares with. */
static void tried_again(struct fixture *fx)
{
	two_rounds(fx);
	struct sym_event *last = fixture_at(fx, 1, 5);

	last->op = SYM_RMW;
	last->value = fixture_sym(fx, 1, 2);
}

/* Who made whom lies before the window: their names tell. */
static void teardown_cut_off(struct fixture *fx)
{
	fixture_teardown_in(fx, false);
}

static const struct expected table[] = {
	{ "a lost update", fixture_lost_update, DSP_HINT_ATOMIC,
	  { "bank.c:10 to 12", "T0.1 writes `total' at bank.c:12", "no lock is held" },
	  DSP_HINT_NONE, 1 },
	{ "a check of another variable", check_of_another, DSP_HINT_ATOMIC,
	  { "Make log.c:10 to 12 one atomic step", "T0.2 writes `dirty' at log.c:22" }, DSP_HINT_NONE, 1 },
	{ "a variable kept in a register", kept_in_register, DSP_HINT_ATOMIC,
	  { "Make doc.c:10 (get) to doc.c:14 (put) one atomic step", "T0.2 writes `refs' at doc.c:10" },
	  DSP_HINT_NONE, 1 },
	{ "a lost update without lines", stripped, DSP_HINT_ATOMIC,
	  { "Make bank+0x1263 one atomic step: T0.1 writes" }, DSP_HINT_NONE, 1 },
	{ "check then act, lock released in between", fixture_check_then_act, DSP_HINT_ATOMIC,
	  { "Keep `m' locked from crasher.c:11 to 14", "releases it at crasher.c:12",
	    "crasher.c:21" }, DSP_HINT_NONE, 1 },
	{ "check then act under the wrong lock", one_sided_lock, DSP_HINT_ATOMIC,
	  { "under `m'", "T0.1 does not hold" }, DSP_HINT_NONE, 1 },
	{ "locks taken in opposite orders", fixture_deadlock, DSP_HINT_LOCK_ORDER,
	  { "T0.1 takes `a' at abba.c:10, then `b' at abba.c:11",
	    "T0.2 takes `b' at abba.c:20, then `a' at abba.c:21" }, DSP_HINT_NONE, 0 },
	{ "a lock taken twice", self_deadlock, DSP_HINT_NONE,
	  { "already holds it since abba.c:10" }, DSP_HINT_NONE, 0 },
	{ "use before initialisation", fixture_use_before_init, DSP_HINT_ORDER,
	  { "init.c:32", "before T0.1 is created at init.c:31" }, DSP_HINT_NONE, 0 },
	{ "a creator that tears down too early", fixture_teardown, DSP_HINT_ORDER,
	  { "Let T0 wait for T0.1 before pbzip.c:40", "the join at pbzip.c:44 comes too late" },
	  DSP_HINT_ATOMIC, 1 },
	{ "a creator that tears down too early, made before the window", teardown_cut_off, DSP_HINT_ORDER,
	  { "Let T0 wait for T0.1 before pbzip.c:40", "which it created" }, DSP_HINT_ATOMIC, 1 },
	{ "two variables that belong together", fixture_two_variables, DSP_HINT_ATOMIC,
	  { "2stage.c:10 to 14" }, DSP_HINT_NONE, 1 },
	{ "two variables, one of them counted", two_variables_one_counted, DSP_HINT_ATOMIC,
	  { "Make 2stage.c:10 to 14 one atomic step" }, DSP_HINT_NONE, 1 },
	{ "two variables, one edge", two_variables_one_edge, DSP_HINT_ATOMIC,
	  { "2stage.c:10 to 14", "T0.2 reads `b' at 2stage.c:21" }, DSP_HINT_NONE, 1 },
	{ "two variables, read inside", two_variables_inside, DSP_HINT_ATOMIC,
	  { "2stage.c:10 to 14", "T0.2 reads" }, DSP_HINT_NONE, 1 },
	{ "two variables, reader first", two_variables_reader_first, DSP_HINT_ATOMIC,
	  { "2stage.c:10 to 14" }, DSP_HINT_NONE, 1 },
	{ "an update cut short by the failure", unfinished_round, DSP_HINT_ATOMIC,
	  { "Make pair.c:10 to 12 one atomic step", "T0.2 reads `high' at pair.c:21" },
	  DSP_HINT_NONE, 1 },
	{ "an update cut short in its first round", unfinished_first, DSP_HINT_ATOMIC,
	  { "Read `low' and `high' in one atomic step (pair.c:20 to 21", "pair.c:10" },
	  DSP_HINT_NONE, 1 },
	{ "a condition that is tested once", if_and_wait, DSP_HINT_RECHECK,
	  { "T0.1 reads `count' at queue.c:11", "waits at queue.c:12", "T0.2 writes `count' at queue.c:21" },
	  DSP_HINT_NONE, 0 },
	{ "a condition that is tested again", while_and_wait, DSP_HINT_ATOMIC,
	  { "Hold `m' where T0.2 writes `count' at queue.c:21" }, DSP_HINT_NONE, 0 },
	{ "a read without the lock", read_unguarded, DSP_HINT_ATOMIC,
	  { "Hold `m' where T0.1 reads `size' at list.c:10", "T0.2 holds it", "list.c:21" },
	  DSP_HINT_NONE, 0 },
	{ "a creator's read without the lock", creator_unguarded, DSP_HINT_ATOMIC,
	  { "Hold `m' where T0 reads `size' at list.c:10", "T0.2 holds it", "list.c:21" },
	  DSP_HINT_NONE, 0 },
	{ "a read between two writes under a lock", read_between, DSP_HINT_ATOMIC,
	  { "Hold `m' where T0.1 reads `size' at list.c:10", "T0.2 holds it", "list.c:21" },
	  DSP_HINT_NONE, 1 },
	{ "a lock let go half-way", left_half_done, DSP_HINT_ATOMIC,
	  { "Both hold `m'", "T0.1 checks at range.c:10", "T0.2 releases it at range.c:22", "range.c:21" },
	  DSP_HINT_NONE, 0 },
	{ "a look into a locked region", looks_without_lock, DSP_HINT_ATOMIC,
	  { "config.c:11 to 12", "without `m', which T0.1 holds throughout" }, DSP_HINT_NONE, 1 },
	{ "a copy that replaces", copied_meanwhile, DSP_HINT_ATOMIC,
	  { "table.c:10 to 11", "T0.2 reads `table[1]' at table.c:20" }, DSP_HINT_NONE, 1 },
	{ "a barrier in between", across_a_barrier, DSP_HINT_ORDER, { "crasher.c:21" },
	  DSP_HINT_NONE, 0 },
	{ "one instruction, called from two lines", two_calls, DSP_HINT_ATOMIC,
	  { "Keep `m' locked from crasher.c:11 to 14" }, DSP_HINT_NONE, 1 },
	{ "two rounds of a loop", two_rounds, DSP_HINT_ORDER, { "crasher.c:21" },
	  DSP_HINT_NONE, 0 },
	{ "a swap that is tried again", tried_again, DSP_HINT_ATOMIC, { "crasher.c:21" },
	  DSP_HINT_NONE, 1 },
};

int main(void)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		check_hint(&table[i]);
	CHECK_END();
}
