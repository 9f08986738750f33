/*
 * Of what a branch that went wrong was made. Between the racy read and the branch its value may have
 * been copied about (a string, before it is compared): then the read is far away, and others that have
 * nothing to do with it are nearer. So the stretch is executed once more with symbols, one for each read of a
 * word that several threads touch; those in the branch's condition are its sources.
 */
#include "analyzer/machine/search.h"

#include <stdio.h>
#include <string.h>

#define LONGEST 400000u /* instructions of the stretch: executing it with symbols is slow */
#define JUST_BEFORE 64u /* instructions before the branch: what was made concrete there may have decided it */
#define MOST_SYMBOLS 200000u

struct symbols {
	struct search *s;
	const struct frame *f;
	struct expr_pool *pool;
	VEC(struct source) of; /* by symbol */
	expr_id last;          /* the condition of the thread's last branch */
	VEC(struct decision {
		expr_id cond;
		uint64_t insn;
	}) concrete;
};

/* Somebody else writes the word; the touches are sorted by it. */
static bool is_racy(const struct search *s, uint64_t word, uint32_t thread)
{
	size_t lo = 0, hi = s->touches.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->touches.v[mid].word < word)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < s->touches.n && s->touches.v[lo].word == word; lo++)
		if (s->touches.v[lo].write && s->touches.v[lo].thread != thread)
			return true;
	return false;
}

static expr_id on_access(void *arg, const struct mach_access *a, expr_id value)
{
	struct symbols *x = arg;
	char name[32];

	(void)value;
	if (!(a->flags & ACCESS_READ) || a->flags & ACCESS_LOCKED || a->size > 8 || x->of.n >= MOST_SYMBOLS ||
	    !is_racy(x->s, a->address / 8, a->thread))
		return EXPR_NONE;
	snprintf(name, sizeof name, "r%zu", x->of.n);
	vec_push(&x->of, (struct source){ a->thread, a->insn });
	return expr_symbol(x->pool, 8u * a->size, name);
}

static void on_branch(void *arg, const struct mach_branch *b)
{
	struct symbols *x = arg;

	if (b->thread == x->f->thread)
		x->last = b->cond;
}

static void on_concretized(void *arg, uint32_t thread, uint64_t pc, expr_id cond, const char *why)
{
	struct symbols *x = arg;

	(void)pc;
	(void)why;
	if (thread == x->f->thread && cond)
		vec_push(&x->concrete, ((struct decision){ cond, mach_thread_insns(x->s->r, thread) }));
}

static void add_source(void *arg, uint64_t symbol)
{
	struct symbols *x = arg;

	if (symbol < x->of.n && !sources_have(x->s, x->of.v[symbol].thread, x->of.v[symbol].insn))
		vec_push(&x->s->sources, x->of.v[symbol]);
}

static void execute(struct symbols *x)
{
	const struct mach_hooks hooks = { .arg = x, .access = on_access, .branch = on_branch,
					  .concretized = on_concretized };
	struct mach_run *r = x->s->r;
	const struct checkpoint *base = search_base(x->s);
	size_t n = r->log.n;
	bool stopped;

	checkpoint_restore(r, base);
	r->log.n = n;
	run_hooks_on(r, &hooks, x->pool, r->time);
	err_free(run_log_again(r, base->log, n, &stopped));
	run_hooks_off(r);
}

void sources_find(struct search *s, const struct frame *f)
{
	struct symbols x = { .s = s, .f = f, .pool = NULL };

	s->sources.n = 0;
	if (s->r->time - search_base(s)->time > LONGEST || !s->touches.n)
		return;
	x.pool = expr_pool_new();
	execute(&x);
	if (x.last)
		expr_symbols(x.pool, x.last, add_source, &x);
	for (size_t i = 0; i < x.concrete.n; i++)
		if (x.concrete.v[i].insn + JUST_BEFORE >= f->insn)
			expr_symbols(x.pool, x.concrete.v[i].cond, add_source, &x);
	expr_pool_free(x.pool);
	vec_free(&x.of);
	vec_free(&x.concrete);
}

bool sources_have(const struct search *s, uint32_t thread, uint64_t insn)
{
	for (size_t i = 0; i < s->sources.n; i++)
		if (s->sources.v[i].thread == thread && s->sources.v[i].insn == insn)
			return true;
	return false;
}
