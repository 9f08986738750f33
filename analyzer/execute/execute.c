/*
 * Executing another order of the threads: mach_execute().
 *
 * Points are given by instruction numbers of the recorded run. In another order
 * a lock may be free where it was taken, so libc executes another number of
 * instructions; the points are therefore translated first, by executing the
 * recorded order once more: an access becomes "the n-th execution of this pc by
 * this thread", a recorded operation "the n-th call of this kind from this site".
 *
 * Futexes are executed, not replayed: who waits and who wakes depends on the
 * order. Other system calls get their recorded results as long as number, place
 * and arguments are those of the record, and a few harmless ones are done anew.
 * Anything else means that the recorded world has been left.
 */
#include "analyzer/execute/execute.h"

#include "analyzer/engine/code.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#define LONGEST 200000000ull   /* instructions of one execution, beyond twice those that were recorded there */
#define FREE_TURN 20000u
#define PATIENCE 2000000ull   /* instructions until it is asked who spins */
#define NUDGE 3000u            /* instructions a thread may take to release something */
#define NUDGE_STEP 20u
#define MOST_LEAVING 2000u     /* instructions of an unlock or a signal, from where it is told */

/* ---- one thread, freely ---- */

/* All that was to be in order is: what comes next is only noted. */
static bool is_loose(const struct execution *x)
{
	return x->nstrict < x->npoints && x->at == x->nstrict;
}

static void note_loose(struct execution *x, uint32_t t)
{
	size_t i = x->first_of[t];

	if (!is_loose(x) || i >= x->npoints || exec_count(x, &x->points[i]) < x->points[i].nth)
		return;
	x->out->noted[x->out->nnoted++] = i;
	x->first_of[t] = x->points[i].next;
}

/* Operations that are told before they are done: who is let go on must not be told first. */
static bool acts_later(unsigned op)
{
	return op == TRC_OP_UNLOCK || op == TRC_OP_RWUNLOCK || op == TRC_OP_SPINUNLOCK || op == TRC_OP_SIGNAL ||
	       op == TRC_OP_BROADCAST || op == TRC_OP_SEM_POST;
}

/* A panic may be caught, and is a failure only where the recorded one was; the run went on from others. */
static bool is_failure(const struct mach_run *r, unsigned op)
{
	return op == TRC_OP_ASSERT || op == TRC_OP_USER_FAIL ||
	       (op == TRC_OP_PANIC && r->t->failure && r->t->failure->rec.flags == TRC_FAIL_ASSERT);
}

static void at_event(struct mach_run *r, struct execution *x, struct run_thread *t)
{
	VexGuestAMD64State *g = &r->m->frame->g;
	unsigned op_at = (uint32_t)g->guest_RDI, op = TRC_SYNC_OP(op_at);
	uint64_t place = exec_event_place(op_at, g->guest_RDX);

	if (is_failure(r, op)) {
		exec_failed(r, x, t->index, 0, g->guest_RDX);
		return;
	}
	if (x->try) {
		exec_try_event(r, x, t->index);
		x->leaves[t->index] = acts_later(op) ? g->guest_RDX : 0;
	}
	if (x->onward && onward_event(r, t)) {
		x->done = true;
		return;
	}
	x->begun |= r->t->failure && r->t->failure->thread == t->index;
	exec_count_up(x, t->index, place);
	note_loose(x, t->index);
	exec_inside(&x->inside[t->index], op_at, g->guest_RDX);
	g->guest_RAX = g->guest_RCX;
	shadow_forget(r->m, gpr_offset(0), 8);
	g->guest_RIP = r->m->event_end;
	r->m->insns++;
	r->time++;
}

static void at_nondet(struct mach_run *r, struct execution *x, struct run_thread *t)
{
	uint64_t pc = r->m->frame->g.guest_RIP;

	for (size_t i = t->s.rec; i < t->recs.n && i < t->s.rec + 64; i++) {
		const struct trc_nondet *n = (const void *)t->recs.v[i];

		if (n->rec.type == TRC_NONDET && n->pc == pc) {
			t->s.rec = i;
			if (run_nondet(r, t) != ACT_RUN)
				break;
			r->time++;
			return;
		}
	}
	exec_left(r, x, t->index, "an instruction whose result was not recorded");
}

