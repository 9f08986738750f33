/*
 * A thread that spins (while (!ready);) can go on for ever, and gets nowhere until another one does:
 * in an execution it must not keep the others waiting. It spins when its registers come back to
 * what they were within a few instructions. Memory that it changes on the way may be a count of how often it has
 * looked, or work that a loop without registers does: then others have a turn all the same, but nobody says that it
 * gets nowhere.
 */
#include "analyzer/execute/execute.h"

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

/* What a round wrote, and what was there before it. */
struct round {
	struct written {
		uint64_t address, before;
		unsigned size;
	} writes[LONGEST_ROUND];
	size_t n;
};

static void on_access(void *arg, struct mach *m, uint64_t pc, uint64_t address, unsigned size,
		      unsigned how, uint64_t value)
{
	struct round *w = arg;
	struct written *x = &w->writes[w->n];

	(void)pc;
	(void)value;
	if (!(how & ACCESS_WRITE) || w->n == LONGEST_ROUND || size > sizeof x->before)
		return;
	*x = (struct written){ .address = address, .size = size };
	w->n += mem_peek(m->mem, address, &x->before, size);
}

/* Is memory as it was before the round? Of several writes of one place the first knows that. */
static bool is_as_before(struct mach_run *r, const struct round *w)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct written *x = &w->writes[i];
		uint64_t now = 0;
		bool again = false;

		for (size_t k = 0; k < i && !again; k++)
			again = w->writes[k].address == x->address;
		if (!again && mem_peek(r->m->mem, x->address, &now, x->size) && now != x->before)
			return false;
	}
	return true;
}

static bool comes_back(struct mach_run *r, struct execution *x, struct run_thread *t)
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

bool exec_spins(struct mach_run *r, struct execution *x, struct run_thread *t, bool *changes)
{
	struct round w = { .n = 0 };

	r->m->access = on_access;
	r->m->access_arg = &w;
	bool spins = comes_back(r, x, t);
	r->m->access = NULL;
	r->m->access_arg = NULL;
	*changes |= spins && !is_as_before(r, &w);
	return spins;
}
