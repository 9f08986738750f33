/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Why a run went another way than its record: the end of what was followed is executed once more, with a
 * symbol for each read that may have seen what nobody recorded. Those in the condition of the branch that went
 * wrong are the likely reason, and are told with their address and what is mapped there.
 */
#include "analyzer/follow/follow.h"
#include "analyzer/engine/shadow.h"

#include <inttypes.h>
#include <stdio.h>

#define SYMBOLIC 300000u /* instructions before the mismatch whose reads get symbols ... */
#define NEAREST 10000u   /* ... or, when memory is nobody else's, reads of any kind */
#define FARTHEST 200000000u /* instructions to execute again to get there */
#define JUST_BEFORE 64u  /* instructions before the branch: what was made concrete there may have decided it */
#define MOST_READS 100000u
#define MOST_DECISIONS 64u
#define FREE_BLAMES 20u
#define COST_OF_BLAME 100000000ull /* instructions that must have been followed for each more */

struct read_at {
	uint64_t pc, address, insn;
};

struct blame {
	struct mach_run *r;
	uint32_t thread;
	enum { READS_SHARED, READS_FIRST, READS_ALL } which; /* of what is shared with others; of what was not computed here; all */
	struct expr_pool *pool;
	VEC(struct read_at) reads; /* by symbol */
	expr_id last;
	expr_id decided[MOST_DECISIONS]; /* a ring */
	uint64_t decided_at[MOST_DECISIONS];
	uint64_t ndecided;
	struct read_at found;
	bool is_found;
};

void run_note_shared(struct mach_run *r, uint64_t start, uint64_t end, bool file)
{
	for (size_t i = 0; i < r->shared.n; i++)
		if (r->shared.v[i].start <= start && r->shared.v[i].end >= end)
			return; /* it is executed again */
	vec_push(&r->shared, (struct shared_range){ start, end, file });
}

static const struct shared_range *shared_at(const struct mach_run *r, uint64_t address)
{
	for (size_t i = r->shared.n; i-- > 0;)
		if (address - r->shared.v[i].start < r->shared.v[i].end - r->shared.v[i].start)
			return &r->shared.v[i];
	return NULL;
}

/* Constants of the program are what they were. */
static bool is_constant(const struct mach_run *r, uint64_t address)
{
	const struct mem_map *map = mem_find(r->m->mem, address);

	return map && !(map->prot & MEM_W) && img_module_at(r->images, address);
}

static expr_id on_access(void *arg, const struct mach_access *a, expr_id value)
{
	struct blame *b = arg;
	char name[32];

	/* What was computed from an earlier read keeps the name of that one. */
	if (!(a->flags & ACCESS_READ) || a->size > 8 || b->reads.n >= MOST_READS ||
	    (b->which == READS_SHARED ? !shared_at(b->r, a->address) : a->thread != b->thread) ||
	    (b->which == READS_FIRST && (value || is_constant(b->r, a->address))))
		return EXPR_NONE;
	snprintf(name, sizeof name, "r%zu", b->reads.n);
	vec_push(&b->reads, (struct read_at){ a->pc, a->address, a->insn });
	return expr_symbol(b->pool, 8u * a->size, name);
}

static void on_branch(void *arg, const struct mach_branch *branch)
{
	struct blame *b = arg;

	if (branch->thread == b->thread)
		b->last = branch->cond;
}

static void on_concretized(void *arg, uint32_t thread, uint64_t pc, expr_id cond, const char *why)
{
	struct blame *b = arg;

	(void)pc, (void)why;
	if (thread != b->thread || !cond)
		return;
	b->decided[b->ndecided % MOST_DECISIONS] = cond;
	b->decided_at[b->ndecided++ % MOST_DECISIONS] = mach_thread_insns(b->r, thread);
}

/* The latest of those that it was made of. */
static void on_symbol(void *arg, uint64_t symbol)
{
	struct blame *b = arg;

	if (symbol >= b->reads.n || (b->is_found && b->reads.v[symbol].insn <= b->found.insn))
		return;
	b->found = b->reads.v[symbol];
	b->is_found = true;
}

