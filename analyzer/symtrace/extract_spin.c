#include "analyzer/symtrace/extract_spin.h"

#include "common/vec.h"

#include <stdlib.h>

#define LONGEST_ROUND 500u /* accesses */
#define FEWEST_ROUNDS 64u  /* to be left out: what is shorter does no harm */

/* Instructions from .. to - 1 of a thread. */
struct rounds {
	uint64_t from, to;
};

/* A thread on its way round, from one execution of a certain load to the next. */
struct spinner {
	uint64_t pc, address;  /* of that load; 0: none */
	uint64_t insn;         /* its last execution */
	uint64_t regs;         /* a hash of them then ... */
	uint64_t hash, before; /* ... and of the accesses since, and in the round before */
	uint32_t accesses;     /* since */
	uint32_t alike;        /* rounds in a row that were like the one before them */
	struct rounds now;
	VEC(struct rounds) found;
};

struct spins {
	struct mach_run *run;
	struct spinner *threads;
	size_t nthreads;
	bool settled;
};

struct spins *spins_new(struct mach_run *run)
{
	struct spins *s = xcalloc(1, sizeof *s);

	s->run = run;
	s->nthreads = mach_thread_count(run);
	s->threads = xcalloc(s->nthreads + 1, sizeof *s->threads);
	return s;
}

void spins_free(struct spins *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nthreads; i++)
		vec_free(&s->threads[i].found);
	free(s->threads);
	free(s);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static uint64_t hash_regs(const struct spins *s, uint32_t thread)
{
	uint64_t regs[TRC_NREGS], h = 0;

	if (!mach_regs(s->run, thread, regs, NULL))
		return 0;
	for (size_t i = 0; i < TRC_NREGS; i++)
		h = mix(h, regs[i]);
	return h;
}

static void leave(struct spinner *t)
{
	if (t->alike >= FEWEST_ROUNDS)
		vec_push(&t->found, t->now);
	t->pc = 0;
	t->alike = 0;
}

void spins_leave(struct spins *s, uint32_t thread)
{
	if (thread < s->nthreads && !s->settled)
		leave(&s->threads[thread]);
}

/* Round again: the first round is kept, and the last two. */
static void come_round(struct spinner *t, uint64_t insn, uint64_t regs)
{
	if (t->hash != t->before || t->regs != regs) {
		uint64_t pc = t->pc;

		leave(t);
		t->pc = pc;
	} else {
		if (!t->alike++)
			t->now.from = t->insn;
		t->now.to = t->insn;
	}
	t->before = t->hash;
	t->regs = regs;
	t->insn = insn;
	t->hash = t->accesses = 0;
}

void spins_access(struct spins *s, const struct mach_access *a, bool event)
{
	struct spinner *t;

	if (s->settled || a->thread >= s->nthreads)
		return;
	t = &s->threads[a->thread];
	if (t->pc && ++t->accesses > LONGEST_ROUND)
		leave(t);
	if (t->pc) {
		t->hash = mix(mix(t->hash, a->pc), a->address);
		t->hash = mix(mix(t->hash, a->value), (uint64_t)a->flags << 16 | a->size);
	}
	if (!event)
		return;
	if (a->flags != MACH_READ) {
		leave(t);
	} else if (t->pc == a->pc && t->address == a->address) {
		come_round(t, a->insn, hash_regs(s, a->thread));
	} else if (!t->pc) {
		t->pc = a->pc;
		t->address = a->address;
		t->insn = a->insn;
		t->regs = hash_regs(s, a->thread);
		t->hash = t->before = t->accesses = 0;
	}
}

bool spins_settle(struct spins *s)
{
	bool any = false;

	for (size_t i = 0; i < s->nthreads; i++) {
		spins_leave(s, (uint32_t)i);
		any |= s->threads[i].found.n > 0;
	}
	s->settled = true;
	return any;
}

bool spins_leave_out(const struct spins *s, const struct mach_access *a)
{
	const struct spinner *t = s && a->thread < s->nthreads ? &s->threads[a->thread] : NULL;
	size_t lo = 0, hi = t && s->settled ? t->found.n : 0;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->found.v[mid].to <= a->insn)
			lo = mid + 1;
		else
			hi = mid;
	}
	return t && s->settled && lo < t->found.n && t->found.v[lo].from <= a->insn;
}
