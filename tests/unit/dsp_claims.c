/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Advice where threads meet at what both claimed, or act on a check that is not true any more: the region lies further back. */
#include "tests/lib/dsp_expect.h"

enum roll { CUT, RAN_OUT, IN_TURN };

/*
 * Two clerks tear the top ticket off a roll, and write their name on the counter foil of that number. They meet at the foil.
 * CUT: both saw the same top and moved it on; RAN_OUT: T0.1 had not yet moved it; IN_TURN: each had it to itself.
 */
static void roll(struct fixture *fx, enum roll how)
{
	fixture_init(fx, "/home/u/roll", "/src/roll.c");
	struct sym_trace *t = fx->trace;
	uint32_t top = fixture_var(fx, "top", "int", 7), foil = fixture_var(fx, "foil[7]", "int", 0);
	uint32_t read[3], name[3], check = 0;

	fixture_children(fx);
	for (uint32_t i = 1; i < 3; i++) {
		read[i] = fixture_event(fx, i, SYM_READ, top, "tear", 10);
		fixture_cond(fx, i, read[i], expr_binary(t->pool, EX_EQ, fixture_sym(fx, i, read[i]), expr_const(t->pool, 32, 7)));
		if (how != RAN_OUT || i == 2)
			fixture_writes(fx, i, top, 8, "tear", 12);
		name[i] = fixture_writes(fx, i, foil, i, "sign", 20);
		if (i == 2)
			continue;
		check = fixture_event(fx, i, SYM_READ, foil, "sign", 21);
		fixture_event(fx, i, SYM_FAIL, SYM_NONE, "sign", 21);
	}
	fixture_asserts(fx, 1, check, 2, "Assertion `foil[n] == me' failed");
	fixture_order(fx, &fx->answer.failing, how == CUT ? "00 1 2 1 2 1 2 11" : how == RAN_OUT ? "00 1 2 2 1 2 11" : "00 11 22 1 2 11");
	fixture_cause(fx, 2, name[2], 1, check);
	fixture_alternate(fx, how == CUT ? "00 1 2 1 2 111 2" : how == RAN_OUT ? "00 1 2 2 111 2" : "00 11 22 111 2");
}

static void both_tore(struct fixture *fx)
{
	roll(fx, CUT);
}

static void tore_too_late(struct fixture *fx)
{
	roll(fx, RAN_OUT);
}

static void tore_in_turn(struct fixture *fx)
{
	roll(fx, IN_TURN);
}

/* Who leaves last puts out the light: each counts itself out, atomically, and then looks whether anybody is left. */
static void both_last(struct fixture *fx)
{
	fixture_init(fx, "/home/u/light", "/src/light.c");
	struct sym_trace *t = fx->trace;
	uint32_t inside = fixture_var(fx, "inside", "int", 2), light = fixture_var(fx, "light", "int", 1);
	uint32_t seen[3], out[3];

	fixture_children(fx);
	for (uint32_t i = 1; i < 3; i++) {
		uint32_t down = fixture_event(fx, i, SYM_RMW, inside, "leave", 10);

		fixture_at(fx, i, down)->value = expr_binary(t->pool, EX_SUB, fixture_sym(fx, i, down), expr_const(t->pool, 32, 1));
		uint32_t look = fixture_event(fx, i, SYM_READ, inside, "leave", 11);
		fixture_cond(fx, i, look, expr_binary(t->pool, EX_EQ, fixture_sym(fx, i, look), expr_const(t->pool, 32, 0)));
		seen[i] = fixture_event(fx, i, SYM_READ, light, "leave", 12);
		if (i == 1)
			out[1] = fixture_writes(fx, i, light, 0, "leave", 13);
	}
	fixture_event(fx, 2, SYM_FAIL, SYM_NONE, "leave", 12);
	fixture_asserts(fx, 2, seen[2], 0, "Assertion `light' failed");
	fixture_order(fx, &fx->answer.failing, "00 1 2 1 2 1 1 22");
	fixture_cause(fx, 1, out[1], 2, seen[2]);
	fixture_alternate(fx, "00 1 2 1 2 22 11");
}

/*
 * Looks under a lock whether there is bread, and takes some under it later; another one takes it in between. The order that
 * passes lets the baker come later, so that neither saw any.
 */
