/*
 * One thread along its recorded path: the branch hook compares, items and marks
 * are found where they stand.
 */
#include "analyzer/follow/thread.h"

#include "analyzer/engine/code.h"

#include <inttypes.h>

/* Records that only mark a position on the path and are behind us. */
void run_pass_marks(struct run_thread *t)
{
	for (;;) {
		const struct trc_rec *rec = run_head(t);

		if (!rec)
			return;
		if (rec->type == TRC_GENERATION) {
			const struct trc_generation *g = (const void *)rec;

			if (!path_generation_due(&t->s.cursor, g))
				return;
			t->s.cursor.generation = g->generation;
		} else if (rec->type == TRC_TIME) {
			if (((const struct trc_time *)rec)->path_pos > t->s.cursor.pos)
				return;
			run_clock_set(t, t->s.insns_now, ((const struct trc_time *)rec)->tsc);
		} else {
			return;
		}
		t->s.rec++;
	}
}

/* ---- the path ---- */

enum path_state { PATH_THERE, PATH_OVER, PATH_BAD };

/*
 * The next record that is no time. Asked at every step, and a long stretch without a system call
 * has thousands of times: it is looked for once.
 */
static size_t behind_times(struct run_thread *t)
{
	size_t i = t->s.rec;

	if (i >= t->times_from && i < t->times_to)
		return t->times_to;
	t->times_from = i;
	while (i < t->recs.n && t->recs.v[i]->type == TRC_TIME)
		i++;
	return t->times_to = i;
}

static enum path_state next_step(struct mach_run *r, struct run_thread *t)
{
	bool done, cut = false;
	err_t e;

	run_pass_marks(t);
	/* A fault in the fragment that comes next; a chunk may have ended in it, too. */
	size_t i = behind_times(t);

	if (i < t->recs.n && t->recs.v[i]->type == TRC_SIGNAL)
		cut = path_limit(&t->s.cursor, (const struct trc_signal *)t->recs.v[i]);
	t->s.before = t->s.cursor;
	e = path_next(&t->s.cursor, &t->step, &done);
	if (e) {
		/* Where there was no more room, the table of fragments ends as early as the path. */
		bool cut_short = run_degraded(r);

		if (!cut_short)
			run_say(r, "%s", e->msg);
		err_free(e);
		return cut_short ? PATH_OVER : PATH_BAD;
	}
	if (cut)
		run_pass_marks(t);
	t->s.in_step = !done;
	t->s.side = t->s.item = 0;
	return done ? PATH_OVER : PATH_THERE;
}

err_t run_step_again(struct run_thread *t)
{
	struct path_cursor *c = &t->s.cursor;
	bool done;

	/* What the cursor had cached belongs to another time. */
	c->bytes = c->bytes_end = NULL;
	if (!t->s.in_step)
		return NULL;
	struct path_cursor after = *c;

	*c = t->s.before;
	c->bytes = c->bytes_end = NULL;
	c->items = after.items;
	c->items_cap = after.items_cap;
	return path_next(c, &t->step, &done);
}

/* Sides of the step that are known to have been passed or taken. */
static uint32_t known_sides(const struct path_step *s)
{
	return s->exit == PATH_SIDE || s->exit == PATH_ASTRAY ? s->side + 1 : s->frag->rec->nsides;
}

/* The step's branches are behind us and control simply goes on. */
static bool falls_on(const struct run_thread *t)
{
	return t->step.exit == PATH_FALL && t->s.side >= t->step.frag->rec->nsides &&
	       path_frag_kind(t->step.frag) == TRC_FRAG_DIRECT;
}

bool run_between(const struct run_thread *t)
{
	return !t->s.in_step || (falls_on(t) && t->s.item >= t->step.nitems);
}

/* Brings the path to the fragment that holds the next branch or stop. */
static enum path_state approach(struct mach_run *r, struct run_thread *t)
{
	for (;;) {
		if (t->s.in_step && !falls_on(t))
			return PATH_THERE;
		enum path_state st = next_step(r, t);

		if (st != PATH_THERE)
			return st;
	}
}

