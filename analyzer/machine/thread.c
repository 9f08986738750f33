/*
 * One thread along its recorded path, up to its next action: the branch hook
 * compares, stops are matched with the records they belong to.
 */
#include "analyzer/machine/follow.h"

#include "analyzer/machine/code.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

/* ---- words ---- */

static char *format(const char *fmt, va_list ap)
{
	char *s = NULL;

	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	return s;
}

void run_say(struct mach_run *r, const char *fmt, ...)
{
	va_list ap;

	free(r->why);
	va_start(ap, fmt);
	r->why = format(fmt, ap);
	va_end(ap);
}

enum action run_mismatch(struct mach_run *r, uint64_t pc, const char *fmt, ...)
{
	va_list ap;

	free(r->why);
	va_start(ap, fmt);
	r->why = format(fmt, ap);
	va_end(ap);
	r->mismatch_pc = pc;
	r->mismatch_load = false;
	return ACT_MISMATCH;
}

/* ---- switching ---- */

void run_settle(struct mach_run *r)
{
	struct run_thread *t;

	if (r->current == NO_THREAD)
		return;
	t = &r->threads[r->current];
	mach_cpu_store(r->m, &t->s.cpu);
	if (r->m->shadow && t->shadow)
		shadow_cpu_store(r->m->shadow, t->shadow);
	r->current = NO_THREAD;
}

void run_switch(struct mach_run *r, uint32_t thread)
{
	struct run_thread *t = &r->threads[thread];

	if (r->current == thread)
		return;
	run_settle(r);
	mach_cpu_load(r->m, &t->s.cpu);
	if (r->m->shadow) {
		if (!t->shadow)
			t->shadow = shadow_cpu_new();
		shadow_cpu_load(r->m->shadow, t->shadow);
	}
	r->current = thread;
}

/* ---- records ---- */

const struct trc_rec *run_head(struct run_thread *t)
{
	return t->s.rec < t->recs.n ? t->recs.v[t->s.rec] : NULL;
}

static uint64_t record_time(const struct trc_rec *rec)
{
	switch (rec->type) {
	case TRC_SYNC:
	case TRC_ENTER:
	case TRC_LEAVE:
	case TRC_SIGNAL:
	case TRC_TIME:
	case TRC_NATIVE:
	case TRC_THREAD_EXIT:
		return ((const struct trc_time *)rec)->tsc; /* all have it behind the head */
	default:
		return 0;
	}
}

#define RATE_SHIFT 8
#define RATE_MIN_INSNS 2000 /* shorter segments say little about the speed */

/* The thread's clock is right at this instruction. */
void run_clock(struct run_thread *t, uint64_t insns, uint64_t tsc)
{
	struct thread_state *s = &t->s;
	uint64_t n = insns - s->clock_insn;

	if (s->clock_tsc && tsc > s->clock_tsc && n > RATE_MIN_INSNS) {
		uint64_t rate = ((tsc - s->clock_tsc) << RATE_SHIFT) / n;

		if (rate < 64)
			rate = 64;
		if (rate > 64 << RATE_SHIFT)
			rate = 64 << RATE_SHIFT;
		s->clock_rate = (uint32_t)((s->clock_rate + rate) / 2);
	}
	s->clock_tsc = tsc;
	s->clock_insn = insns;
}

uint64_t run_head_time(const struct run_thread *t)
{
	for (size_t i = t->s.rec; i < t->recs.n; i++) {
		uint64_t tsc = record_time(t->recs.v[i]);

		if (tsc)
			return tsc;
	}
	return UINT64_MAX;
}

/* Nothing but marks is left. */
bool run_ended(const struct run_thread *t)
{
	for (size_t i = t->s.rec; i < t->recs.n; i++)
		switch (t->recs.v[i]->type) {
		case TRC_TIME:
		case TRC_REGS:
		case TRC_GENERATION:
			break;
		default:
			return false;
		}
	return true;
}

/* The path is where the recorded failure was, and it was not inside a fragment. */
bool run_failure_near(const struct mach_run *r, const struct run_thread *t)
{
	const struct trc_failure *f = r->t->failure;

	return f && f->thread == t->index && f->signal && f->path_pos == t->s.cursor.pos &&
	       !t->s.in_step && run_ended(t);
}

