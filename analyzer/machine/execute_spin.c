/*
 * A thread that spins (while (!ready);) can go on for ever, and gets nowhere until another one does:
 * in an execution it must not keep the others waiting. It spins when its registers come back to
 * what they were within a few instructions. (Memory that it counts up on the way is not looked at:
 * what looks like spinning only lets others have a turn.)
 */
#include "analyzer/machine/execute.h"

#include <string.h>

#define LONGEST_ROUND 300u

struct moment {
	uint64_t rip, flags[3], gpr[16];
};

static struct moment moment_of(const VexGuestAMD64State *g)
{
	return (struct moment){
		g->guest_RIP, { g->guest_CC_OP, g->guest_CC_DEP1, g->guest_CC_DEP2 },
		{ g->guest_RAX, g->guest_RCX, g->guest_RDX, g->guest_RBX, g->guest_RSP, g->guest_RBP,
		  g->guest_RSI, g->guest_RDI, g->guest_R8, g->guest_R9, g->guest_R10, g->guest_R11,
		  g->guest_R12, g->guest_R13, g->guest_R14, g->guest_R15 },
	};
}

bool exec_spins(struct mach_run *r, struct execution *x, struct run_thread *t)
{
	struct moment began = moment_of(&r->m->frame->g), now;

	for (unsigned i = 0; i < LONGEST_ROUND && !x->done && t->s.life == LIFE_RUNNING; i++) {
		exec_go(r, x, t, 1);
		now = moment_of(&r->m->frame->g);
		if (now.rip == began.rip && !memcmp(&now, &began, sizeof now))
			return true;
	}
	return false;
}
