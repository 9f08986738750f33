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

/* Where an indirect branch will likely go: back behind the call, or where it usually goes. */
uint64_t guess(struct build *b, const struct insn *in)
{
	uint64_t target = 0;

	if (in->cls == INSN_RET && b->ncalls)
		target = b->calls[--b->ncalls];
	else if (b->hot || tr_is_hot(b->pc))
		target = tr_usual_target(b->pc);
	if (!target || b->nsides + 1 >= (b->hot ? TR_MAX_SIDES : TR_STRAIGHT_SIDES) ||
	    !tr_code_avail(target) || (!b->hot && tr_lookup(target)))
		return 0;
	return target;
}