/* Records that only mark a position on the path and are behind us. */
static void pass_marks(struct run_thread *t)
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
			t->s.clock_tsc = ((const struct trc_time *)rec)->tsc;
			t->s.clock_insn = t->s.insns_now;
		} else {
			return;
		}
		t->s.rec++;
	}
}

/* ---- the path ---- */

enum path_state { PATH_THERE, PATH_OVER, PATH_BAD };

static enum path_state next_step(struct mach_run *r, struct run_thread *t)
{
	bool done, cut = false;
	err_t e;

	pass_marks(t);
	/* A fault in the fragment that comes next; a chunk may have ended in it, too. */
	size_t i = t->s.rec;
	while (i < t->recs.n && t->recs.v[i]->type == TRC_TIME)
		i++;
	if (i < t->recs.n && t->recs.v[i]->type == TRC_SIGNAL)
		cut = path_limit(&t->s.cursor, (const struct trc_signal *)t->recs.v[i]);
	t->s.before = t->s.cursor;
	e = path_next(&t->s.cursor, &t->step, &done);
	if (e) {
		run_say(r, "%s", e->msg);
		err_free(e);
		return PATH_BAD;
	}
	if (cut)
		pass_marks(t);
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
	return s->exit == PATH_SIDE ? s->side + 1 : s->frag->rec->nsides;
}