static void at_fault(struct mach_run *r, struct execution *x, struct run_thread *t)
{
	exec_failed(r, x, t->index, r->m->fault.signal, r->m->frame->g.guest_RIP);
}

static uint64_t place_of(const struct mach_run *r, enum mach_stop stop)
{
	const VexGuestAMD64State *g = &r->m->frame->g;

	return stop == STOP_BREAK ? g->guest_RIP :
	       stop == STOP_EVENT ? exec_event_place((uint32_t)g->guest_RDI, g->guest_RDX) : 0;
}

/* The thread stands before its next point, at this place. */
static bool at_point(struct execution *x, uint32_t t, uint64_t place)
{
	const struct exec_point *p = x->first_of[t] < x->npoints ? &x->points[x->first_of[t]] : NULL;

	return p && exec_stands_at(x, p, place);
}

/* The failing thread is to go first, and has not begun: there is none yet, or its creator lets it wait. */
static bool waits_to_begin(const struct mach_run *r, const struct execution *x)
{
	const struct trc_failure *f = r->t->failure;

	return !x->others_first && !x->begun && f && f->thread < r->nthreads &&
	       r->threads[f->thread].s.life != LIFE_RUNNING;
}

static bool makes_thread(const struct mach_run *r)
{
	struct spawn s;

	return run_spawn_args(r, (uint32_t)r->m->frame->g.guest_RAX, &s);
}

void exec_do(struct mach_run *r, struct execution *x, struct run_thread *t, enum mach_stop stop)
{
	uint64_t before = r->time;

	if (stop == STOP_EVENT)
		at_event(r, x, t);
	else if (stop == STOP_NONDET)
		at_nondet(r, x, t);
	else if (x->try)
		exec_try_syscall(r, x, t);
	else
		exec_syscall(r, x, t);
	if (!x->done)
		exec_keep_step(r, x, t->index, ACT_ORDER_DO, r->time - before);
}

/*
 * Executes at most n instructions; stops behind the thread's point. Without one
 * (it only lets another thread go on) it stops before its next, or where one is made that goes first.
 */
static void go(struct mach_run *r, struct execution *x, struct run_thread *t, uint64_t n,
	       const struct exec_point *point)
{
	struct mach *m = r->m;
	uint64_t begin;

	bool past = x->passage.seen, waiting = !point && waits_to_begin(r, x);

	x->made = false;
	run_switch(r, t->index);
	begin = m->insns;
	while (!x->done && !x->made && m->insns - begin < n && t->s.life == LIFE_RUNNING) {
		uint64_t before = m->insns;
		enum mach_stop stop;

		if (point && exec_reached(r, x, point))
			break;
		if (waiting && !waits_to_begin(r, x))
			break;
		m->breaking = BLOCK_BREAK;
		m->insn_limit = exec_fate_limit(r, x, t->index, begin + n);
		/* A breakpoint at rip stops at once: it was counted, so step over it. */
		if (x->step[t->index]) {
			m->breaking = BLOCK_WHOLE;
			m->insn_limit = before + 1;
			x->step[t->index] = false;
			exec_store_late(r, x, t->index);
		}
		r->stretch = before;
		stop = mach_engine_run(m);
		r->time += m->insns - before;
		exec_keep_step(r, x, t->index, ACT_ORDER_RUN, m->insns - before);
		if (t->index == x->fate.thread)
			exec_fate_note(r, x);
		/* When the others are to go first its next round is another story. */
		if (x->done || (x->others_first && x->passage.seen && !past))
			break;
		if (!point && !x->broken && !is_loose(x) && at_point(x, t->index, place_of(r, stop)))
			break;
		switch (stop) {
		case STOP_BREAK:
			exec_count_up(x, t->index, m->frame->g.guest_RIP);
			note_loose(x, t->index);
			x->step[t->index] = true;
			break;
		case STOP_SYSCALL:
			x->made = !point && x->young_first && makes_thread(r);
			/* fall through */
		case STOP_EVENT:
		case STOP_NONDET:
			exec_do(r, x, t, stop);
			break;
		case STOP_FAULT:
			at_fault(r, x, t);
			break;
		case STOP_UNDECODED:
			exec_left(r, x, t->index, m->why);
			break;
		case STOP_WORK:
			exec_left(r, x, t->index, "an instruction takes longer than there is time");
			break;
		default:
			break;
		}
	}
	m->breaking = BLOCK_WHOLE;
}