static void bread(struct fixture *fx, bool decides)
{
	fixture_init(fx, "/home/u/bakery", "/src/bakery.c");
	struct sym_trace *t = fx->trace;
	uint32_t bread = fixture_var(fx, "bread", "int", 0), m = fixture_mutex(fx, "shop");
	expr_id none = expr_const(t->pool, 32, 0);

	fixture_children(fx);
	uint32_t bake = fixture_writes(fx, 0, bread, 1, "bake", 60);
	fixture_event(fx, 1, SYM_LOCK, m, "any", 10);
	uint32_t look = fixture_event(fx, 1, SYM_READ, bread, "any", 11);
	if (decides)
		fixture_cond(fx, 1, look, expr_unary(t->pool, EX_BNOT, expr_binary(t->pool, EX_EQ, fixture_sym(fx, 1, look), none)));
	fixture_event(fx, 1, SYM_UNLOCK, m, "any", 12);
	fixture_event(fx, 1, SYM_LOCK, m, "buy", 20);
	uint32_t had = fixture_event(fx, 1, SYM_READ, bread, "buy", 21);
	fixture_event(fx, 1, SYM_FAIL, SYM_NONE, "buy", 21);
	fixture_event(fx, 2, SYM_LOCK, m, "buy", 20);
	fixture_writes(fx, 2, bread, 0, "buy", 22);
	fixture_event(fx, 2, SYM_UNLOCK, m, "buy", 23);
	fixture_asserts(fx, 1, had, 0, "Assertion `bread' failed");
	fixture_order(fx, &fx->answer.failing, "00 0 111 222 111");
	fixture_cause(fx, 0, bake, 1, look);
	fixture_alternate(fx, "00 111 0 222");
}

static void stale_check(struct fixture *fx)
{
	bread(fx, true);
}

static void only_looked(struct fixture *fx)
{
	bread(fx, false);
}

/* The event happens in a helper that was called, or inlined, at this line of `print'. */
static void in_helper(struct fixture *fx, uint32_t thread, uint32_t index, const char *helper, uint32_t line, uint64_t pc, bool inlined)
{
	struct sym_frame f[3] = {
		{ .function = (char *)helper, .file = (char *)fx->file, .line = 3, .pc = pc },
		{ .function = (char *)"print", .file = (char *)fx->file, .line = line, .pc = inlined ? pc : pc + 0x1000 },
		{ .function = (char *)"start_thread", .module = (char *)"libc.so.6", .pc = 0x7f00 },
	};

	fixture_at(fx, thread, index)->stack = sym_add_stack(fx->trace, f, 3);
}

/* The tickets again: the roll is read and written by helpers. */
static void by_helpers(struct fixture *fx, uint32_t line, bool inlined)
{
	roll(fx, CUT);
	for (uint32_t i = 1; i < 3; i++) {
		in_helper(fx, i, 0, "get", 40, 0x500000, inlined);
		in_helper(fx, i, 1, "set", line, 0x500100, inlined);
	}
}

static void helpers(struct fixture *fx)
{
	by_helpers(fx, 42, false);
}

static void one_statement(struct fixture *fx)
{
	by_helpers(fx, 40, true);
}

/*
 * Main and the thread it made both do a part of a loop, and T0.1 reads what main has still to write. The library that made the
 * thread hands it its work by a word of its own (`where': the module that writes it).
 */
static void parts(struct fixture *fx, const char *where)
{
	fixture_init(fx, "/home/u/parts", "/src/parts.c");
	struct sym_trace *t = fx->trace;
	uint32_t slot = fixture_var(fx, "slot", "int", 0), team = fixture_var(fx, "team", "int", 0);

	fixture_children(fx);
	uint32_t give = fixture_writes(fx, 0, team, 1, "main", 52);
	struct sym_frame f[2] = {
		{ .function = (char *)"start", .module = (char *)where, .pc = 0x7e0000 },
		{ .function = (char *)"main", .file = (char *)fx->file, .line = 52, .module = t->program, .pc = 0x401340 },
	};
	fixture_at(fx, 0, give)->stack = sym_add_stack(t, f, 2);
	uint32_t write = fixture_writes(fx, 0, slot, 7, "loop", 20);
	uint32_t take = fixture_event(fx, 1, SYM_READ, team, "loop", 19);
	fixture_cond(fx, 1, take, expr_binary(t->pool, EX_EQ, fixture_sym(fx, 1, take), expr_const(t->pool, 32, 1)));
	uint32_t read = fixture_event(fx, 1, SYM_READ, slot, "loop", 22);
	fixture_event(fx, 1, SYM_FAIL, SYM_NONE, "loop", 23);
	fixture_asserts(fx, 1, read, 0, "Assertion `slot' failed");
	fixture_order(fx, &fx->answer.failing, "00 0 111 0");
	fixture_cause(fx, 1, read, 0, write);
	fixture_alternate(fx, "00 0 0 111");
}

static void handed_by_library(struct fixture *fx)
{
	parts(fx, "/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0");
}

static void handed_by_program(struct fixture *fx)
{
	parts(fx, "/home/u/parts");
}

