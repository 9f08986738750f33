/*
 * A thread up to its next action: where the engine stops, that is matched with
 * the record it belongs to.
 */
#include "analyzer/follow/thread.h"

#include "analyzer/engine/code.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/syscall.h>

#define PROGRESS_EVERY 4000000u /* instructions: so often the clock is looked at */
#define LONGEST_PIECE 20000000u /* that the engine executes at once */
#define LONGEST_UNBRANCHED 50000000u /* instructions from one branch to the next: far more than any program has */
#define WORK_OF_INSN 16u        /* bytes of a string that take about as long as an instruction */

enum action run_nondet(struct mach_run *r, struct run_thread *t)
{
	uint64_t pc = r->m->frame->g.guest_RIP;
	enum action a = r->free ? ACT_RUN :
				  run_match_end(r, t, TRC_FRAG_NONDET, pc, "a non-deterministic instruction");
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
		run_set_reg(r, n->reg, n->dest);
		if (n->rec.flags != TRC_RDPID)
			mach_set_rflags(&r->m->frame->g, n->rflags);
	} else {
		run_set_reg(r, 0, n->rax);
		run_set_reg(r, 3, n->rbx);
		run_set_reg(r, 1, n->rcx);
		run_set_reg(r, 2, n->rdx);
	}
	r->m->insns++;
	if (r->free) {
		struct insn in;

		if (!run_insn_at(r, pc, &in))
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
	return (f->rec.flags == TRC_FAIL_ASSERT && (op == TRC_OP_ASSERT || op == TRC_OP_PANIC)) ||
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
		a = run_match_end(r, t, TRC_FRAG_EVENT, r->m->event_pc, "a recorded operation");
	if (a != ACT_RUN)
		return a;
	if (t->step.frag && path_frag_kind(t->step.frag) == TRC_FRAG_EVENT)
		r->m->event_end = t->step.frag->rec->next;
	if (!r->m->event_end)
		return run_mismatch(r, r->m->event_pc, "where the record primitive returns is not known");
	if (r->at_event)
		r->at_event(r, t->index, op_at, g->guest_RDX);
	s = (const void *)run_head(t);
	if (s && s->rec.type == TRC_SYNC && s->rec.flags == op_at && s->site == g->guest_RDX) {
		if (r->hooks && r->hooks->sync && r->time >= r->hooks_from)
			r->hooks->sync(r->hooks->arg, t->index, s);
		if (is_sync_failure(r, t, s))
			return ACT_FAILURE;
		if (s->tsc)
			run_clock(t, r->m->insns, s->tsc);
		t->s.rec++;
	}
	run_set_reg(r, 0, g->guest_RCX);
	g->guest_RIP = r->m->event_end;
	r->m->insns++;
	return ACT_RUN;
}

static enum action at_syscall(struct mach_run *r, struct run_thread *t)
{
	uint64_t pc = r->m->frame->g.guest_RIP;
	enum action a = r->free ? ACT_RUN : run_match_end(r, t, TRC_FRAG_SYSCALL, pc, "a system call");

	if (a != ACT_RUN)
		return a;
	while (run_head(t) && run_head(t)->type == TRC_REGS)
		t->s.rec++;
	run_pass_marks(t);
	if (!run_head(t))
		return ACT_END;
	if (run_head(t)->type == TRC_STOP) /* two ended the process, this one came second */
		return ACT_STOP;
	if (run_head(t)->type != TRC_ENTER)
		return run_mismatch(r, pc, "a system call that was not recorded");
	return ACT_ENTER;
}

static bool is_failure_fault(const struct mach_run *r, const struct run_thread *t)
{
	const struct trc_failure *f = r->t->failure;

	return f && f->thread == t->index && f->signal == r->m->fault.signal && run_ended(t);
}

static enum action after_stop(struct mach_run *r, struct run_thread *t, enum mach_stop stop,
			      bool granted);

/* Refused because a fault is recorded for this page, but not at this access: the next may be the one. */
static enum action step_over(struct mach_run *r, struct run_thread *t)
{
	struct mach *m = r->m;
	enum block_variant breaking = m->breaking;
	enum mach_stop stop;

	mem_refuse(m->mem, MEM_NOTHING);
	m->breaking = BLOCK_WHOLE;
	m->insn_limit = m->insns + 1;
	stop = mach_engine_run(m);
	m->breaking = breaking;
	return stop == STOP_LIMIT ? ACT_RUN : after_stop(r, t, stop, false);
}

uint64_t run_shown_pc(struct mach_run *r, uint64_t pc)
{
	struct insn in;

	return r->m->fault.signal && run_insn_at(r, pc, &in) ? pc + mach_trap_length(&in) : pc;
}

static enum action at_fault(struct mach_run *r, struct run_thread *t)
{
	uint64_t pc = r->m->frame->g.guest_RIP;
	const struct trc_signal *s = (const void *)run_head(t);
	uint64_t shown = run_shown_pc(r, pc);

