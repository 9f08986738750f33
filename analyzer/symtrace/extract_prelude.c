/*
 * What is known at the moment an execution begins that does not begin with the program: which
 * threads live and where their stacks are, which library call each is in, and from the
 * records before it the state of every lock, how often each call was made, and the time. What was before the
 * record itself (it begins at a checkpoint) is in the checkpoint, as far as it matters.
 */
#include "analyzer/symtrace/extract_internal.h"

void ext_prelude_level(void *arg)
{
	struct ext *x = arg;
	uint64_t regs[TRC_NREGS];

	for (uint32_t i = 0; ext_is_part(x) && i < mach_thread_count(x->run); i++)
		if (mach_thread_alive(x->run, i) && mach_regs(x->run, i, regs, NULL))
			level_begin(x->level, i, regs[TRC_RIP]);
}

/* The records of one thread that lie before the beginning, as they are taken. */
struct past {
	const struct trc_rec *const *recs;
	size_t n, at;
	uint64_t tsc; /* of the next, or of the last one that had a time */
};

static const struct trc_sync *sync_at(const struct past *p)
{
	return p->at < p->n && p->recs[p->at]->type == TRC_SYNC ? (const void *)p->recs[p->at] : NULL;
}

static void to_next_sync(struct past *p)
{
	while (p->at < p->n && !sync_at(p))
		p->at++;
	if (sync_at(p) && sync_at(p)->tsc)
		p->tsc = sync_at(p)->tsc;
}

/* What locks and counts come to does not depend on the order among threads; time will do. */
static uint32_t earliest(const struct past *p, size_t n)
{
	uint32_t best = SYM_NONE;

	for (uint32_t i = 0; i < n; i++)
		if (sync_at(&p[i]) && (best == SYM_NONE || p[i].tsc < p[best].tsc))
			best = i;
	return best;
}

static void replay_past(struct ext *x)
{
	size_t n = mach_thread_count(x->run);
	struct past *p = xcalloc(n + 1, sizeof *p);
	uint32_t t;

	for (uint32_t i = 0; i < n; i++) {
		p[i].n = mach_records(x->run, i, &p[i].recs);
		to_next_sync(&p[i]);
	}
	x->in_window = false;
	for (x->past = 1; (t = earliest(p, n)) != SYM_NONE; x->past++) {
		ext_sync(x, t, sync_at(&p[t]));
		ext_time(x, t, p[t].tsc);
		p[t].at++;
		to_next_sync(&p[t]);
	}
	x->past = 0;
	for (uint32_t i = 0; i < n; i++)
		ext_sync_settle(x, i);
	free(p);
}

/* How often calls were made before that nobody knows: a live run cannot be brought to where the window begins. */
static void take_carried(struct ext *x)
{
	const struct trc_carried *const *carried;
	size_t n = mach_carried(x->run, &carried);

	x->sync_before_lost = mach_began(x->run);
	x->in_window = false;
	for (size_t i = 0; i < n; i++) {
		x->past = i + 1;
		ext_sync(x, carried[i]->by, &carried[i]->sync);
	}
	x->past = 0;
	for (uint32_t i = 0; n && i < mach_thread_count(x->run); i++)
		ext_sync_settle(x, i);
}

void ext_prelude(void *arg)
{
	struct ext *x = arg;

	if (!ext_is_part(x))
		return;
	ext_prelude_level(x);
	for (uint32_t i = 1; i < mach_thread_count(x->run); i++)
		if (mach_thread_insns(x->run, i) || mach_thread_alive(x->run, i)) {
			ext_thread(x, i)->started = true;
			x->started++;
		}
	take_carried(x);
	replay_past(x);
}
