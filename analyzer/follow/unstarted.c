/*
 * A thread that was created, and the run ended before its first instruction: nothing of it was
 * recorded, but it was there. It begins as the kernel would have begun it, from its creator's
 * registers, so that what it would have done can be computed (execute/onward.c).
 */
#include "analyzer/engine/code.h"
#include "analyzer/follow/follow.h"

#include <linux/sched.h>
#include <string.h>
#include <sys/syscall.h>

uint64_t run_arg(const struct mach_run *r, unsigned i)
{
	static const uint8_t regs[6] = { 7, 6, 2, 10, 8, 9 };

	return *(uint64_t *)mach_at(r->m, gpr_offset(regs[i]));
}

bool run_spawn_args(const struct mach_run *r, uint64_t nr, struct spawn *s)
{
	struct clone_args a = { 0 };

	if (nr == SYS_clone) {
		*s = (struct spawn){ run_arg(r, 0), run_arg(r, 1), run_arg(r, 4), run_arg(r, 2),
				     run_arg(r, 3) };
	} else if (nr == SYS_clone3) {
		size_t size = run_arg(r, 1) < sizeof a ? run_arg(r, 1) : sizeof a;

		if (!mem_peek(r->m->mem, run_arg(r, 0), &a, size))
			return false;
		*s = (struct spawn){ a.flags, a.stack + a.stack_size, a.tls, a.parent_tid,
				     a.child_tid };
	} else {
		return false;
	}
	return (s->flags & CLONE_THREAD) && (s->flags & CLONE_SETTLS) && s->stack;
}

bool run_unstarted(struct mach_run *r, struct run_thread *child, const struct trc_enter *call,
		   const struct trc_leave *back)
{
	const VexGuestAMD64State *g = &r->m->frame->g;
	struct trc_start *s;
	struct spawn how;

	if (child->recs.n || !run_spawn_args(r, call->rec.flags, &how))
		return false;
	s = child->begun = xcalloc(1, sizeof *s);
	memcpy(s->regs, &g->guest_RAX, 16 * sizeof s->regs[0]);
	s->regs[0] = 0; /* rax */
	s->regs[TRC_RSP] = how.stack;
	s->regs[TRC_RIP] = call->pc + 2;
	s->regs[TRC_RFLAGS] = s->regs[11];
	s->fs_base = how.tls;
	s->gs_base = g->guest_GS_CONST;
	s->tsc = back->tsc;
	s->clear_tid = how.flags & CLONE_CHILD_CLEARTID ? how.child_tid : 0;
	child->start = s;
	return true;
}