/*
 * The committed order has a signal here. When that was found the path had been read up to it; now perhaps nothing
 * had to ask for the last fragments and their items, which are behind the thread all the same.
 */
void run_approach_signal(struct mach_run *r, struct run_thread *t)
{
	for (;;) {
		if (t->s.in_step && falls_on(t))
			t->s.item = t->step.nitems;
		run_pass_marks(t);
		size_t i = behind_times(t);
		const struct trc_rec *rec = i < t->recs.n ? t->recs.v[i] : NULL;

		if (!rec || rec->type != TRC_SIGNAL || run_stops_at(rec, t->s.cursor.pos) || !run_between(t) ||
		    next_step(r, t) != PATH_THERE)
			return;
	}
}

/* It interrupts the thread at this place of its path, between two fragments. */
bool run_stops_at(const struct trc_rec *rec, uint64_t pos)
{
	if (rec->type == TRC_SIGNAL)
		return !((const struct trc_signal *)rec)->fragment &&
		       ((const struct trc_signal *)rec)->path_pos <= pos;
	return rec->type == TRC_STOP && ((const struct trc_stop *)rec)->path_pos <= pos;
}

bool run_wants_stop(struct run_thread *t)
{
	const struct trc_rec *rec = run_head(t);

	if (!rec)
		return false;
	if (rec->type == TRC_TIME)
		return ((const struct trc_time *)rec)->path_pos <= t->s.cursor.pos;
	if (run_stops_at(rec, t->s.cursor.pos))
		return true;
	return rec->type == TRC_NATIVE &&
	       ((const struct trc_native *)rec)->path_pos <= t->s.cursor.pos;
}

/*
 * A new generation is noted on the way to the boundary a signal is delivered at. When fragments that
 * leave no byte stand before it, nobody asks the path where it is: a loop of such ones has no end.
 */
void run_pass_generation(struct run_thread *t)
{
	size_t i = t->s.rec;
	uint64_t generation;

	if (i >= t->recs.n || t->recs.v[i]->type != TRC_GENERATION)
		return;
	for (; i < t->recs.n; i++) {
		if (t->recs.v[i]->type == TRC_GENERATION)
			generation = ((const struct trc_generation *)t->recs.v[i])->generation;
		else if (t->recs.v[i]->type != TRC_TIME)
			break;
	}
	if (i >= t->recs.n || !run_stops_at(t->recs.v[i], t->s.cursor.pos))
		return;
	t->s.rec = i;
	t->s.cursor.generation = generation;
}

static void step_done(struct mach_run *r, struct run_thread *t)
{
	t->s.in_step = false;
	run_pass_marks(t);
	run_pass_generation(t);
	if (run_wants_stop(t) || run_failure_near(r, t))
		r->m->stop_asked = true;
}

/* A branch of the fragment was passed. The last one: what stands behind the fragment may be due. */
static void side_passed(struct mach_run *r, struct run_thread *t)
{
	t->s.side++;
	if (falls_on(t))
		step_done(r, t);
}

/* Verdicts of the branch hook, kept for the loop that called the engine. */
static bool refuse(struct mach_run *r, enum action action)
{
	r->threads[r->current].s.action = action;
	return false;
}

/*
 * The record ends in a fragment whose branches are all behind us, without the byte
 * that says so: what comes now was not recorded any more.
 */
static bool is_behind_cut(const struct mach_run *r, struct run_thread *t)
{
	const struct path_step *s = &t->step;

	/* Where recording stopped, system calls may still have found room. */
	return t->s.in_step && s->exit == PATH_CUT && s->frag->rec->nsides &&
	       t->s.side >= s->frag->rec->nsides && (!run_head(t) || run_degraded(r));
}

