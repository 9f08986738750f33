/*
 * How an execution in another order ends: in the recorded failure, past it, in
 * another failure, or outside the recorded world.
 *
 * Past it: the failing thread has executed the instruction that decided the
 * failure (its *fate*: the branch towards the assertion, the access that
 * faulted), as often as when recorded, and went elsewhere. It may still fail by
 * what it tests next (assert(a && b)), so it is followed for as long as the
 * failure took when recorded, until it comes round to the same instruction
 * again, or until it has to wait.
 */
#include "analyzer/machine/execute.h"

#include <stdio.h>

bool exec_decide(struct execution *x, enum mach_outcome_kind kind, uint32_t thread, uint64_t pc,
		 const char *why)
{
	/* Past the failure, but not in the order that was asked for. */
	if (x->broken && kind == MACH_OUT_PASSED) {
		kind = MACH_OUT_LEFT;
		why = "the order cannot be executed: a thread is blocked before its turn";
	}
	x->out->kind = kind;
	x->out->thread = thread;
	x->out->pc = pc;
	free(x->out->why);
	x->out->why = xstrdup(why);
	x->done = true;
	return true;
}

static bool nobody_fails_alone(const struct trc_failure *f)
{
	return f->rec.flags == TRC_FAIL_DEADLOCK || f->rec.flags == TRC_FAIL_HANG;
}

bool exec_past(const struct mach_run *r, struct execution *x)
{
	const struct trc_failure *f = r->t->failure;

	if (!f || f->thread >= r->nthreads || nobody_fails_alone(f))
		return false;
	if (x->fate.nth ? !x->turned : x->at < x->npoints)
		return false;
	/* Round again: it stands before the next execution of what decided. */
	if (x->turned && exec_count(x, &x->fate) > x->fate.nth)
		return true;
	return mach_thread_insns(r, f->thread) > x->fail_from + x->fail_distance;
}

/* Something else ended the execution; what the failing thread did before that counts. */
static void decide_otherwise(struct mach_run *r, struct execution *x, enum mach_outcome_kind kind,
			     uint32_t t, uint64_t pc, const char *what)
{
	char *place = run_place(r, pc);
	bool past = exec_past(r, x) || x->turned;
	char *why = xasprintf("%s%s %s%s",
			      x->turned ? "where its failure was decided the failing thread went "
					  "the other way; then " :
			      past ? "passed the failure point, then " : "",
			      trc_thread_id(r->t, t), what, place);

	x->out->left = past;
	exec_decide(x, past ? MACH_OUT_PASSED : kind, t, pc, why);
	free(why);
	free(place);
}

void exec_failed(struct mach_run *r, struct execution *x, uint32_t t, int sig, uint64_t pc)
{
	const struct trc_failure *f = r->t->failure;
	char what[64];

	if (f && f->thread == t && (!sig || f->signal == sig) && f->regs[TRC_RIP] == pc &&
	    !exec_past(r, x)) {
		exec_decide(x, MACH_OUT_FAILED, t, pc, "ran into the recorded failure");
		return;
	}
	if (sig)
		snprintf(what, sizeof what, "ran into another failure: signal %d at ", sig);
	else
		snprintf(what, sizeof what, "ran into another failure: an assertion at ");
	decide_otherwise(r, x, MACH_OUT_OTHER, t, pc, what);
}

void exec_left(struct mach_run *r, struct execution *x, uint32_t t, const char *what)
{
	char *text = xasprintf("left the recorded world (%s) at ", what);

	decide_otherwise(r, x, MACH_OUT_LEFT, t, r->m->frame->g.guest_RIP, text);
	free(text);
}

/* The end of a wait that never ended when recorded; NULL: not an operation of the record. */
static const struct exec_point *held(const struct mach_run *r, const struct execution *x, size_t i)
{
	uint32_t t = r->t->blocked.v[i]->thread;

	return t < r->nthreads && x->unfinished[t].place ? &x->unfinished[t] : NULL;
}

void exec_stuck(struct mach_run *r, struct execution *x)
{
	for (size_t i = 0; i < r->t->blocked.n; i++) {
		const struct exec_point *h = held(r, x, i);

		if (!h || (exec_count(x, h) + 1 == h->nth && x->inside[h->thread] == h->place))
			continue;
		exec_decide(x, MACH_OUT_OTHER, h->thread, 0,
			    "no thread can go on, but not where the recorded ones waited");
		return;
	}
	exec_decide(x, MACH_OUT_BLOCKED, r->res.thread, 0, "no thread can go on");
}

/* An order that leads out of a deadlock has the end of such a wait among its points. */
static bool released(struct mach_run *r, struct execution *x)
{
	const struct trc_failure *f = r->t->failure;

	if (!f || !nobody_fails_alone(f) || x->at < x->npoints)
		return false;
	for (size_t i = 0; i < r->t->blocked.n; i++) {
		const struct exec_point *h = held(r, x, i);

		if (h && exec_reached(r, x, h))
			return true;
	}
	return false;
}

void exec_fate_passed(struct mach_run *r, struct execution *x)
{
	const struct trc_failure *f = r->t->failure;
	const struct run_thread *t;

	if (!x->done && released(r, x)) {
		exec_decide(x, MACH_OUT_PASSED, NO_THREAD, 0,
			    "a thread that waited for ever when recorded went on");
		return;
	}
	if (!f || f->thread >= r->nthreads || x->done)
		return;
	t = &r->threads[f->thread];
	if (t->s.life == LIFE_ENDED && x->at == x->npoints)
		exec_decide(x, MACH_OUT_PASSED, f->thread, 0, "the failing thread ended without failing");
	else if (exec_past(r, x) && mach_thread_insns(r, f->thread) > x->fail_from +
		 x->fail_distance + (x->fate.nth ? 0 : EXEC_MARGIN))
		exec_decide(x, MACH_OUT_PASSED, f->thread, t->s.cpu.g.guest_RIP,
			    "the failing thread went on past the failure point");
}

void exec_fate_note(struct mach_run *r, struct execution *x)
{
	if (!x->fate.nth || !exec_reached(r, x, &x->fate))
		return;
	if (!x->decided) {
		x->decided = true;
		/* What faulted had nowhere to go: that it was executed is enough. */
		x->turned = !x->fate_next || r->m->frame->g.guest_RIP != x->fate_next;
		x->fail_from = mach_thread_insns(r, x->fate.thread);
		x->fail_distance = x->fail_insns > x->fate.insn ? x->fail_insns - x->fate.insn : 0;
	}
	exec_fate_passed(r, x);
}

void exec_fate_blocked(struct mach_run *r, struct execution *x)
{
	if (!x->turned || x->done || r->threads[x->fate.thread].s.life != LIFE_IN_CALL)
		return;
	exec_decide(x, MACH_OUT_PASSED, x->fate.thread, r->threads[x->fate.thread].s.cpu.g.guest_RIP,
		    "where its failure was decided the failing thread went the other way; "
		    "it waits for another thread now");
}

uint64_t exec_fate_limit(const struct mach_run *r, const struct execution *x, uint32_t t,
			 uint64_t limit)
{
	uint64_t end = x->fail_from + x->fail_distance + 1;

	return x->turned && t == x->fate.thread && mach_thread_insns(r, t) < end && end < limit ?
		       end : limit;
}
