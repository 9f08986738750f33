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
 *
 * Then comes the *aftermath*: the damage may be done already and show at the next
 * test of it. All threads go on, each as far as it can, so that no new race is
 * begun. If the failing thread fails in the same place before it comes round to what
 * decided, this order fails; in a later round, elsewhere, or in another thread, it avoids
 * this failure and comes to another.
 */
#include "analyzer/execute/execute.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Instructions of the aftermath: as many as the order itself had, within these. */
#define AFTERMATH_LEAST 1000000ull
#define AFTERMATH_MOST 20000000ull

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

static void past_for_now(struct mach_run *r, struct execution *x, uint32_t thread, uint64_t pc,
			 const char *why)
{
	if (x->broken)
		exec_decide(x, MACH_OUT_PASSED, thread, pc, why);
	else if (!x->passage.seen)
		x->passage = (struct exec_passage){ true, r->time, thread, pc, xstrdup(why) };
}

static void decide_past(struct execution *x)
{
	exec_decide(x, MACH_OUT_PASSED, x->passage.thread, x->passage.pc, x->passage.why);
}

void exec_aftermath(struct mach_run *r, struct execution *x)
{
	uint64_t before = x->passage.time - x->began;
	uint64_t enough = before < AFTERMATH_LEAST ? AFTERMATH_LEAST :
			  before > AFTERMATH_MOST  ? AFTERMATH_MOST : before;

	if (x->passage.seen && !x->done && r->time - x->passage.time > enough)
		decide_past(x);
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
	if (x->fate.nth ? !x->turned : x->at < x->nstrict)
		return false;
	/* Round again: it stands before the next execution of what decided. */
	if (x->turned && exec_count(x, &x->fate) > x->fate.nth)
		return true;
	return mach_thread_insns(r, f->thread) > x->fail_from + x->fail_distance;
}

/* What comes behind the failure: past it, into another. */
static void fails_later(struct execution *x, uint32_t t, uint64_t pc, const char *what, bool recurs)
{
	char *why = xasprintf("%s; then %s", x->passage.seen ? x->passage.why :
			      "where its failure was decided the failing thread went the other way", what);

	x->out->fails_later = true;
	x->out->recurs = recurs;
	exec_decide(x, MACH_OUT_PASSED, t, pc, why);
	free(why);
}

/* In source lines where they are known; `back` from the pc, which may be where a call returns to. */
static char *source_place(struct mach_run *r, uint64_t pc, unsigned back)
{
	struct img_frame f;

	if (!img_frames(r->images, pc - back, &f, 1) || !f.file)
		return run_place(r, pc);

	const char *slash = strrchr(f.file, '/');
	return xasprintf("%s:%u (%s)", slash ? slash + 1 : f.file, f.line, f.function);
}

/* What a thread ran into, other than the recorded failure. */
static char *other_failure(struct mach_run *r, uint32_t t, int sig, uint64_t pc, bool same_place)
{
	const char *who = trc_thread_id(r->t, t);
	char *place = source_place(r, pc, !sig), *what;

	if (same_place && r->t->failure->thread == t)
		what = xasprintf("%s failed in the same place again, in a later round", who);
	else if (same_place && sig != SIGABRT) /* which is raised in one place whatever is wrong */
		what = xasprintf("%s failed in the same place, at %s", who, place);
	else if (sig)
		what = xasprintf("%s ran into another failure: signal %d at %s", who, sig, place);
	else
		what = xasprintf("%s ran into another failure: an assertion at %s", who, place);
	free(place);
	return what;
}

void exec_failed(struct mach_run *r, struct execution *x, uint32_t t, int sig, uint64_t pc)
{
	if (x->try) {
		exec_try_failed(r, x, t, sig, pc);
		return;
	}
	const struct trc_failure *f = r->t->failure;
	bool same = f && (!sig || f->signal == sig) && f->regs[TRC_RIP] == pc;

	/* In a later round the same bug may strike again: it is not this failure any more. */
	bool again = x->passage.seen && x->fate.nth && exec_count(x, &x->fate) > x->fate.nth;
	if (same && f->thread == t && !again) {
		exec_decide(x, MACH_OUT_FAILED, t, pc, x->passage.seen ?
			    "went past where the failure was decided, and failed in the same place later" :
			    "ran into the recorded failure");
		return;
	}

	char *what = other_failure(r, t, sig, pc, same);
	if (x->passage.seen || x->turned || exec_past(r, x))
		fails_later(x, t, pc, what, same && sig != SIGABRT);
	else
		exec_decide(x, MACH_OUT_OTHER, t, pc, what);
	free(what);
}