static bool branch_conditional(struct mach_run *r, struct run_thread *t,
			       const struct mach_block *b, int taken)
{
	const struct trc_side *sides = trc_fragment_sides(t->step.frag->rec);
	const struct path_step *s = &t->step;
	uint32_t at = t->s.side;
	bool want, leaves;

	if (is_behind_cut(r, t))
		return refuse(r, ACT_END);
	if (at >= known_sides(s) || sides[at].pc != b->last_pc ||
	    (s->frag->rec->guessed | s->frag->rec->cases) >> at & 1) {
		run_mismatch(r, b->last_pc, "a branch where the record has none (fragment 0x%" PRIx64 ")",
			     s->frag->pc);
		return refuse(r, ACT_MISMATCH);
	}
	bool passing = s->frag->rec->passed_taken >> at & 1;

	if (s->exit == PATH_CUT) {
		/* What was recorded last: side exits leave a byte, so this one was passed,
		 * unless the thread was stopped right here. */
		if (taken != 2 && taken != (int)passing)
			return refuse(r, ACT_END);
		t->s.side++;
		return true;
	}
	leaves = s->exit == PATH_SIDE && at == s->side;
	want = leaves != passing;
	r->res.branches++;
	if (taken != 2 && want != (bool)taken) {
		run_mismatch(r, b->last_pc, "the branch was %staken", want ? "" : "not ");
		return refuse(r, ACT_MISMATCH);
	}
	if (leaves)
		step_done(r, t);
	else
		side_passed(r, t);
	return true;
}

/* It went to `next`, and the record says `wanted`, or nothing (0). */
static bool indirect_is(struct mach_run *r, const struct mach_block *b, uint64_t next, uint64_t wanted)
{
	r->res.indirects++;
	if (!wanted || wanted == next)
		return true;
	run_mismatch(r, b->last_pc, "went to 0x%" PRIx64 ", recorded 0x%" PRIx64, next, wanted);
	if (run_is_memory_branch(r, b->last_pc)) {
		r->mismatch_load = true;
		r->wanted = (struct wanted_load){ .size = 8, .value = wanted };
	}
	return refuse(r, ACT_MISMATCH);
}

/* An indirect branch that the fragment follows to where it usually goes. */
static bool branch_guessed(struct mach_run *r, struct run_thread *t, const struct mach_block *b,
			   uint64_t next)
{
	const struct path_step *s = &t->step;
	uint64_t usual = trc_fragment_sides(s->frag->rec)[t->s.side].target;

	if (s->exit == PATH_ASTRAY && t->s.side == s->side) {
		if (!indirect_is(r, b, next, s->next_pc))
			return false;
		step_done(r, t);
		return true;
	}
	if (s->exit == PATH_CUT && next != usual)
		return refuse(r, ACT_END);
	if (!indirect_is(r, b, next, usual))
		return false;
	side_passed(r, t);
	return true;
}

/*
 * Ways of this branch that the fragment compares with, and that it did not go; true when it went the one
 * that was recorded, or when it may not go on.
 */
static bool branch_case(struct mach_run *r, struct run_thread *t, const struct mach_block *b,
			uint64_t next, bool *verdict)
{
	const struct path_step *s = &t->step;
	const struct trc_side *sides = trc_fragment_sides(s->frag->rec);

	for (; t->s.side < known_sides(s) && s->frag->rec->cases >> t->s.side & 1 &&
	       sides[t->s.side].pc == b->last_pc; t->s.side++) {
		uint64_t way = sides[t->s.side].target;

		if (s->exit == PATH_SIDE && t->s.side == s->side) {
			*verdict = indirect_is(r, b, next, way);
			if (*verdict)
				step_done(r, t);
			return true;
		}
		if (next != way)
			continue;
		/* It would have left a byte. */
		if (s->exit == PATH_CUT)
			*verdict = refuse(r, ACT_END);
		else
			*verdict = indirect_is(r, b, next, s->next_pc ? s->next_pc : UINT64_MAX);
		return true;
	}
	return false;
}

