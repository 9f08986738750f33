/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A symbolic trace without the memory of its program: for redacted packs.
 *
 * What a program copied into a shared variable, or compared one with, stands in the trace as numbers, and text is numbers, too.
 * What cannot be told from a number of the program's memory goes: it stays only where it is small (counters, flags), a shift or the mask of
 * an "and". Of wide values it can still be seen where they were equal; narrow ones, characters say, are all alike. So the
 * shape of the trace stays, and what it says of other orders may not.
 */
#include "analyzer/expr/expr_pool.h"
#include "analyzer/symtrace/symtrace.h"
#include "common/vec.h"

#include <string.h>
#include <sys/random.h>

#define LARGEST_KEPT 31 /* below the first printable character */
#define NARROW 16       /* bits: too few to hide in */
#define LEFT_OUT '*'

struct forgetting {
	struct expr_pool *pool;
	uint64_t key[2];
	expr_id *now; /* by expr_id */
};

static bool is_kept(unsigned width, uint64_t value)
{
	return width == EXPR_BOOL || value <= LARGEST_KEPT || expr_mask(width, ~value + 1) <= LARGEST_KEPT;
}

/* The same number for the same value, in this pack only. */
static uint64_t pseudonym(const struct forgetting *f, unsigned width, uint64_t value)
{
	uint64_t x = value;

	if (width < NARROW)
		return expr_mask(width, LEFT_OUT);
	for (int i = 0; i < 8; i++) {
		x = (x ^ f->key[i & 1]) * 0x9e3779b97f4a7c15ull;
		x ^= x >> 29;
	}
	x = expr_mask(width == EXPR_INT ? 63 : width, x);
	return is_kept(width, x) ? LARGEST_KEPT + 1 : x;
}

/* Ones without a gap, from some bit on. */
static bool is_mask(uint64_t value)
{
	uint64_t low = value & (~value + 1);

	return value && ((value + low) & value) == 0;
}

static expr_id operand(const struct forgetting *f, const struct expr *of, expr_id e, bool second)
{
	const struct expr *n = expr_get(f->pool, e);
	bool shift = second && (of->op == EX_SHL || of->op == EX_LSHR || of->op == EX_ASHR);

	if (!e)
		return 0;
	if (n->op == EX_CONST && (shift || (of->op == EX_AND && n->width > NARROW && is_mask(n->value))))
		return e;
	return f->now[e];
}

static void forget_node(struct forgetting *f, expr_id e)
{
	struct expr n = *expr_get(f->pool, e);

	if (n.op == EX_SYMBOL)
		f->now[e] = e;
	else if (n.op == EX_CONST)
		f->now[e] = is_kept(n.width, n.value) ? e : expr_intern(f->pool, EX_CONST, n.width, 0, 0, 0, pseudonym(f, n.width, n.value));
	else
		f->now[e] = expr_intern(f->pool, n.op, n.width, operand(f, &n, n.a, false), operand(f, &n, n.b, true),
					operand(f, &n, n.c, false), n.value);
}

static void forget_events(const struct forgetting *f, struct sym_thread *t)
{
	for (size_t i = 0; i < t->nevents; i++) {
		struct sym_event *e = &t->events[i];

		e->has_seen = e->fixed = false;
		e->seen = 0;
		e->value = f->now[e->value];
	}
	for (size_t i = 0; i < t->nconds; i++)
		t->conds[i].cond = f->now[t->conds[i].cond];
}

err_t sym_forget(struct sym_trace *t)
{
	size_t n = expr_count(t->pool);
	struct forgetting f = { .pool = t->pool };

	if (getrandom(f.key, sizeof f.key, 0) != sizeof f.key)
		return err_errno("no random numbers");
	f.now = xcalloc(n + 1, sizeof *f.now);
	/* Operands come before what is made of them. */
	for (expr_id e = 1; e < n; e++)
		forget_node(&f, e);
	for (size_t i = 0; i < t->nvars; i++)
		t->vars[i].init = f.now[t->vars[i].init];
	for (size_t i = 0; i < t->nthreads; i++)
		forget_events(&f, &t->threads[i]);
	t->failure.condition = f.now[t->failure.condition];
	free(f.now);
	return NULL;
}
