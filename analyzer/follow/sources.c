/*
 * Of what a branch that went wrong was made. Between the racy read and the branch its value may have
 * been copied about (a string, before it is compared): then the read is far away, and others that have
 * nothing to do with it are nearer. So the stretch is executed once more with symbols, one for each read of a
 * word that several threads touch; those in the branch's condition are its sources.
 */
#include "analyzer/follow/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 400000u /* instructions of the stretch: executing it with symbols is slow */
#define JUST_BEFORE 64u /* instructions before the branch: what was made concrete there may have decided it */
#define MOST_SYMBOLS 200000u
#define MOST_DECISIONS 256u /* of those just before the branch: each is a walk over what it was made of */
#define SEVERAL UINT32_MAX

struct symbols {
	struct search *s;
	const struct frame *f;
	struct expr_pool *pool;
	VEC(struct source) of; /* by symbol */
	bool named[MOST_SYMBOLS]; /* it is one of the sources */
	VEC(struct writer {
		uint64_t word;
		uint32_t thread; /* or SEVERAL */
	}) writers;
	expr_id last;          /* the condition of the thread's last branch */
	struct decision {
		expr_id cond;
		uint64_t insn;
	} concrete[MOST_DECISIONS]; /* a ring */
	uint64_t nconcrete;
};

/* Who writes the words that are written, sorted by word: the touches are. */
static void find_writers(struct symbols *x)
{
	for (size_t i = 0; i < x->s->touches.n; i++) {
		const struct touch *t = &x->s->touches.v[i];
		struct writer *last = x->writers.n ? &x->writers.v[x->writers.n - 1] : NULL;

		if (!t->write)
			continue;
		if (!last || last->word != t->word)
			vec_push(&x->writers, (struct writer){ t->word, t->thread });
		else if (last->thread != t->thread)
			last->thread = SEVERAL;
	}
}

/* Somebody else writes the word. */
static bool is_racy(const struct symbols *x, uint64_t word, uint32_t thread)
{
	size_t lo = 0, hi = x->writers.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (x->writers.v[mid].word < word)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < x->writers.n && x->writers.v[lo].word == word && x->writers.v[lo].thread != thread;
}

static expr_id on_access(void *arg, const struct mach_access *a, expr_id value)
{
	struct symbols *x = arg;
	char name[32];

	(void)value;
	if (!(a->flags & ACCESS_READ) || a->flags & ACCESS_LOCKED || a->size > 8 || x->of.n >= MOST_SYMBOLS ||
	    !is_racy(x, a->address / 8, a->thread))
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
	if (thread != x->f->thread || !cond ||
	    mach_thread_insns(x->s->r, thread) + 2 * JUST_BEFORE < x->f->insn)
		return;
	/* A comparison of strings is one for each byte: the latest are kept. */
	x->concrete[x->nconcrete++ % MOST_DECISIONS] =
		(struct decision){ cond, mach_thread_insns(x->s->r, thread) };
}

static void add_source(void *arg, uint64_t symbol)
{
	struct symbols *x = arg;

	if (symbol >= x->of.n || x->named[symbol])
		return;
	x->named[symbol] = true;
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

static int by_place(const void *a, const void *b)
{
	const struct source *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->insn < y->insn ? -1 : x->insn > y->insn;
}

void sources_find(struct search *s, const struct frame *f)
{
	static struct symbols x; /* too large for the stack */
	uint64_t kept;

	s->sources.n = 0;
	if (s->r->time - search_base(s)->time > LONGEST || !s->touches.n)
		return;
	x = (struct symbols){ .s = s, .f = f, .pool = expr_pool_new() };
	find_writers(&x);
	execute(&x);
	kept = x.nconcrete < MOST_DECISIONS ? x.nconcrete : MOST_DECISIONS;
	if (x.last)
		expr_symbols(x.pool, x.last, add_source, &x);
	for (size_t i = 0; i < kept && !run_out_of_time(s->r); i++)
		if (x.concrete[i].insn + JUST_BEFORE >= f->insn)
			expr_symbols(x.pool, x.concrete[i].cond, add_source, &x);
	if (s->sources.n)
		qsort(s->sources.v, s->sources.n, sizeof *s->sources.v, by_place);
	expr_pool_free(x.pool);
	vec_free(&x.of);
	vec_free(&x.writers);
}

bool sources_have(const struct search *s, uint32_t thread, uint64_t insn)
{
	const struct source key = { thread, insn };

	return s->sources.n &&
	       bsearch(&key, s->sources.v, s->sources.n, sizeof key, by_place);
}