static bool branch_indirect(struct mach_run *r, struct run_thread *t, const struct mach_block *b,
			    uint64_t next)
{
	const struct path_step *s = &t->step;
	bool verdict;

	if (branch_case(r, t, b, next, &verdict))
		return verdict;
	uint32_t at = t->s.side;

	if (at < known_sides(s) && s->frag->rec->guessed >> at & 1 &&
	    trc_fragment_sides(s->frag->rec)[at].pc == b->last_pc)
		return branch_guessed(r, t, b, next);
	if (is_behind_cut(r, t) && s->frag->rec->last_pc != b->last_pc)
		return refuse(r, ACT_END);
	if (path_frag_kind(s->frag) != TRC_FRAG_INDIRECT || s->frag->rec->last_pc != b->last_pc ||
	    t->s.side < s->frag->rec->nsides) {
		run_mismatch(r, b->last_pc,
			     "an indirect branch where the record has none (fragment 0x%" PRIx64 ")",
			     s->frag->pc);
		return refuse(r, ACT_MISMATCH);
	}
	if (s->exit == PATH_CUT)
		return refuse(r, ACT_END);
	if (!indirect_is(r, b, next, s->next_pc))
		return false;
	step_done(r, t);
	return true;
}

_Static_assert(sizeof(struct mach_branch_at) == sizeof(struct trc_side) &&
		       offsetof(struct mach_branch_at, pc) == offsetof(struct trc_side, pc),
	       "sides of a fragment are what the engine expects");

/* The sides of this step that are passed: the engine may compare them by itself. */
static void expect(struct mach_run *r, struct run_thread *t)
{
	const struct path_step *s = &t->step;
	struct mach_expected *x = &r->m->expected;

	x->next = x->end = NULL;
	bool told = r->hooks && r->hooks->branch;

	if (!t->s.in_step || told || r->free || s->exit == PATH_CUT)
		return;
	const struct trc_fragment *f = s->frag->rec;
	uint32_t at = t->s.side, upto = f->nsides;
	uint32_t others = at < 32 ? (f->guessed | f->cases) >> at : 0; /* indirect ones */

	if (s->exit == PATH_SIDE || s->exit == PATH_ASTRAY)
		upto = s->side;
	else if (s->exit == PATH_FALL && upto)
		upto--; /* behind the last one something may be due: side_passed() */
	if (others && at + (uint32_t)__builtin_ctz(others) < upto)
		upto = at + (uint32_t)__builtin_ctz(others);
	if (at >= upto || upto > 32)
		return;
	x->next = (const struct mach_branch_at *)trc_fragment_sides(f) + at;
	x->end = x->next + (upto - at);
	x->taken = f->passed_taken >> at;
}

/* What the engine has met by itself is behind us. */
static void met(struct mach_run *r, struct run_thread *t)
{
	struct mach_expected *x = &r->m->expected;

	if (!x->next)
		return;
	const struct mach_branch_at *first =
		(const struct mach_branch_at *)trc_fragment_sides(t->step.frag->rec) + t->s.side;
	uint32_t n = (uint32_t)(x->next - first);

	if (n)
		t->s.insns_now = x->insns;
	t->s.side += n;
	r->res.branches += n;
	x->next = x->end = NULL;
}

enum mach_stop run_engine(struct mach_run *r, struct run_thread *t)
{
	enum mach_stop stop;

	expect(r, t);
	stop = mach_engine_run(r->m);
	met(r, t);
	return stop;
}

bool run_on_branch(void *arg, struct mach *m, const struct mach_block *b, int taken,
		      uint64_t next)
{
	struct mach_run *r = arg;
	struct run_thread *t = &r->threads[r->current];
	bool goes_on;

	met(r, t);
	t->s.insns_now = m->insns;
	if (r->hooks)
		run_tell_branch(r, b, taken, next);
	if (r->free)
		return true;
	switch (approach(r, t)) {
	case PATH_OVER:
		m->stop_asked = false;
		return refuse(r, ACT_END);
	case PATH_BAD:
		r->stop_end = MACH_END_DIVERGED;
		return refuse(r, ACT_STOPPED);
	default:
		break;
	}
	goes_on = b->end == BLOCK_COND ? branch_conditional(r, t, b, taken) :
					 branch_indirect(r, t, b, next);
	expect(r, t);
	return goes_on;
}

/* ---- ends of fragments, items ---- */

