/* Path conditions: which of a thread's symbolic branches are written down, and in what form. */
#include "analyzer/symtrace/extract_internal.h"

#define LOOP_CONDS 64  /* of one branch, ... */
#define VALUE_CONDS 16 /* ... about one value; a loop that tests it longer gets it fixed */

const struct sym_event *ext_reader(const struct sym_trace *t, size_t thread, uint64_t symbol)
{
	for (size_t k = t->threads[thread].nevents; k-- > 0;) {
		const struct sym_event *v = &t->threads[thread].events[k];
		const struct expr *x = v->symbol ? expr_get(t->pool, v->symbol) : NULL;

		if (x && x->op == EX_SYMBOL && x->value == symbol)
			return v;
	}
	return NULL;
}

/* The value a symbol had in the recorded run; false: no event has it. Mostly who asks has just read it. */
static bool seen_of(const struct sym_trace *t, size_t thread, uint64_t symbol, expr_id *e, uint64_t *seen)
{
	const struct sym_event *v = ext_reader(t, thread, symbol);

	for (size_t i = 0; !v && i < t->nthreads; i++)
		if (i != thread)
			v = ext_reader(t, i, symbol);
	if (!v || v->op != SYM_READ || !v->has_seen)
		return false;
	*e = v->symbol;
	*seen = v->seen;
	return true;
}

struct pinning {
	struct ext *x;
	struct sym_cond at;
	uint32_t thread;
	uint32_t least; /* conditions that must name a symbol before it is given its value */
	bool all;       /* out: every symbol has its recorded value by condition */
};

static void give_value(struct pinning *p, uint64_t symbol)
{
	struct sym_trace *t = p->x->trace;
	struct sym_cond c = p->at;
	expr_id e;
	uint64_t seen;

	if (p->x->named.v[symbol] < p->least || !seen_of(t, p->thread, symbol, &e, &seen)) {
		p->all = false;
		return;
	}
	c.cond = expr_binary(t->pool, EX_EQ, e, expr_const(t->pool, expr_get(t->pool, e)->width, seen));
	sym_add_cond(t, p->thread, &c);
	p->x->pinned.v[symbol] = true;
}

static void pin(void *arg, uint64_t symbol)
{
	struct pinning *p = arg;

	while (p->x->pinned.n <= symbol) {
		vec_push(&p->x->pinned, false);
		vec_push(&p->x->named, 0);
	}
	p->x->named.v[symbol]++;
	if (!p->x->pinned.v[symbol])
		give_value(p, symbol);
}

/*
 * A branch in a long loop over a symbolic bound leaves a condition per round,
 * which together say little more than "the bound is what it was". From some
 * number on (or at once) just that is said, and the conditions it implies are left out.
 * Where each round looks at another value each says something new.
 */
static bool is_pinned(struct ext *x, uint32_t thread, const struct sym_cond *c, uint64_t pc,
		      bool at_once)
{
	struct pinning p = { x, *c, thread, at_once ? 0 : UINT32_MAX, true };

	if (!at_once && ext_count(x, thread, pc | 1ull << 63, mach_thread_insns(x->run, thread)) > LOOP_CONDS)
		p.least = VALUE_CONDS;
	expr_symbols(x->trace->pool, c->cond, pin, &p);
	return p.all;
}

enum ext_cond_added ext_add_cond(struct ext *x, uint32_t thread, expr_id cond, uint64_t pc, bool pin_at_once)
{
	const struct sym_thread *t = &x->trace->threads[thread];
	struct sym_cond c = { .after = t->nevents ? (uint32_t)t->nevents - 1 : SYM_NONE,
			      .cond = cond, .stack = SYM_NONE };

	if (expr_get(x->trace->pool, cond)->concrete)
		return COND_SAYS_NOTHING;
	if (is_pinned(x, thread, &c, pc, pin_at_once))
		return COND_IMPLIED;
	/* How a number is printed decides nothing; another order may print another one. */
	if (level_is_printing(x->level, thread, pc)) {
		sym_add_assumption(x->trace, "What the program prints does not steer it: an order "
					     "in which it prints another value is taken for the same.");
		return COND_SAYS_NOTHING;
	}
	/* A loop that tests the same value again adds nothing. */
	for (size_t i = t->nconds; i > 0 && t->nconds - i < 8; i--)
		if (t->conds[i - 1].cond == cond)
			return COND_SAYS_NOTHING;
	c.stack = ext_stack(x, thread, pc);
	sym_add_cond(x->trace, thread, &c);
	return COND_ADDED;
}