/* The end of a wait that never ended when recorded; NULL: not an operation of the record. */
static const struct exec_point *held(const struct mach_run *r, const struct execution *x, size_t i)
{
	uint32_t t = r->t->blocked.v[i]->thread;

	return t < r->nthreads && x->unfinished[t].place ? &x->unfinished[t] : NULL;
}

/*
 * Threads that wait for each other's locks wait for ever, whatever others do that come along later: where all of those that
 * the record names stand in their waits, that is the failure.
 */
static bool ring_is_closed(const struct mach_run *r, struct execution *x)
{
	unsigned members = 0;

	if (!r->t->failure || r->t->failure->rec.flags != TRC_FAIL_DEADLOCK || x->passage.seen)
		return false;
	for (size_t i = 0; i < r->t->blocked.n; i++) {
		const struct exec_point *h = held(r, x, i);

		if (!r->t->blocked.v[i]->cycle)
			continue;
		if (!h || !x->wait[h->thread].waiting || exec_count(x, h) + 1 != h->nth || x->inside[h->thread] != h->place)
			return false;
		members++;
	}
	return members > 0;
}

static bool decide_ring(const struct mach_run *r, struct execution *x)
{
	return ring_is_closed(r, x) &&
	       exec_decide(x, MACH_OUT_BLOCKED, r->res.thread, 0, "threads wait for each other's locks");
}

void exec_gave_up(struct mach_run *r, struct execution *x)
{
	if (!decide_ring(r, x))
		exec_decide(x, MACH_OUT_LEFT, r->res.thread, 0, "gave up after too many instructions");
}

/* The process ends with this status: a thread that waits for its own lock is not released by that. */
void exec_exited(struct mach_run *r, struct execution *x, uint32_t t, int status)
{
	const struct trc_failure *f = r->t->failure;
	bool same = f && f->rec.flags == TRC_FAIL_EXIT && f->status == status;

	if (same || !decide_ring(r, x))
		exec_decide(x, same ? MACH_OUT_FAILED : MACH_OUT_PASSED, t, r->m->frame->g.guest_RIP,
			    same ? "ended with the recorded exit status" : "the process ended without failing");
}

/* What the failing thread did before that counts. */
void exec_left(struct mach_run *r, struct execution *x, uint32_t t, const char *what)
{
	if (x->try) {
		exec_try_left(r, x, t, what);
		return;
	}
	if (decide_ring(r, x))
		return;
	uint64_t pc = r->m->frame->g.guest_RIP;
	char *place = run_place(r, pc);
	bool past = x->passage.seen || exec_past(r, x) || x->turned;
	char *why = xasprintf("%s%s left the recorded world (%s) at %s",
			      x->turned ? "where its failure was decided the failing thread went "
					  "the other way; then " :
			      past ? "passed the failure point, then " : "",
			      trc_thread_id(r->t, t), what, place);

	x->out->left = past;
	exec_decide(x, past ? MACH_OUT_PASSED : MACH_OUT_LEFT, t, pc, why);
	free(why);
	free(place);
}

/* All wait for each other, none in a call whose end is not known. */
static bool only_futexes(const struct mach_run *r, const struct execution *x)
{
	for (size_t i = 0; i < r->nthreads; i++)
		if (r->threads[i].s.life == LIFE_IN_CALL && !x->wait[i].waiting)
			return false;
	return true;
}

bool exec_holds_others(const struct mach_run *r, const struct execution *x)
{
	for (size_t i = 0; i < r->nthreads; i++)
		if (r->threads[i].s.life == LIFE_IN_CALL && !x->wait[i].waiting && !(r->t->failure && r->t->failure->thread == i))
			return true;
	return false;
}

static void stuck_behind_failure(struct mach_run *r, struct execution *x)
{
	if (only_futexes(r, x))
		fails_later(x, x->passage.thread, x->passage.pc, "no thread could continue",
			    r->t->failure && nobody_fails_alone(r->t->failure));
	else
		decide_past(x);
}