	if (r->missing) {
		r->stop_end = MACH_END_UNDECODED;
		run_say(r, "%s is needed and was not found, or is another build than the recorded one",
			r->missing);
		return ACT_STOPPED;
	}
	if (run_fault_expected(r)) {
		enum action a = run_fault_is_recorded(r, t);

		return a == ACT_RUN ? step_over(r, t) : a;
	}
	if (!r->free && run_fault_elsewhere(r, t) && run_stack_grows(r))
		return ACT_RUN;
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
	       (f->signal == SIGSEGV || f->signal == SIGBUS || f->signal == SIGFPE || f->signal == SIGILL);
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
	enum block_variant breaking = m->breaking;

	if (!is_fault(r->t->failure))
		return ACT_FAILURE;
	/* In a recursion that leaves no byte it comes by here more than once. */
	bool early = !run_registers_are(r, r->t->failure->regs);
	m->breaking = BLOCK_WHOLE;
	m->insn_limit = m->insns + 1;
	enum mach_stop stop = mach_engine_run(m);
	m->breaking = breaking;
	if (stop == STOP_FAULT)
		return at_fault(r, t);
	if (stop == STOP_WORK || (stop == STOP_LIMIT && (early || goes_round(r, t))))
		return ACT_RUN;
	return run_mismatch(r, pc, MISSED_FAULT, r->t->failure->signal);
}

/* Between blocks: a signal is due at its pc, or the record ends. */
static enum action at_boundary(struct mach_run *r, struct run_thread *t)
{
	const struct trc_rec *rec = run_head(t);
	/* Whoever stops in the middle of a fragment, its turn being over, may be at the pc and an iteration early. */
	bool due = rec && run_wants_stop(t) && run_between(t);

	if (due && rec->type == TRC_SIGNAL) {
		const struct trc_signal *s = (const void *)rec;
		uint64_t pc = r->m->frame->g.guest_RIP;

		if (pc == s->interrupted_pc || t->s.call_pc == s->interrupted_pc)
			return ACT_SIGNAL;
	}
	if (due && rec->type == TRC_STOP &&
	    r->m->frame->g.guest_RIP == ((const struct trc_stop *)rec)->pc)
		return ACT_STOP;
	if (run_failure_near(r, t) && r->m->frame->g.guest_RIP == r->t->failure->regs[TRC_RIP])
		return at_failure(r, t);
	if (rec && rec->type == TRC_NATIVE && run_wants_stop(t)) {
		r->stop_end = MACH_END_NATIVE;
		run_say(r, "the thread continued untranslated: %.*s",
			(int)((const struct trc_native *)rec)->text_len,
			((const struct trc_native *)rec)->text);
		return ACT_STOPPED;
	}
	return ACT_RUN;
}

/* A signal or the failure waits behind fragments that leave no byte: step to it. */
static bool signal_is_near(const struct mach_run *r, struct run_thread *t)
{
	const struct trc_rec *rec;

	/* Behind a system call a new generation is noted before the signal that interrupted it. */
	if (run_between(t)) {
		run_pass_marks(t);
		run_pass_generation(t);
	}
	rec = run_head(t);
	if (run_failure_near(r, t))
		return true;
	return rec && run_between(t) && run_stops_at(rec, t->s.cursor.pos);
}

/*
 * The thread stands at an instruction with items, or at a load that is forced.
 * Executes it; a wrong load, too: only then is it known as the read that went wrong.
 */
static enum action at_item(struct mach_run *r, struct run_thread *t, bool granted)
{
	struct mach *m = r->m;
	uint64_t pc = m->frame->g.guest_RIP;
	enum block_variant breaking = m->breaking;
	bool forced, good, split;
	struct load_force *f = run_next_force(r, t->index);
	enum mach_stop stop;

	if (!granted && !r->hooks && run_has_ticket(r, t)) {
		/* Its address is not the recorded one, then. */
		if (t->s.ticket < r->tickets[t->s.shard] && !r->by_log)
			return run_mismatch(r, pc, "an ordered access whose turn is past");
		return ACT_TICKET;
	}
	if (!r->hooks && run_is_cut_here(r, t))
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
	if (!good && r->may_wait && !granted && !forced) {
		t->s.item--; /* it is still to come */
		return ACT_VALUE;
	}
	m->breaking = BLOCK_WHOLE;
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

/* The thread stands before an instruction, which is not executed yet. */
static bool stands_before(enum mach_stop stop)
{
	return stop == STOP_SYSCALL || stop == STOP_NONDET || stop == STOP_EVENT ||
	       stop == STOP_BREAK;
}

static bool is_until(const struct mach_run *r, const struct run_thread *t)
{
	return r->o.until_pc && r->o.until_thread == t->index && !r->looking_ahead && !r->hooks &&
	       r->m->frame->g.guest_RIP == r->o.until_pc;
}

static enum action after_stop(struct mach_run *r, struct run_thread *t, enum mach_stop stop,
			      bool granted)
{
	/* Before what stands here is looked for on a path that goes on elsewhere. */
	if (stands_before(stop) && !r->free && !granted && signal_is_near(r, t)) {
		enum action a = at_boundary(r, t);

		if (a != ACT_RUN)
			return a;
	}
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
		if (run_sight_stops(r, t)) {
			r->asked_to_stop = true;
			return ACT_RUN;
		}
		return at_item(r, t, granted);
	case STOP_BRANCH:
		return t->s.action; /* set by the hook */
	case STOP_WORK:
		return ACT_RUN; /* r->asked_to_stop is set */
	default:
		return at_boundary(r, t);
	}
}

