/* Where a fragment goes on: through which branches, and around which loops. */
#include "preload/translate/build.h"

/*
 * Control comes back to where the fragment begins, with so many side exits by then: it goes
 * round while a whole round still fits. Small loops then leave a byte every few rounds
 * instead of every round.
 */
static bool round_fits(struct build *b, unsigned sides)
{
	if (b->nitems)
		return false;
	if (!b->loop_insns) {
		b->loop_insns = b->ninsns + 1;
		b->loop_sides = sides;
	}
	b->nback = 0;
	return b->ninsns + 1 + b->loop_insns <= max_insns(b) &&
	       sides + b->loop_sides <= (b->hot ? TR_MAX_SIDES : TR_COLD_SIDES);
}

/*
 * Does the fragment go on at pc? Not where another begins: the same code would be there
 * twice; unless it is known to be worth it (profile.c). Not back to where it has been: a
 * loop gets a fragment of its own.
 */
bool follow(struct build *b, uint64_t pc, unsigned sides)
{
	if (!b->hot)
		return !tr_lookup(pc);
	if (pc == b->frag->pc)
		return round_fits(b, sides);
	if (pc >= b->pc)
		return true;
	for (unsigned i = 0; i < b->nback; i++)
		if (b->back[i] == pc)
			return false;
	if (b->nback == TR_MAX_BACK)
		return false;
	b->back[b->nback++] = pc;
	return true;
}

/* A branch back to the beginning is likely a loop's, even where nothing is known. */
bool follow_loop(struct build *b, const struct insn *in, enum tr_usual usual)
{
	return in->cls == INSN_JCC && in->target == b->frag->pc && usual != TR_USUAL_PASSED &&
	       (!b->nfollowed || b->hot) && round_fits(b, b->nsides + 1);
}

/*
 * Where an indirect branch will likely go: back behind the call, or where it usually goes. Not
 * more than there is room for.
 */
struct tr_targets guess(struct build *b, const struct insn *in)
{
	unsigned max = b->hot ? TR_MAX_SIDES : TR_STRAIGHT_SIDES;
	struct tr_targets t = { .n = 0 }, all = { .n = 0 };

	if (in->cls == INSN_RET && b->ncalls) {
		all = (struct tr_targets){ .n = 1, .usual = true };
		all.to[0] = pop_call(b, ret_pops(in, (const uint8_t *)b->pc), &all.sure);
	} else if (b->hot || tr_is_hot(b->pc)) {
		all = tr_targets_of(b->pc);
	}
	for (unsigned i = 0; i < all.n && b->nsides + t.n + 1 < max; i++) {
		if (!tr_code_avail(all.to[i]) || (!b->hot && tr_lookup(all.to[i])))
			all.usual &= i > 0;
		else
			t.to[t.n++] = all.to[i];
	}
	t.usual = all.usual && t.n;
	t.sure = all.sure && t.usual;
	return t;
}