/* The path agrees that this kind of fragment ends at pc. */
enum action run_match_end(struct mach_run *r, struct run_thread *t, enum trc_frag_kind kind,
			     uint64_t pc, const char *what)
{
	switch (approach(r, t)) {
	case PATH_OVER:
		return ACT_END;
	case PATH_BAD:
		r->stop_end = MACH_END_DIVERGED;
		return ACT_STOPPED;
	default:
		break;
	}
	if (path_frag_kind(t->step.frag) != kind || t->step.frag->rec->last_pc != pc ||
	    t->s.side < t->step.frag->rec->nsides || t->step.exit == PATH_SIDE ||
	    t->step.exit == PATH_ASTRAY)
		return run_mismatch(r, pc, "%s where the record has none (fragment 0x%" PRIx64 ")",
				    what, t->step.frag->pc);
	if (t->step.exit == PATH_CUT)
		return ACT_END;
	t->s.in_step = false;
	run_pass_marks(t);
	return ACT_RUN;
}

/* The generation of the fragment at pc, which follows without a byte between. */
static uint64_t generation_at(struct run_thread *t, uint64_t pc)
{
	size_t i = behind_times(t);

	if (i < t->recs.n && t->recs.v[i]->type == TRC_GENERATION) {
		const struct trc_generation *g = (const void *)t->recs.v[i];

		if (g->path_pos == t->s.cursor.pos && g->pc == pc)
			return g->generation;
	}
	return t->s.cursor.generation;
}

/* Where the item of the instruction at pc is: in this fragment, or in one that it
 * leads to without a branch. NULL: it has none. t->s.item is its number. */
const struct path_item *run_find_item(struct mach_run *r, struct run_thread *t, uint64_t pc,
				      enum trc_item_kind kind)
{
	const struct path_frag *f = t->s.in_step ? t->step.frag : NULL;
	uint64_t next = t->s.in_step ? t->step.next_pc : t->s.cursor.pc;
	unsigned ahead = 0;

	if (f && falls_on(t))
		run_pass_marks(t);
	if (f && !falls_on(t) && t->s.side)
		return NULL; /* items stand before the branches */
	for (; ahead < 64; ahead++) {
		if (f) {
			const struct trc_item *items = trc_fragment_items(f->rec);
			uint32_t i = ahead ? 0 : t->s.item;

			for (; i < f->rec->nitems; i++)
				if (items[i].pc == pc && items[i].kind == kind)
					break;
			if (i < f->rec->nitems)
				break;
			if (path_frag_kind(f) != TRC_FRAG_DIRECT ||
			    (f->rec->nsides && !(ahead == 0 && falls_on(t))))
				return NULL;
			next = f->rec->next;
		}
		f = !f && t->s.cursor.named && !t->s.in_step ?
			    t->s.cursor.named : path_frag_at(r->frags, next, generation_at(t, next));
		if (!f)
			return NULL;
	}
	if (ahead == 64)
		return NULL;
	/* A loop's fragment may lead to itself: that it is the one is not enough. */
	for (unsigned n = 0; n < ahead || !t->s.in_step || t->step.frag != f; n++)
		if (next_step(r, t) != PATH_THERE)
			return NULL;
	for (; t->s.item < t->step.nitems; t->s.item++) {
		const struct path_item *it = &t->step.items[t->s.item];

		if (it->item->pc == pc && it->item->kind == kind)
			return it;
	}
	return NULL;
}

/* The thread's record ends before what this instruction would have left in it. */
bool run_is_cut_here(const struct mach_run *r, struct run_thread *t)
{
	const struct path_step *s = &t->step;
	uint64_t pc = r->m->frame->g.guest_RIP;
	const struct trc_failure *f = r->t->failure;

	if (f && f->thread == t->index && f->regs[TRC_RIP] == pc)
		return false;
	if (is_behind_cut(r, t))
		return true;
	if (!t->s.in_step || s->exit != PATH_CUT || t->s.item < s->nitems ||
	    s->nitems >= s->frag->rec->nitems || run_head(t))
		return false;
	return trc_fragment_items(s->frag->rec)[s->nitems].pc == pc;
}