/* Stops before the thread's next point. */
void exec_go_before(struct mach_run *r, struct execution *x, struct run_thread *t)
{
	go(r, x, t, FREE_TURN, NULL);
}

void exec_go(struct mach_run *r, struct execution *x, struct run_thread *t, uint64_t n)
{
	go(r, x, t, n, NULL);
}

/* ---- all threads ---- */

static bool runnable(const struct run_thread *t)
{
	return t->s.life == LIFE_RUNNING;
}

/* The failing thread may come to its failure without passing a point. */
static void expect_failure(struct mach_run *r, struct execution *x)
{
	const struct trc_failure *f = r->t->failure;

	if (!f || f->thread >= r->nthreads)
		return;
	x->fail_from = mach_thread_insns(r, f->thread);
	x->fail_distance = x->fail_insns > x->fail_from ? x->fail_insns - x->fail_from : 0;
}

/* From its last point the failing thread fails as soon as it did when recorded, or not at all. */
static void note_fate(struct mach_run *r, struct execution *x, const struct exec_point *p)
{
	const struct trc_failure *f = r->t->failure;

	if (!f || p->thread != f->thread || p->insn > x->fail_insns || x->decided)
		return;
	x->fail_from = mach_thread_insns(r, p->thread);
	x->fail_distance = x->fail_insns - p->insn;
}

/* It was decided: let the thread show how, if it can. */
static void see_decision(struct mach_run *r, struct execution *x)
{
	if (!x->decided || (x->others_first && x->passage.seen))
		return;
	if (runnable(&r->threads[x->fate.thread]))
		go(r, x, &r->threads[x->fate.thread], x->fail_distance + EXEC_MARGIN, NULL);
	exec_fate_blocked(r, x);
}

/* The thread's last point was the beginning of a release: it is done before another thread goes on. */
static void leave_call(struct mach_run *r, struct execution *x, struct run_thread *t)
{
	uint64_t site = x->leaves[t->index];

	x->leaves[t->index] = 0;
	for (unsigned i = 0; site && i < MOST_LEAVING && runnable(t) && !x->done; i++) {
		run_switch(r, t->index);
		if (r->m->frame->g.guest_RIP == site)
			break;
		go(r, x, t, 1, NULL);
	}
}

/* Points in order; a thread that blocks before its point is left for later. */
void exec_run_points(struct mach_run *r, struct execution *x)
{
	uint64_t since = r->time;
	size_t idle = 0;

	while (!x->done && x->at < x->nstrict) {
		const struct exec_point *p = &x->points[x->at];
		struct run_thread *t = &r->threads[p->thread];
		uint64_t before = mach_thread_insns(r, p->thread);

		if (exec_reached(r, x, p) || t->s.life == LIFE_ENDED ||
		    (exec_splits(x, p) && exec_load_early(r, x, t, p))) {
			note_fate(r, x, p);
			x->first_of[p->thread] = p->next;
			if (x->keeps)
				x->out->times[x->at] = r->time;
			x->at++;
			if (x->at < x->nstrict && x->points[x->at].thread != p->thread)
				leave_call(r, x, t);
			x->out->points++;
			idle = 0;
			since = r->time;
			x->poll[p->thread].rounds = 0;
			continue;
		}
		see_decision(r, x);
		if (runnable(t) && !x->done)
			go(r, x, t, FREE_TURN, p);
		/* As the order before it leaves it; whoever goes on now may wake it. */
		if (x->at + 1 == x->nstrict && x->wait[p->thread].waiting && !x->wait[p->thread].can_time_out && !idle)
			x->blocked_at = x->wait[p->thread].address;
		if (mach_thread_insns(r, p->thread) != before || exec_reached(r, x, p)) {
			idle = 0;
		} else if (exec_time_out(r, x, p->thread)) {
			/* Nobody before it in the order woke it: its time is up. */
			idle = 0;
		} else if (++idle > 4 || !exec_let_others(r, x, p->thread)) {
			return; /* blocked: decided by the caller */
		}
		x->gave_up = r->time - x->began > x->longest ||
			     (r->time - since > x->patience && x->poll[p->thread].rounds >= EXEC_POLLS);
		if (x->gave_up)
			return;
	}
}