/* What the kernel wrote could not be kept, either: nothing behind this would be true. */
static enum action exhausted(struct mach_run *r)
{
	char text[160];

	mem_say_exhausted(r->m->mem, text, sizeof text);
	r->stop_end = MACH_END_UNDECODED;
	run_say(r, "%s", text);
	return ACT_STOPPED;
}

bool run_progress(struct mach_run *r)
{
	double part = -1;

	if (r->polled < r->next_progress)
		return false;
	r->next_progress = r->polled + PROGRESS_EVERY;
	if (r->ncalls)
		part = (double)r->seq / (double)r->ncalls;
	if (r->o.progress && r->o.progress(r->o.progress_arg, r->time, part))
		r->asked_to_stop = true;
	return run_out_of_time(r);
}

/* Instructions that are watched, or have symbols, take so many times as long as others. */
static unsigned slowness(const struct mach_run *r)
{
	return r->m->shadow ? 100 : r->m->access ? 10 : 1;
}

uint64_t run_piece(struct mach_run *r, struct run_thread *t, uint64_t limit)
{
	const struct load_force *f = r->free ? NULL : run_next_force(r, t->index);
	uint64_t now = r->m->insns;

	if (f && f->load.insn < limit)
		limit = f->load.insn;
	/* So that progress is shown and can stop the work. */
	uint64_t most = LONGEST_PIECE / slowness(r);

	return limit - now > most ? now + most : limit;
}

bool run_gives_up(void *arg)
{
	struct mach_run *r = arg;

	r->worked += MACH_WORK / WORK_OF_INSN;
	r->polled += MACH_WORK / WORK_OF_INSN;
	return run_progress(r);
}

/*
 * A loop without a branch (for (;;);) leaves nothing on the path, and only a signal ends it. Where no record is left none came, so
 * nobody knows how often it went round before the process was killed.
 */
static bool never_branches(const struct mach_run *r, const struct run_thread *t)
{
	return !r->free && r->m->insns - t->s.insns_now > LONGEST_UNBRANCHED && run_ended(t);
}

enum action run_thread_go(struct mach_run *r, struct run_thread *t, uint64_t limit, bool granted)
{
	struct mach *m = r->m;
	enum action a = ACT_RUN;

	run_switch(r, t->index);
	m->branch = run_on_branch;
	m->branch_arg = r;
	m->breaking = run_sight_pcs(r) ? BLOCK_BREAK : run_items_on(r) ? BLOCK_ITEM : BLOCK_WHOLE;
	while (a == ACT_RUN) {
		uint64_t before = m->insns;
		uint64_t stop_at;
		enum mach_stop stop;

		if (!r->free && !granted && signal_is_near(r, t)) {
			a = at_boundary(r, t);
			r->time += m->insns - before;
			if (a != ACT_RUN)
				break;
			stop_at = before + 1 < limit ? before + 1 : limit;
		} else {
			stop_at = limit;
		}
		stop_at = run_piece(r, t, stop_at);
		m->insn_limit = stop_at;
		t->s.action = ACT_RUN;
		r->stretch = before;
		run_expect_fault(r, t);
		stop = stop_at == before && before < limit ? STOP_BREAK : run_engine(r, t);
		/* These stand before an instruction that is executed here, not there. */
		if (m->insns >= limit && (stop == STOP_BREAK || stop == STOP_EVENT || stop == STOP_NONDET)) {
			r->time += m->insns - before;
			break;
		}
		a = after_stop(r, t, stop, granted);
		granted = false;
		r->time += m->insns - before;
		r->worked += m->insns - before;
		r->polled += (m->insns - before) * slowness(r);
		if (m->mem->exhausted && a != ACT_STOPPED)
			return t->s.action = exhausted(r);
		if (a == ACT_RUN && m->insns >= limit)
			break;
		if (a == ACT_RUN && (stop == STOP_HOOK || stop == STOP_EVENT) && r->nthreads > 1 &&
		    !r->free)
			break; /* a timestamp: others may be due */
		if (r->asked_to_stop)
			break;
		if (a == ACT_RUN && never_branches(r, t)) {
			a = ACT_END;
			break;
		}
		if (run_progress(r))
			break;
	}
	return t->s.action = a;
}