static void find_reads(struct blame *b)
{
	uint64_t now = mach_thread_insns(b->r, b->thread);

	if (b->last)
		expr_symbols(b->pool, b->last, on_symbol, b);
	for (uint64_t i = 0; i < b->ndecided && i < MOST_DECISIONS; i++)
		if (b->decided_at[i] + JUST_BEFORE >= now)
			expr_symbols(b->pool, b->decided[i], on_symbol, b);
}

/* From `back` instructions before the end of the log to its end. */
static err_t execute(struct blame *b, uint64_t back)
{
	const struct mach_hooks hooks = { .arg = b, .access = on_access, .branch = on_branch,
					  .concretized = on_concretized };
	struct mach_run *r = b->r;
	uint64_t end = r->time, from = end > back ? end - back : 0, left;
	size_t log, n = r->log.n;
	bool stopped;
	err_t e;

	if (end - run_checkpoint_time(r, from) > FARTHEST)
		return err_new(ERR_NOANSWER, "too far");
	TRY(run_go_exactly(r, from, &log, &left));
	run_hooks_on(r, &hooks, b->pool, 0);
	shadow_wake(r->m->shadow);
	e = NULL;
	if (left) {
		struct log_step rest = r->log.v[log++];

		rest.insns = left;
		e = run_log_step(r, &rest);
	}
	if (!e)
		e = run_log_again(r, log, n, &stopped);
	find_reads(b);
	run_hooks_off(r);
	return e;
}

static char *where(struct mach_run *r, uint64_t address)
{
	const struct shared_range *s = shared_at(r, address);
	const struct mem_map *map = mem_find(r->m->mem, address);

	if (s)
		return xasprintf("0x%" PRIx64 ", in %s mapped MAP_SHARED at 0x%" PRIx64 "-0x%" PRIx64, address,
				 s->file ? "a file" : "memory", s->start, s->end);
	if (img_module_at(r->images, address))
		return run_place(r, address);
	return xasprintf("0x%" PRIx64 "%s", address, map ? ", in private memory" : ", where nothing is mapped");
}

static void tell(struct blame *b)
{
	struct mach_run *r = b->r;
	char *at = where(r, b->found.address), *place = run_place(r, b->found.pc);

	free(r->reason);
	if (b->which != READS_SHARED)
		r->reason = xasprintf("it depends on what was read from %s by %s", at, place);
	else
		r->reason = xasprintf("the likely reason is the value that %s read from %s: another process, or a "
				      "write to what is mapped, may have changed it", place, at);
	free(at);
	free(place);
}

static bool blame(struct mach_run *r, uint32_t thread, int which, uint64_t back)
{
	struct blame *b = xcalloc(1, sizeof *b);
	enum action stands = r->threads[thread].s.action;
	char *why = r->why ? xstrdup(r->why) : NULL;
	uint64_t pc = r->mismatch_pc;
	bool load = r->mismatch_load, found;
	struct mach_result res = r->res;

	b->r = r;
	b->thread = thread;
	b->which = which;
	b->pool = expr_pool_new();
	err_free(execute(b, back));
	if (b->is_found)
		tell(b);
	found = b->is_found;
	expr_pool_free(b->pool);
	vec_free(&b->reads);
	free(b);
	free(r->why);
	r->why = why;
	r->res = res;
	r->mismatch_pc = pc;
	r->mismatch_load = load;
	r->threads[thread].s.action = stands;
	return found;
}

char *run_racy_reason(struct mach_run *r, uint32_t thread, uint64_t address)
{
	char *at = where(r, address);
	char *s = xasprintf("the likely reason is an unordered racy load: what %s read from %s, to which other "
			    "threads write; no order that was tried gives the recorded value",
			    trc_thread_id(r->t, thread), at);

	free(at);
	return s;
}

void run_blame(struct mach_run *r, uint32_t thread, bool alone)
{
	/* Most mismatches are resolved: looking for reasons must not take longer than following. */
	if (r->reason || run_out_of_time(r) ||
	    (r->blames > FREE_BLAMES && r->blames * COST_OF_BLAME > r->worked))
		return;
	r->blames++;
	if (r->shared.n && blame(r, thread, READS_SHARED, SYMBOLIC))
		return;
	if (alone && !blame(r, thread, READS_FIRST, NEAREST))
		blame(r, thread, READS_ALL, NEAREST);
}