/* A thread that waited for ever when recorded, and waits elsewhere now; NULL: there is none. */
static const struct exec_point *waits_elsewhere(const struct mach_run *r, struct execution *x)
{
	for (size_t i = 0; i < r->t->blocked.n; i++) {
		const struct exec_point *h = held(r, x, i);

		if (h && (exec_count(x, h) + 1 != h->nth || x->inside[h->thread] != h->place))
			return h;
	}
	return NULL;
}

void exec_stuck(struct mach_run *r, struct execution *x)
{
	const struct exec_point *h = waits_elsewhere(r, x);

	if (x->passage.seen)
		stuck_behind_failure(r, x);
	else if (h)
		exec_decide(x, MACH_OUT_OTHER, h->thread, 0,
			    "no thread can continue, but not where the recorded ones waited");
	else
		exec_decide(x, MACH_OUT_BLOCKED, r->res.thread, 0, "no thread can continue");
	x->out->recurs |= x->out->kind == MACH_OUT_OTHER && r->t->failure && nobody_fails_alone(r->t->failure);
}

/* Who goes round in circles for ever belongs to a recorded hang. */
static bool is_the_hang(const struct mach_run *r, struct execution *x)
{
	const struct trc_failure *f = r->t->failure;

	return f && f->rec.flags == TRC_FAIL_HANG && r->t->blocked.n && !waits_elsewhere(r, x);
}

void exec_livelock(const struct mach_run *r, struct execution *x)
{
	if (x->passage.seen)
		fails_later(x, x->passage.thread, x->passage.pc, "no thread got any further",
			    r->t->failure && nobody_fails_alone(r->t->failure));
	else if (is_the_hang(r, x))
		exec_decide(x, MACH_OUT_BLOCKED, r->res.thread, 0,
			    "some threads wait, the others go round in circles");
	else
		exec_decide(x, MACH_OUT_LEFT, NO_THREAD, 0, "threads wait for each other in loops");
}

/* An order that leads out of a deadlock has the end of such a wait among its points. */
static bool released(struct mach_run *r, struct execution *x)
{
	const struct trc_failure *f = r->t->failure;

	if (!f || !nobody_fails_alone(f) || x->at < x->nstrict)
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
		past_for_now(r, x, NO_THREAD, 0, "a thread that waited for ever when recorded continued");
		return;
	}
	if (!f || f->thread >= r->nthreads || x->done)
		return;
	t = &r->threads[f->thread];
	if (t->s.life == LIFE_ENDED && x->at == x->nstrict)
		past_for_now(r, x, f->thread, 0, "the failing thread ended without failing");
	else if (exec_past(r, x) && mach_thread_insns(r, f->thread) > x->fail_from +
		 x->fail_distance + (x->fate.nth ? 0 : EXEC_MARGIN))
		past_for_now(r, x, f->thread, t->s.cpu.g.guest_RIP,
			     "the failing thread continued past the failure point");
}

static void decided_by(struct mach_run *r, struct execution *x, const struct exec_point *p, uint64_t next)
{
	x->decided = true;
	x->out->met = p == &x->fate;
	/* What faulted had nowhere to go: that it was executed is enough. */
	x->turned = !next || r->m->frame->g.guest_RIP != next;
	x->turned_at = r->time;
	x->fail_from = mach_thread_insns(r, p->thread);
	x->fail_distance = x->fail_insns > p->insn ? x->fail_insns - p->insn : 0;
}

void exec_fate_note(struct mach_run *r, struct execution *x)
{
	if (x->fate.nth && !x->decided && exec_reached(r, x, &x->fate))
		decided_by(r, x, &x->fate, x->fate_next);
	else if (x->brink.nth && !x->decided && exec_reached(r, x, &x->brink))
		decided_by(r, x, &x->brink, x->brink_next);
	if (x->decided)
		exec_fate_passed(r, x);
}

void exec_fate_blocked(struct mach_run *r, struct execution *x)
{
	if (!x->turned || x->done || r->threads[x->fate.thread].s.life != LIFE_IN_CALL)
		return;
	past_for_now(r, x, x->fate.thread, r->threads[x->fate.thread].s.cpu.g.guest_RIP,
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