/* The step's branches are behind us and control simply goes on. */
static bool falls_on(const struct run_thread *t)
{
	return t->step.exit == PATH_FALL && t->s.side >= t->step.frag->rec->nsides &&
	       path_frag_kind(t->step.frag) == TRC_FRAG_DIRECT;
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

static bool wants_stop(struct run_thread *t)
{
	const struct trc_rec *rec = run_head(t);

	if (!rec)
		return false;
	if (rec->type == TRC_TIME)
		return ((const struct trc_time *)rec)->path_pos <= t->s.cursor.pos;
	if (rec->type == TRC_SIGNAL && !((const struct trc_signal *)rec)->fragment)
		return ((const struct trc_signal *)rec)->path_pos <= t->s.cursor.pos;
	return rec->type == TRC_NATIVE &&
	       ((const struct trc_native *)rec)->path_pos <= t->s.cursor.pos;
}

static void step_done(struct mach_run *r, struct run_thread *t)
{
	t->s.in_step = false;
	pass_marks(t);
	if (wants_stop(t) || run_failure_near(r, t))
		r->m->stop_asked = true;
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
static bool is_behind_cut(struct run_thread *t)
{
	const struct path_step *s = &t->step;

	return t->s.in_step && s->exit == PATH_CUT && s->frag->rec->nsides &&
	       t->s.side >= s->frag->rec->nsides && !run_head(t);
}

static bool branch_conditional(struct mach_run *r, struct run_thread *t,
			       const struct mach_block *b, int taken)
{
	const struct trc_side *sides = trc_fragment_sides(t->step.frag->rec);
	const struct path_step *s = &t->step;
	uint32_t at = t->s.side;
	bool want, leaves;

	if (is_behind_cut(t))
		return refuse(r, ACT_END);
	if (at >= known_sides(s) || sides[at].pc != b->last_pc) {
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
		t->s.side++;
	return true;
}

static bool branch_indirect(struct mach_run *r, struct run_thread *t, const struct mach_block *b,
			    uint64_t next)
{
	const struct path_step *s = &t->step;

	if (is_behind_cut(t) && s->frag->rec->last_pc != b->last_pc)
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
	r->res.indirects++;
	if (s->next_pc && s->next_pc != next) {
		run_mismatch(r, b->last_pc, "went to 0x%" PRIx64 ", recorded 0x%" PRIx64, next,
			     s->next_pc);
		if (run_is_memory_branch(r, b->last_pc)) {
			r->mismatch_load = true;
			r->wanted = (struct wanted_load){ .size = 8, .value = s->next_pc };
		}
		return refuse(r, ACT_MISMATCH);
	}
	step_done(r, t);
	return true;
}

static bool on_branch(void *arg, struct mach *m, const struct mach_block *b, int taken,
		      uint64_t next)
{
	struct mach_run *r = arg;
	struct run_thread *t = &r->threads[r->current];

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
	if (b->end == BLOCK_COND)
		return branch_conditional(r, t, b, taken);
	return branch_indirect(r, t, b, next);
}

/* ---- stops ---- */

/* The path agrees that this kind of fragment ends at pc. */
static enum action match_end(struct mach_run *r, struct run_thread *t, enum trc_frag_kind kind,
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
	    t->s.side < t->step.frag->rec->nsides || t->step.exit == PATH_SIDE)
		return run_mismatch(r, pc, "%s where the record has none (fragment 0x%" PRIx64 ")",
				    what, t->step.frag->pc);
	if (t->step.exit == PATH_CUT)
		return ACT_END;
	t->s.in_step = false;
	pass_marks(t);
	return ACT_RUN;
}

static void set_reg(struct mach_run *r, unsigned x86, uint64_t value)
{
	*(uint64_t *)mach_at(r->m, gpr_offset(x86)) = value;
	shadow_forget(r->m, gpr_offset(x86), 8);
}

enum action run_nondet(struct mach_run *r, struct run_thread *t)
{
	uint64_t pc = r->m->frame->g.guest_RIP;
	enum action a = r->free ? ACT_RUN :
				  match_end(r, t, TRC_FRAG_NONDET, pc, "a non-deterministic instruction");
	const struct trc_nondet *n;
	const struct path_frag *f;

	if (a != ACT_RUN)
		return a;
	n = (const void *)run_head(t);
	if (!n || n->rec.type != TRC_NONDET)
		return n ? run_mismatch(r, pc, "a non-deterministic instruction that was not recorded") :
			   ACT_END;
	if (n->pc != pc)
		return run_mismatch(r, pc, "a non-deterministic instruction, recorded at 0x%" PRIx64,
				    n->pc);
	f = t->step.frag;
	t->s.rec++;
	r->res.nondet++;
	if (n->reg < 16) {
		set_reg(r, n->reg, n->dest);
		if (n->rec.flags != TRC_RDPID)
			mach_set_rflags(&r->m->frame->g, n->rflags);
	} else {
		set_reg(r, 0, n->rax);
		set_reg(r, 3, n->rbx);
		set_reg(r, 1, n->rcx);
		set_reg(r, 2, n->rdx);
	}
	r->m->insns++;
	if (r->free) {
		uint8_t bytes[16];
		struct insn in;
		size_t got = mem_fetch(r->m->mem, pc, bytes, 15);

		if (!insn_decode(bytes, got, pc, &in))
			return run_mismatch(r, pc, "cannot decode it");
		r->m->frame->g.guest_RIP = pc + in.i.length;
		return ACT_RUN;
	}
	r->m->frame->g.guest_RIP = f->rec->next;
	return ACT_RUN;
}

static bool is_sync_failure(const struct mach_run *r, const struct run_thread *t,
			    const struct trc_sync *s)
{
	const struct trc_failure *f = r->t->failure;
	unsigned op = TRC_SYNC_OP(s->rec.flags);

	if (!f || f->thread != t->index)
		return false;
	return (f->rec.flags == TRC_FAIL_ASSERT && op == TRC_OP_ASSERT) ||
	       (f->rec.flags == TRC_FAIL_USER && op == TRC_OP_USER_FAIL);
}

/* The recorder's primitive: (op | at, object, site, result, thread, value) -> result */
static enum action at_event(struct mach_run *r, struct run_thread *t)
{
	VexGuestAMD64State *g = &r->m->frame->g;
	unsigned op_at = (uint32_t)g->guest_RDI;
	const struct trc_sync *s;
	enum action a = ACT_RUN;

	if (!r->free)
		a = match_end(r, t, TRC_FRAG_EVENT, r->m->event_pc, "a recorded operation");
	if (a != ACT_RUN)
		return a;
	if (t->step.frag && path_frag_kind(t->step.frag) == TRC_FRAG_EVENT)
		r->m->event_end = t->step.frag->rec->next;
	if (!r->m->event_end)
		return run_mismatch(r, r->m->event_pc, "where the record primitive returns is not known");
	exec_event(r, t->index, op_at, g->guest_RDX);
	s = (const void *)run_head(t);
	if (s && s->rec.type == TRC_SYNC && s->rec.flags == op_at && s->site == g->guest_RDX) {
		if (r->hooks && r->hooks->sync && r->time >= r->hooks_from)
			r->hooks->sync(r->hooks->arg, t->index, s);
		if (is_sync_failure(r, t, s))
			return ACT_FAILURE;
		run_clock(t, r->m->insns, s->tsc);
		t->s.rec++;
	}
	set_reg(r, 0, g->guest_RCX);
	g->guest_RIP = r->m->event_end;
	r->m->insns++;
	return ACT_RUN;
}

/* The generation of the fragment at pc, which follows without a byte between. */
static uint64_t generation_at(const struct run_thread *t, uint64_t pc)
{
	size_t i = t->s.rec;

	while (i < t->recs.n && t->recs.v[i]->type == TRC_TIME)
		i++;
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
		pass_marks(t);
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
	while (!t->s.in_step || t->step.frag != f)
		if (next_step(r, t) != PATH_THERE)
			return NULL;
	for (; t->s.item < t->step.nitems; t->s.item++) {
		const struct path_item *it = &t->step.items[t->s.item];

		if (it->item->pc == pc && it->item->kind == kind)
			return it;
	}
	return NULL;
}

static enum action at_syscall(struct mach_run *r, struct run_thread *t)
{
	uint64_t pc = r->m->frame->g.guest_RIP;
	enum action a = r->free ? ACT_RUN : match_end(r, t, TRC_FRAG_SYSCALL, pc, "a system call");

	if (a != ACT_RUN)
		return a;
	while (run_head(t) && run_head(t)->type == TRC_REGS)
		t->s.rec++;
	pass_marks(t);
	if (!run_head(t))
		return ACT_END;
	if (run_head(t)->type != TRC_ENTER)
		return run_mismatch(r, pc, "a system call that was not recorded");
	return ACT_ENTER;
}

static bool is_failure_fault(const struct mach_run *r, const struct run_thread *t)
{
	const struct trc_failure *f = r->t->failure;

	return f && f->thread == t->index && f->signal == r->m->fault.signal && run_ended(t);
}

static enum action at_fault(struct mach_run *r, struct run_thread *t)
{
	uint64_t pc = r->m->frame->g.guest_RIP;
	const struct trc_signal *s = (const void *)run_head(t);
	uint64_t shown = r->m->fault.signal == 5 ? pc + 1 : pc; /* int3: behind it */

	if (r->missing) {
		r->stop_end = MACH_END_UNDECODED;
		run_say(r, "%s is needed and was not found, or is another build than the recorded one",
			r->missing);
		return ACT_STOPPED;
	}
	if (s && s->rec.type == TRC_SIGNAL && s->rec.flags == (unsigned)r->m->fault.signal &&
	    s->interrupted_pc == shown)
		return ACT_SIGNAL;
	if (is_failure_fault(r, t))
		return ACT_FAILURE;
	return run_mismatch(r, pc, "signal %d (address 0x%" PRIx64 ") that was not recorded",
			    r->m->fault.signal, r->m->fault.address);
}

static bool is_fault(const struct trc_failure *f)
{
	/* Sent by kill() and kin, a signal strikes anywhere: its code is not positive. */
	return f->rec.flags == TRC_FAIL_SIGNAL && f->code > 0 &&
	       (f->signal == SIGSEGV || f->signal == SIGFPE || f->signal == SIGILL);
}

/* Its record ends in a fault that has not happened here. */
bool run_fault_missed(const struct mach_run *r, const struct run_thread *t)
{
	const struct trc_failure *f = r->t->failure;

	return f && is_fault(f) && f->thread == t->index && t->s.action == ACT_END;
}

/* The fragment at hand goes round a loop: it may come by again without leaving a byte. */
static bool goes_round(const struct mach_run *r, const struct run_thread *t)
{
	const struct path_cursor *c = &t->s.cursor;
	const struct path_frag *f = c->named ? c->named :
					       path_frag_at(r->frags, c->pc, c->generation);

	for (int i = 0; i < 64 && f && !f->rec->nsides &&
			path_frag_kind(f) == TRC_FRAG_DIRECT; i++)
		f = path_frag_at(r->frags, f->rec->next, c->generation);
	return f && f->rec->passed_taken;
}

/*
 * The thread stands where it failed. A fault counts only when it happens here,
 * too: an address that came from a racing read may still be a good one.
 */
static enum action at_failure(struct mach_run *r, struct run_thread *t)
{
	struct mach *m = r->m;
	uint64_t pc = m->frame->g.guest_RIP;
	bool breaking = m->breaking;

	if (!is_fault(r->t->failure))
		return ACT_FAILURE;
	m->breaking = false;
	m->insn_limit = m->insns + 1;
	enum mach_stop stop = mach_engine_run(m);
	m->breaking = breaking;
	if (stop == STOP_FAULT)
		return at_fault(r, t);
	if (stop == STOP_LIMIT && goes_round(r, t))
		return ACT_RUN;
	return run_mismatch(r, pc, MISSED_FAULT, r->t->failure->signal);
}

/* Between blocks: a signal is due at its pc, or the record ends. */
static enum action at_boundary(struct mach_run *r, struct run_thread *t)
{
	const struct trc_rec *rec = run_head(t);

	if (rec && rec->type == TRC_SIGNAL && wants_stop(t)) {
		const struct trc_signal *s = (const void *)rec;
		uint64_t pc = r->m->frame->g.guest_RIP;

		if (pc == s->interrupted_pc || t->s.call_pc == s->interrupted_pc)
			return ACT_SIGNAL;
	}
	if (run_failure_near(r, t) && r->m->frame->g.guest_RIP == r->t->failure->regs[TRC_RIP])
		return at_failure(r, t);
	if (rec && rec->type == TRC_NATIVE && wants_stop(t)) {
		r->stop_end = MACH_END_NATIVE;
		run_say(r, "the thread went on untranslated: %.*s",
			(int)((const struct trc_native *)rec)->text_len,
			((const struct trc_native *)rec)->text);
		return ACT_STOPPED;
	}
	return ACT_RUN;
}

/* A signal or the failure waits behind fragments that leave no byte: step to it. */
static bool signal_is_near(const struct mach_run *r, struct run_thread *t)
{
	const struct trc_rec *rec = run_head(t);

	if (run_failure_near(r, t))
		return true;
	return rec && rec->type == TRC_SIGNAL && !t->s.in_step && wants_stop(t);
}

static enum action after_stop(struct mach_run *r, struct run_thread *t, enum mach_stop stop,
			      bool granted);

/* The thread's record ends before what this instruction would have left in it. */
static bool is_cut_here(const struct mach_run *r, struct run_thread *t)
{
	const struct path_step *s = &t->step;
	uint64_t pc = r->m->frame->g.guest_RIP;
	const struct trc_failure *f = r->t->failure;

	if (f && f->thread == t->index && f->regs[TRC_RIP] == pc)
		return false;
	if (is_behind_cut(t))
		return true;
	if (!t->s.in_step || s->exit != PATH_CUT || t->s.item < s->nitems ||
	    s->nitems >= s->frag->rec->nitems || run_head(t))
		return false;
	return trc_fragment_items(s->frag->rec)[s->nitems].pc == pc;
}

/*
 * The thread stands at an instruction with items, or at a load that is forced.
 * Executes it; a wrong load, too: only then is it known as the read that went wrong.
 */
static enum action at_item(struct mach_run *r, struct run_thread *t, bool granted)
{
	struct mach *m = r->m;
	uint64_t pc = m->frame->g.guest_RIP;
	bool breaking = m->breaking, forced, good, split;
	struct load_force *f = run_next_force(r, t->index);
	enum mach_stop stop;

	if (!granted && !r->hooks && run_has_ticket(r, t))
		return ACT_TICKET;
	if (!r->hooks && is_cut_here(r, t))
		return ACT_END;
	if (granted && run_split_load(r, t) && run_has_ticket(r, t))
		return ACT_TICKET; /* the second half has its own */
	split = t->s.split;
	if (split) {
		run_split_store(r, t);
		f = run_next_force(r, t->index);
	}
	forced = f && f->load.insn == m->insns && run_force_begin(r, f);
	good = r->hooks || split || run_value_agrees(r, t);
	m->breaking = false;
	m->insn_limit = m->insns + 1;
	stop = mach_engine_run(m);
	m->breaking = breaking;
	if (forced)
		run_force_end(r, f);
	if (stop != STOP_LIMIT)
		return after_stop(r, t, stop, false);
	if (good)
		return ACT_RUN;
	run_mismatch(r, pc, "the load saw another value");
	r->mismatch_load = true;
	return ACT_MISMATCH;
}

static bool is_until(const struct mach_run *r, const struct run_thread *t)
{
	return r->o.until_pc && r->o.until_thread == t->index && !r->looking_ahead && !r->hooks &&
	       r->m->frame->g.guest_RIP == r->o.until_pc;
}

static enum action after_stop(struct mach_run *r, struct run_thread *t, enum mach_stop stop,
			      bool granted)
{
	switch (stop) {
	case STOP_SYSCALL:
		return at_syscall(r, t);
	case STOP_NONDET:
		return run_nondet(r, t);
	case STOP_EVENT:
		return at_event(r, t);
	case STOP_FAULT:
		return at_fault(r, t);
	case STOP_UNDECODED: {
		char *place = run_place(r, r->m->frame->g.guest_RIP);

		r->stop_end = MACH_END_UNDECODED;
		run_say(r, "%s: %s", place, r->m->why);
		free(place);
		return ACT_STOPPED;
	}
	case STOP_BREAK:
		if (is_until(r, t)) {
			r->until_pc_reached = true;
			r->asked_to_stop = true;
			return ACT_RUN;
		}
		return at_item(r, t, granted);
	case STOP_BRANCH:
		return t->s.action; /* set by the hook */
	default:
		return at_boundary(r, t);
	}
}

bool run_progress(struct mach_run *r)
{
	double part = -1;

	if (r->worked < r->next_progress)
		return false;
	r->next_progress = r->worked + 4000000;
	if (r->seqs.n)
		part = (double)r->seq / (double)r->seqs.n;
	if (r->o.progress && r->o.progress(r->o.progress_arg, r->time, part))
		r->asked_to_stop = true;
	return run_out_of_time(r);
}

/* How far the engine may go at once: not past a forced load. */
static uint64_t piece(struct mach_run *r, struct run_thread *t, uint64_t limit)
{
	const struct load_force *f = r->free ? NULL : run_next_force(r, t->index);
	uint64_t now = r->m->insns;

	if (f && f->load.insn < limit)
		limit = f->load.insn;
	/* So that progress is shown and can stop the work. */
	return limit - now > 20000000 ? now + 20000000 : limit;
}

enum action run_thread_go(struct mach_run *r, struct run_thread *t, uint64_t limit, bool granted)
{
	struct mach *m = r->m;
	enum action a = ACT_RUN;

	run_switch(r, t->index);
	m->branch = on_branch;
	m->branch_arg = r;
	m->breaking = run_items_on(r);
	if (!r->free) {
		m->break_pcs = r->item_pcs.v;
		m->nbreak_pcs = r->item_pcs.n;
	}
	while (a == ACT_RUN) {
		uint64_t before = m->insns;
		uint64_t stop_at;
		enum mach_stop stop;

		if (!r->free && signal_is_near(r, t)) {
			a = at_boundary(r, t);
			r->time += m->insns - before;
			if (a != ACT_RUN)
				break;
			stop_at = before + 1 < limit ? before + 1 : limit;
		} else {
			stop_at = limit;
		}
		stop_at = piece(r, t, stop_at);
		m->insn_limit = stop_at;
		t->s.action = ACT_RUN;
		r->stretch = before;
		stop = stop_at == before && before < limit ? STOP_BREAK : mach_engine_run(m);
		/* These stand before an instruction that is executed here, not there. */
		if (m->insns >= limit && (stop == STOP_BREAK || stop == STOP_EVENT || stop == STOP_NONDET)) {
			r->time += m->insns - before;
			break;
		}
		a = after_stop(r, t, stop, granted);
		granted = false;
		r->time += m->insns - before;
		r->worked += m->insns - before;
		if (a == ACT_RUN && m->insns >= limit)
			break;
		if (a == ACT_RUN && (stop == STOP_HOOK || stop == STOP_EVENT) && r->nthreads > 1 &&
		    !r->free)
			break; /* a timestamp: others may be due */
		if (r->asked_to_stop)
			break;
		if (run_progress(r))
			break;
	}
	return t->s.action = a;
}