/* Runs t a little at a time until `blocked` can go on. */
static bool nudge(struct mach_run *r, struct execution *x, struct run_thread *t, uint32_t blocked)
{
	for (unsigned spent = 0; spent < NUDGE && runnable(t) && !x->done; spent += NUDGE_STEP) {
		uint64_t before = mach_thread_insns(r, t->index);

		go(r, x, t, NUDGE_STEP, NULL);
		if (runnable(&r->threads[blocked]))
			return true;
		if (mach_thread_insns(r, t->index) == before)
			return false;
	}
	return false;
}

/* Who can let the thread go on: its creator, or who owns the mutex that it waits for. */
static uint32_t helper_of(struct mach_run *r, const struct execution *x, uint32_t t)
{
	const struct trc_thread_info *info = trc_thread_at(r->t, t);
	uint32_t owner = 0; /* pthread_mutex_t: the futex word, a count, the owner's tid */

	if (r->threads[t].s.life == LIFE_UNBORN)
		return info && info->rec && info->rec->parent < r->nthreads ? info->rec->parent :
									      NO_THREAD;
	if (!x->wait[t].waiting || !mem_peek(r->m->mem, x->wait[t].address + 8, &owner, 4) || !owner)
		return NO_THREAD;
	for (uint32_t i = 0; i < r->nthreads; i++) {
		info = trc_thread_at(r->t, i);
		if (i != t && info && info->rec && info->rec->tid == owner)
			return i;
	}
	return NO_THREAD;
}

/*
 * Somebody must let the blocked thread go on: its helper; or whoever came last
 * in the order, who stands right before a release more often than not; then
 * the others. None goes past its own next point.
 */
bool exec_let_others(struct mach_run *r, struct execution *x, uint32_t but)
{
	uint64_t before = r->time;
	uint32_t helper = helper_of(r, x, but);

	if (helper != NO_THREAD && nudge(r, x, &r->threads[helper], but))
		return true;
	for (size_t i = x->at, tried = 0; i-- > 0 && tried < 8; tried++)
		if (x->points[i].thread != but &&
		    nudge(r, x, &r->threads[x->points[i].thread], but))
			return true;
	for (size_t i = 0; i < r->nthreads && !x->done; i++)
		if (i != but && nudge(r, x, &r->threads[i], but))
			return true;
	return r->time != before;
}

/* The thread whose fate is asked for goes first, or last: then who came last, or was made last, goes first. */
static uint32_t turn_of(const struct mach_run *r, const struct execution *x, size_t i)
{
	const struct trc_failure *f = r->t->failure;
	size_t fails = f && f->thread < r->nthreads ? f->thread : 0;

	if (x->young_first)
		return (uint32_t)(r->nthreads - 1 - i);
	if (x->goes_first)
		return (uint32_t)((x->goes_first - 1 + i) % r->nthreads);
	if (!x->others_first)
		return (uint32_t)((fails + i) % r->nthreads);
	if (i + 1 == r->nthreads)
		return (uint32_t)fails;
	size_t first = x->nstrict ? x->points[x->nstrict - 1].thread : 0;
	size_t t = (first + i) % r->nthreads;
	/* Each has one turn: in the place of the failing one comes the one left over at the end. */
	return (uint32_t)(t == fails ? (first + r->nthreads - 1) % r->nthreads : t);
}

static bool somebody_times_out(struct mach_run *r, struct execution *x)
{
	for (uint32_t i = 0; i < r->nthreads; i++)
		if (exec_time_out(r, x, i))
			return true;
	return false;
}

/*
 * Does the thread only go round in circles? One that changes memory may be at work, and is not to be interrupted
 * there when threads go as far as they can: for as long as the recorded rest of the run it goes on.
 */