/* Two runners cross the line; each looks whether there is a winner, puts its name there and counts itself. Main looks at the count. */
static void two_winners(struct fixture *fx)
{
	fixture_init(fx, "/home/u/race", "/src/race.c");
	struct sym_trace *t = fx->trace;
	uint32_t winner = fixture_var(fx, "winner", "int", 0), count = fixture_var(fx, "winners", "int", 0), last[3];
	expr_id none = expr_const(t->pool, 32, 0);

	fixture_children(fx);
	for (uint32_t i = 1; i < 3; i++) {
		uint32_t look = fixture_event(fx, i, SYM_READ, winner, "cross", 10);

		fixture_cond(fx, i, look, expr_binary(t->pool, EX_EQ, fixture_sym(fx, i, look), none));
		fixture_writes(fx, i, winner, i, "cross", 11);
		last[i] = fixture_event(fx, i, SYM_RMW, count, "cross", 12);
		fixture_at(fx, i, last[i])->value = expr_binary(t->pool, EX_ADD, fixture_sym(fx, i, last[i]), expr_const(t->pool, 32, 1));
	}
	uint32_t end = fixture_event(fx, 0, SYM_READ, count, "main", 60);
	fixture_event(fx, 0, SYM_FAIL, SYM_NONE, "main", 60);
	fixture_asserts(fx, 0, end, 2, "Assertion `winners == 1' failed");
	fixture_order(fx, &fx->answer.failing, "00 1 2 1 2 1 2 00");
	fixture_cause(fx, 2, last[2], 0, end);
	fixture_alternate(fx, "00 1 2 1 2 1 00 2");
}

/* The look of one round and the write of the next are no region: a meter is looked at, and set when it has come round. */
static void next_round(struct fixture *fx)
{
	fixture_init(fx, "/home/u/meter", "/src/meter.c");
	struct sym_trace *t = fx->trace;
	uint32_t meter = fixture_var(fx, "meter", "int", 7), sheet = fixture_var(fx, "sheet", "int", 0);
	uint32_t name[3], check = 0;

	fixture_children(fx);
	for (uint32_t i = 1; i < 3; i++) {
		for (uint32_t round = 0; round < 2; round++) {
			uint32_t look = fixture_event(fx, i, SYM_READ, meter, "watch", 10);

			fixture_at(fx, i, look)->occurrence = round + 1;
			fixture_cond(fx, i, look, expr_binary(t->pool, EX_SLE, expr_const(t->pool, 32, 7), fixture_sym(fx, i, look)));
		}
		fixture_writes(fx, i, meter, 8, "watch", 12);
		name[i] = fixture_writes(fx, i, sheet, i, "sign", 20);
		if (i == 2)
			continue;
		check = fixture_event(fx, i, SYM_READ, sheet, "sign", 21);
		fixture_event(fx, i, SYM_FAIL, SYM_NONE, "sign", 21);
	}
	fixture_asserts(fx, 1, check, 2, "Assertion `sheet == me' failed");
	fixture_order(fx, &fx->answer.failing, "00 1 222 11 1 2 11");
	fixture_cause(fx, 2, name[2], 1, check);
	fixture_alternate(fx, "00 1 222 11 111 2");
}

static const struct expected table[] = {
	{ "both claimed the same", both_tore, DSP_HINT_ATOMIC,
	  { "Make roll.c:10 to 12 one atomic step", "writes `top' at roll.c:12" }, DSP_HINT_NONE, 1 },
	{ "the run ended before the one had taken it", tore_too_late, DSP_HINT_ATOMIC,
	  { "roll.c:10 to 12 one atomic step", "T0.2 writes `top' at roll.c:12" }, DSP_HINT_NONE, 1 },
	{ "each had it to itself", tore_in_turn, DSP_HINT_ATOMIC, { "roll.c:20 to 21" }, DSP_HINT_NONE, 1 },
	{ "a look, and the write of the next round", next_round, DSP_HINT_ATOMIC, { "meter.c:20 to 21" }, DSP_HINT_NONE, 1 },
	{ "helpers: who calls them is to be changed", helpers, DSP_HINT_ATOMIC, { "Make roll.c:40 to 42 (print) one atomic step" },
	  DSP_HINT_NONE, 1 },
	{ "helpers inlined into one statement", one_statement, DSP_HINT_ATOMIC, { "Make roll.c:40 (print) one atomic step" },
	  DSP_HINT_NONE, 1 },
	{ "two parts of a loop", handed_by_library, DSP_HINT_ORDER,
	  { "Let T0.1 wait, before it reads `slot' at parts.c:22, until T0 is past parts.c:20" }, DSP_HINT_NONE, 0 },
	{ "the program itself says too early that it is there", handed_by_program, DSP_HINT_ORDER,
	  { "Do parts.c:20 (T0 writes `slot') before parts.c:52" }, DSP_HINT_NONE, 1 },
	{ "both count themselves", two_winners, DSP_HINT_ATOMIC, { "race.c:10 to 11 one atomic step" }, DSP_HINT_NONE, 1 },
	{ "counted out, then looked", both_last, DSP_HINT_ATOMIC,
	  { "Make light.c:10 to 11 one atomic step", "updates `inside' at light.c:10" }, DSP_HINT_NONE, 1 },
	{ "a check that is not true any more", stale_check, DSP_HINT_ATOMIC,
	  { "Keep `shop' locked from", "bakery.c:11 (any) to bakery.c:21 (buy)", "releases it at bakery.c:12", "T0.2 gets in between" },
	  DSP_HINT_NONE, 1 },
	{ "a look that decided nothing", only_looked, DSP_HINT_ORDER, { "bakery.c:11" }, DSP_HINT_NONE, 0 },
};

int main(void)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		check_hint(&table[i]);
	CHECK_END();
}
