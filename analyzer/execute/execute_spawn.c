/*
 * A thread created in another order: its stack may lie elsewhere than when
 * recorded, because something else still occupies the place. It begins as the
 * kernel would begin it, from its creator's registers.
 */
#include "analyzer/execute/execute.h"

#include "analyzer/engine/code.h"

#include <linux/sched.h>

/* The recorded creation that this one stands for: the thread's next. */
static const struct trc_leave *recorded(const struct run_thread *t, uint64_t nr, size_t *at)
{
	for (size_t i = t->s.rec; i + 1 < t->recs.n; i++) {
		const struct trc_rec *e = t->recs.v[i], *l = t->recs.v[i + 1];

		if (e->type == TRC_ENTER && e->flags == nr && l->type == TRC_LEAVE &&
		    ((const struct trc_leave *)l)->thread != UINT32_MAX) {
			*at = i + 2;
			return (const void *)l;
		}
	}
	return NULL;
}

static void put_tid(struct mach_run *r, uint64_t at, int64_t tid)
{
	uint32_t word = (uint32_t)tid;

	mem_poke(r->m->mem, at, &word, sizeof word);
}

static void born_here(struct mach_run *r, struct run_thread *child, const struct spawn *s)
{
	const VexGuestAMD64State *g = &r->m->frame->g;
	VexGuestAMD64State *c = &child->s.cpu.g;

	run_born(r, child); /* vectors and control words as recorded */
	for (unsigned i = 0; i < 16; i++)
		(&c->guest_RAX)[i] = (&g->guest_RAX)[i];
	c->guest_RAX = 0;
	c->guest_RCX = g->guest_RIP + 2;
	c->guest_R11 = mach_rflags(g) | 0x202;
	c->guest_RSP = s->stack;
	c->guest_RIP = g->guest_RIP + 2;
	c->guest_FS_CONST = s->tls;
}

bool exec_spawn(struct mach_run *r, struct execution *x, struct run_thread *t, uint64_t nr)
{
	struct spawn s;
	size_t next = 0;
	const struct trc_leave *l;

	if (!run_spawn_args(r, nr, &s))
		return false;
	l = recorded(t, nr, &next);
	if (!l || l->thread >= r->nthreads || l->result < 0)
		return false;
	struct run_thread *child = &r->threads[l->thread];
	if (child->s.life != LIFE_UNBORN || !child->start)
		return false;
	born_here(r, child, &s);
	if (s.flags & CLONE_PARENT_SETTID)
		put_tid(r, s.parent_tid, l->result);
	if (s.flags & CLONE_CHILD_SETTID)
		put_tid(r, s.child_tid, l->result);
	x->cleared[l->thread] = s.flags & CLONE_CHILD_CLEARTID ? s.child_tid : 0;
	t->s.rec = next;
	exec_returns(r, l->result);
	return true;
}