static bool spins(struct mach_run *r, struct execution *x, struct run_thread *t, bool *changes)
{
	bool leaves = false, round = exec_spins(r, x, t, &leaves);

	*changes |= leaves;
	return round && !(leaves && r->time < r->length);
}

/* Its failure is decided; on the way there it may have to do what another did when recorded. */
static bool is_failing(const struct mach_run *r, const struct execution *x, uint32_t t)
{
	return x->decided && !x->turned && r->t->failure && t == r->t->failure->thread;
}

/*
 * The thread whose fate is asked for waits for another, which may come to a failure of its own:
 * that goes only as far as it has to.
 */
static bool free_the_failing(struct mach_run *r, struct execution *x)
{
	uint32_t t = turn_of(r, x, 0);

	return !x->others_first && !x->passage.seen && !is_loose(x) && x->wait[t].waiting &&
	       exec_let_others(r, x, t) && runnable(&r->threads[t]);
}

static void run_on(struct mach_run *r, struct execution *x)
{
	while (!x->done && r->time - x->began < x->longest) {
		bool any = false, moved = free_the_failing(r, x), changes = false;

		for (size_t i = 0; i < r->nthreads && !x->done; i++) {
			struct run_thread *t = &r->threads[turn_of(r, x, i)];
			bool whole, waiting;

			if (!runnable(t))
				continue;
			any = true;
			waiting = waits_to_begin(r, x);
			whole = x->others_first || x->passage.seen || is_loose(x) || is_failing(r, x, t->index);
			go(r, x, t, whole ? FREE_TURN : x->fail_distance + EXEC_MARGIN + 1, NULL);
			if (!x->done)
				exec_fate_passed(r, x);
			exec_aftermath(r, x);
			moved |= x->made || (waiting && !waits_to_begin(r, x));
			if (x->made || (waiting && !waits_to_begin(r, x)))
				break;
			/* In small turns it takes long until there is reason to ask. */
			if ((!whole && r->time - x->began < PATIENCE) || !runnable(t) ||
			    !spins(r, x, t, &changes))
				moved = true;
			else
				continue;
			if (whole && runnable(t))
				break; /* as far as it can */
		}
		if (!any && !x->done && !somebody_times_out(r, x))
			exec_stuck(r, x);
		else if (!moved && !changes && !x->done && !somebody_times_out(r, x))
			exec_livelock(r, x);
	}
	if (!x->done)
		exec_gave_up(r, x);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void exec_set_breaks(struct mach_run *r, struct execution *x)
{
	size_t n = 0;

	x->breaks = xcalloc(x->npoints + 3, sizeof *x->breaks);
	for (size_t i = 0; i < x->npoints; i++)
		if (x->points[i].place && !(x->points[i].place >> 63))
			x->breaks[n++] = x->points[i].place;
	if (x->fate.nth)
		x->breaks[n++] = x->fate.place;
	if (x->brink.nth)
		x->breaks[n++] = x->brink.place;
	if (n)
		qsort(x->breaks, n, sizeof *x->breaks, by_value);
	mach_set_breaks(r->m, x->breaks, n);
}

/* In the committed order these threads were inside calls; futexes are emulated from here. */
void exec_settle_calls(struct mach_run *r, struct execution *x)
{
	for (size_t i = 0; i < r->nthreads; i++) {
		struct run_thread *t = &r->threads[i];

		if (t->s.life == LIFE_IN_CALL) {
			uint64_t before = mach_thread_insns(r, t->index);

			exec_adopt_call(r, x, t);
			exec_keep_step(r, x, t->index, ACT_ORDER_AGAIN, before - mach_thread_insns(r, t->index));
		}
		t->s.action = ACT_RUN;
	}
}

void exec_new(struct mach_run *r, struct execution *x)
{
	x->points = xcalloc(x->npoints + 1, sizeof *x->points);
	x->first_of = xcalloc(r->nthreads + 1, sizeof *x->first_of);
	x->unfinished = xcalloc(r->nthreads + 1, sizeof *x->unfinished);
	x->inside = xcalloc(r->nthreads + 1, sizeof *x->inside);
	x->step = xcalloc(r->nthreads + 1, sizeof *x->step);
	x->leaves = xcalloc(r->nthreads + 1, sizeof *x->leaves);
	x->poll = xcalloc(r->nthreads + 1, sizeof *x->poll);
	x->state_size = r->nthreads * (sizeof *x->wait + sizeof *x->early + sizeof *x->cleared) + sizeof *x->arrivals;
	x->arrivals = x->state = xcalloc(1, x->state_size);
	x->cleared = x->arrivals + 1;
	x->wait = (struct futex_wait *)(x->cleared + r->nthreads);
	x->early = (struct early_load *)(x->wait + r->nthreads);
	for (size_t i = 0; i < r->nthreads; i++)
		x->cleared[i] = r->threads[i].start ? r->threads[i].start->clear_tid : 0;
	exec_counts_reset(x);
	r->fresh = EXEC_FRESH_MAPS;
}

void exec_free(struct mach_run *r, struct execution *x)
{
	r->m->breaks = (struct mach_pcs){ 0 }; /* what was made for them may be right for the next */
	free(x->points);
	free(x->counts.v);
	free(x->first_of);
	free(x->step);
	free(x->leaves);
	free(x->poll);
	free(x->unfinished);
	free(x->inside);
	free(x->state);
	free(x->breaks);
	free(x->passage.why);
}

static void execute(struct mach_run *r, struct execution *x)
{
	exec_counts_reset(x);
	r->fresh = EXEC_FRESH_MAPS;
	exec_set_breaks(r, x);
	r->free = true;
	exec_settle_calls(r, x);
	x->began = r->time;
	x->patience = x->longest = LONGEST + (r->length > r->time ? 2 * (r->length - r->time) : 0);
	expect_failure(r, x);
	exec_link_points(x, r->nthreads);
	exec_run_points(r, x);
	x->broken = x->at < x->nstrict && !x->passage.seen;
	exec_fate_passed(r, x);
	if (!x->done)
		run_on(r, x);
	r->free = false;
}

err_t mach_execute(struct mach_run *r, const struct mach_order *o, struct mach_outcome *out)
{
	struct execution x = { .out = out, .npoints = o->npoints,
			       .nstrict = o->npoints - o->loose, .fate = { .thread = NO_THREAD },
			       .brink = { .thread = NO_THREAD },
			       .others_first = o->others_first || o->goes_first || o->young_first,
			       .goes_first = o->goes_first, .young_first = o->young_first };
	uint64_t left;
	size_t log;
	err_t e;

	*out = (struct mach_outcome){ .kind = MACH_OUT_LEFT };
	out->noted = xcalloc(o->loose + 1, sizeof *out->noted);
	out->times = o->keep ? xcalloc(o->npoints + 1, sizeof *out->times) : NULL;
	for (size_t i = 0; i < o->npoints; i++)
		if (o->points[i].thread >= r->nthreads)
			return err_new(ERR_INTERNAL, "a point of a thread that does not exist");
	exec_new(r, &x);
	for (size_t i = 0; i < o->npoints; i++)
		x.points[i] = (struct exec_point){ .thread = o->points[i].thread,
						   .insn = o->points[i].insn };
	if (o->fate)
		x.fate = (struct exec_point){ .thread = o->fate->thread, .insn = o->fate->insn };
	if (o->fate && o->brink)
		x.brink = (struct exec_point){ .thread = o->brink->thread, .insn = o->brink->insn };
	run_seek_lost(r);
	r->execution = &x;
	e = exec_translate(r, &x, o);
	if (!e)
		e = run_go_exactly(r, o->from, &log, &left);
	if (!e && o->keep)
		exec_keep_begin(r, &x, log, left);
	if (!e)
		execute(r, &x);
	out->insns = r->time - x.began;
	out->held = exec_holds_others(r, &x);
	out->past = x.turned ? x.turned_at : x.passage.seen ? x.passage.time : 0;
	run_settle(r);
	r->execution = NULL;
	if (x.keeps)
		exec_keep_end(r, &x);
	else
		exec_free(r, &x);
	return e;
}

void mach_outcome_free(struct mach_outcome *o)
{
	free(o->why);
	free(o->noted);
	free(o->times);
	*o = (struct mach_outcome){ 0 };
}
