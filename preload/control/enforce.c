/*
 * Enforcing an order: each edge has a source and a target, named in occurrence
 * form. The thread of the target waits there until the source has happened. A
 * wait for what cannot come any more (its thread has ended, or waits for this one), or that lasts too long, means
 * that the run went another way: it is reported once and the thread goes on.
 *
 * A turn is where the order's part of a thread ends and the rest begins: there
 * the threads go on one at a time, as far as each one gets.
 */
#include "preload/control/enforce.h"

#include "preload/raw.h"
#include "preload/translate/translate.h"
#include "preload/watch.h"

#include <linux/futex.h>
#include <time.h>

#define PATIENCE_US 5000000
#define FIRST_POLL_US 2000
#define POLL_US 50000
/* Everybody else was blocked for so long: nobody is left to do what is waited for. */
#define STUCK_US 100000
/* In a run that has gone another way what is waited for comes soon or not at all. */
#define ASTRAY_PATIENCE_US 500000
#define ASTRAY_STUCK_US 20000
#define TURN_POLL_US 500
#define TURN_POLLS 3
#define ASK_POLLS 4
#define IDLE_POLLS 8
#define IDLE_YIELDS 8 /* from one poll to the next */
#define QUEUE_US 50000 /* who is not next is woken when it is, and looks for itself this often */
/* The others may compute, wait for something we do not see, or wake each other for ever. */
#define TURN_MAX_US 500000
#define MEET_US 20000 /* the other may have to come to run first */
#define MEET_BUDGET_US 6000000
#define THEN_US 2000

static struct enf_schedule schedule RAW_LARGE;
static struct enf_edge *const edges = schedule.edges;
/* Of the serial rest; edges watch system calls in front of it. */
static void (*serial_enter)(struct tr_ctx *c, long nr, const uint64_t args[6]);
static void (*serial_leave)(struct tr_ctx *c, long nr, long result);
static bool over; /* somebody has gone on behind the order: from now on one at a time */
static uint32_t waiting; /* threads held back right now */
static uint32_t vain;    /* how often somebody waited in vain */
/* The serial rest's. */
static void (*serial_exit)(struct tr_ctx *c);

static void at_syscall(struct tr_ctx *c, long nr, const uint64_t args[6]);
static void behind_syscall(struct tr_ctx *c, long nr, long result);
static void at_exit(struct tr_ctx *c);

bool ctl_enforce_init(const char *path)
{
	if (enf_read(path, &schedule)) {
		if (schedule.turns)
			ctl_serial_init(schedule.yields);
		serial_enter = ctl_syscall_enter;
		ctl_syscall_enter = at_syscall;
		serial_leave = ctl_syscall_leave;
		if (schedule.turns)
			ctl_syscall_leave = behind_syscall;
		serial_exit = ctl_thread_exit;
		ctl_thread_exit = at_exit;
		schedule.here = enf_same(schedule.process, shim.process);
		return true;
	}
	shim_degrade("the file named by schedule= is not a schedule; nothing is enforced");
	return false;
}

/* Is path the process itself, or one that may fork it? */
static bool is_ancestor(const char *path, const char *of)
{
	while (*path && *path == *of)
		path++, of++;
	return !*path && (!*of || *of == '.');
}

/*
 * In the child: it may be the one, or make it; a schedule is for one process. Nothing has
 * been counted in those before it.
 */
bool ctl_enforce_forked(void)
{
	bool was_here = schedule.here;

	schedule.here = enf_same(schedule.process, shim.process);
	return !was_here && is_ancestor(shim.process, schedule.process);
}

/* ---- at run time ---- */

unsigned ctl_enforce_plan(uint64_t pc, const struct insn *in)
{
	const struct ctl_module *m = ctl_module_at(pc);
	/* Mutexes are taken again inside libc, by instructions like these. */
	unsigned flags = schedule.waits && in->flags & INSN_LOCKED && m && !m->own ? CTL_CALLOUT_BEFORE : 0;

	for (unsigned i = 0; m && i < schedule.nedges; i++)
		flags |= enf_plan_end(&edges[i].source, true, pc, in, m) |
			 enf_plan_end(&edges[i].target, false, pc, in, m);
	return flags;
}

/* The call may be one of C++, with other arguments: what it waits for is known when it comes to libc. */
void ctl_enforce_wait(const struct shim_thread *t, uint64_t cond, uint64_t mutex)
{
	for (unsigned i = 0; i < schedule.nedges; i++) {
		enf_waits(&edges[i].source, t, cond, mutex);
		enf_waits(&edges[i].target, t, cond, mutex);
	}
}

/* native.c of the analyzer reads these notes: "schedule: edge N ...". */
static void note(const struct enf_edge *e, const char *what)
{
	TEXT(line, 200);

	text_str(&line, "schedule: edge ");
	text_num(&line, (long)e->id);
	text_str(&line, what);
	shim_note(false, line.s);
}

static bool all_others_blocked(void)
{
	return __atomic_load_n(&shim.nblocked, __ATOMIC_RELAXED) +
	       __atomic_load_n(&waiting, __ATOMIC_RELAXED) >=
	       __atomic_load_n(&shim.nlive, __ATOMIC_RELAXED);
}

/* Blocked is also who was woken and has not come to run yet: the kernel knows. */
static bool nobody_can_go_on(void)
{
	return all_others_blocked() && !watch_somebody_runs();
}

/* Who sleeps on a word of the shim's own is not taken for a part of a deadlock (watch.c). */
static void pause_us(const struct enf_edge *e, unsigned us)
{
	struct timespec t = { 0, us * 1000 };

	raw(SYS_futex, &e->done, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &t);
}

/*
 * The wake-up belongs to another one who waits. The kernel may have woken only us, and will wake
 * nobody else: the others have to look for themselves, as after any wake-up without a reason.
 */
static void wake_the_others(const struct enf_edge *e)
{
	raw(SYS_futex, e->target.word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 0x7fffffff);
	raw(SYS_futex, e->target.word, FUTEX_WAKE, 0x7fffffff);
}

/* Inside its call, that of a wait for a condition, a thread counts as blocked already. */
static bool is_counted(const struct tr_ctx *c)
{
	return __atomic_load_n(&c->thread->blocked_op, __ATOMIC_RELAXED) != 0;
}

/* One wait: for how long nobody has gone on, and what there was to see when that was last looked at. */
struct wait {
	uint64_t begin, stuck; /* us */
	uint64_t events;
	uint32_t vain;
	bool round;
};

static void look_around(struct wait *w, uint64_t now)
{
	w->events = shim_all_events();
	w->vain = __atomic_load_n(&vain, __ATOMIC_ACQUIRE);
	w->stuck = now;
	w->round = false;
}

/* Will the source not come? The kernel is asked seldom: it takes long. */
static bool looks_vain(struct wait *w, const struct tr_ctx *c, const struct enf_edge *e)
{
	uint64_t now = ctl_now_us();
	bool astray = w->vain > 0, was_round;

	if (__atomic_load_n(&e->hopeless, __ATOMIC_ACQUIRE))
		return true;
	if (shim_all_events() != w->events || __atomic_load_n(&vain, __ATOMIC_ACQUIRE) != w->vain)
		look_around(w, now);
	/* Of a round that somebody has just given up nothing counts that was seen before that. */
	was_round = w->round;
	w->round = enf_goes_round(&schedule, c->thread);
	if ((w->round && was_round) || now - w->begin > (astray ? ASTRAY_PATIENCE_US : PATIENCE_US))
		return true;
	if (!all_others_blocked())
		w->stuck = now;
	if (now - w->stuck <= (astray ? ASTRAY_STUCK_US : STUCK_US))
		return false;
	if (!nobody_can_go_on())
		w->stuck = now;
	return w->stuck != now;
}

/* Of several who see at the same time that nobody goes on one gives up: with that the others may. */
static void give_up(const struct wait *w, struct enf_edge *e)
{
	uint32_t seen = w->vain;

	if (e->hopeless)
		__atomic_fetch_add(&vain, 1, __ATOMIC_ACQ_REL);
	else if (!__atomic_compare_exchange_n(&vain, &seen, seen + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&e->given_up, true, __ATOMIC_RELEASE);
	note(e, ": its target waited in vain");
}

static void wait_until_done(const struct tr_ctx *c, struct enf_edge *e)
{
	struct wait w = { .begin = ctl_now_us() };
	unsigned us = FIRST_POLL_US;

	look_around(&w, w.begin);
	while (!__atomic_load_n(&e->done, __ATOMIC_ACQUIRE) && !e->given_up) {
		if (!__atomic_load_n(&e->hopeless, __ATOMIC_ACQUIRE))
			pause_us(e, us);
		us = us * 2 > POLL_US ? POLL_US : us * 2;
		if (looks_vain(&w, c, e) && !__atomic_load_n(&e->done, __ATOMIC_ACQUIRE))
			give_up(&w, e);
	}
}

static void hold(const struct tr_ctx *c, const struct enf_edge *e)
{
	if (c->thread->index < CTL_THREADS)
		__atomic_store_n(&schedule.held[c->thread->index], e, __ATOMIC_RELEASE);
}

static void wait_for(struct tr_ctx *c, struct enf_edge *e)
{
	bool counted = is_counted(c);

	/* A thread may come here more than once, looking for a wake-up. */
	if (e->given_up)
		return;
	if (e->target.when == ENF_WOKEN && !__atomic_load_n(&e->done, __ATOMIC_ACQUIRE))
		wake_the_others(e);
	ctl_serial_pause(c);
	__atomic_fetch_add(&waiting, !counted, __ATOMIC_RELAXED);
	hold(c, e);
	wait_until_done(c, e);
	hold(c, NULL);
	__atomic_fetch_sub(&waiting, !counted, __ATOMIC_RELAXED);
	ctl_serial_resume(c);
}

/* Every time both come here; who has nobody left to wait for goes on. */
static void meet_here(struct enf_edge *e, const struct tr_ctx *c, uint64_t pc)
{
	bool met = false;

	if (shim.nblocked + 1 >= shim.nlive || e->wasted_us > MEET_BUDGET_US)
		return;
	/* What comes then is yet to come, for both, before either goes on. */
	for (unsigned i = 0; i < schedule.nedges; i++)
		if (edges[i].then && enf_same(edges[i].source.thread, c->thread->id))
			__atomic_store_n(&edges[i].done, 0, __ATOMIC_RELEASE);
	if (!ctl_rendezvous(&e->meeting, c, pc, MEET_US, &met))
		e->wasted_us += MEET_US;
	for (unsigned i = 0; i < schedule.nedges; i++)
		if (edges[i].then && enf_same(edges[i].target.thread, c->thread->id))
			edges[i].met = met;
}

/* Whether the meeting did what it is for is not known: the other may not come here at all. */
static void wait_then(struct enf_edge *e)
{
	if (e->met)
		ctl_await(&e->done, 0, THEN_US);
	e->met = false;
}

static struct enf_edge *next_turn(void)
{
	for (unsigned i = 0; i < schedule.nedges; i++)
		if (__atomic_load_n(&edges[i].queued, __ATOMIC_ACQUIRE))
			return &edges[i];
	return NULL;
}

static void wake_next_turn(void)
{
	struct enf_edge *next = next_turn();

	if (!next)
		return;
	__atomic_store_n(&next->done, 1, __ATOMIC_RELEASE);
	raw(SYS_futex, &next->done, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1);
}

/* Only who is next looks often: with many who do, there is always somebody who runs. */
static void pause_in_queue(struct enf_edge *e)
{
	__atomic_store_n(&e->done, 0, __ATOMIC_SEQ_CST);
	pause_us(e, next_turn() == e ? TURN_POLL_US : QUEUE_US);
}

/* What who is next has seen of the others. */
struct looks {
	uint64_t events, yields;
	unsigned still; /* in a row: nobody ran, and nothing had happened since the last one */
	unsigned moved, idle; /* all in all: something had happened; nobody ran */
};

/*
 * Do the others get no further? All of them sleep, in whatever call (an accept() as well as a lock: they give the
 * token away there, too), or the one that runs does nothing but yield.
 */
static bool others_are_idle(struct looks *l)
{
	uint64_t before = l->yields;

	l->yields = ctl_serial_yields();
	return l->yields - before > IDLE_YIELDS || !watch_somebody_runs();
}

static bool turn_has_come(struct looks *l)
{
	uint64_t before = l->events;

	l->events = shim_all_events();
	/* Who waits for a lock or for a turn does not come back by itself: to look once is enough. */
	if (l->events == before && nobody_can_go_on())
		return true;
	/* To ask the kernel takes long: not each time when there is no hope. */
	bool idle = (l->events == before || ++l->moved % ASK_POLLS == 0) && others_are_idle(l);
	l->still = idle && l->events == before ? l->still + 1 : 0;
	/* Who wakes up every now and then, to look whether there is something to do, is never still for long. */
	l->idle += idle;
	return l->still >= TURN_POLLS || l->idle >= IDLE_POLLS;
}

/*
 * Who comes first in the file goes first; the next one when all others are
 * blocked, ended or wait here themselves. Nothing is claimed of this part of the
 * run: a wait that is too long ends without a word.
 */
static void wait_turn(struct tr_ctx *c, struct enf_edge *e)
{
	uint64_t next_since = ctl_now_us();
	bool counted = is_counted(c), come = false;
	struct looks l = { .events = shim_all_events(), .yields = ctl_serial_yields() };

	/* It may have joined them early (behind_syscall()), and would keep the others from running while it waits here. */
	ctl_serial_pause(c);
	__atomic_store_n(&e->queued, true, __ATOMIC_RELEASE);
	__atomic_fetch_add(&waiting, !counted, __ATOMIC_RELAXED);
	while (!come && ctl_now_us() - next_since < TURN_MAX_US) {
		pause_in_queue(e);
		if (next_turn() == e) {
			come = turn_has_come(&l);
		} else {
			next_since = ctl_now_us();
			l.still = l.idle = 0;
		}
	}
	__atomic_fetch_sub(&waiting, !counted, __ATOMIC_RELAXED);
	__atomic_store_n(&e->queued, false, __ATOMIC_RELEASE);
	wake_next_turn();
}

static void happened(struct enf_edge *e)
{
	__atomic_store_n(&e->done, 1, __ATOMIC_RELEASE);
	if (e->then)
		return;
	raw(SYS_futex, &e->done, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 0x7fffffff);
}

/* Who sleeps in a call has done there what others can see: arrived, or let go. */
static void at_syscall(struct tr_ctx *c, long nr, const uint64_t args[6])
{
	for (unsigned i = 0; i < schedule.nedges; i++)
		if (edges[i].source.when == ENF_INSIDE && edges[i].source.stack && !edges[i].done &&
		    enf_same(edges[i].source.thread, c->thread->id))
			happened(&edges[i]);
	if (serial_enter)
		serial_enter(c, nr, args);
}

/* What it has not done by now it never does. */
static void at_exit(struct tr_ctx *c)
{
	for (unsigned i = 0; schedule.here && i < schedule.nedges; i++) {
		struct enf_edge *e = &edges[i];

		if (e->turn || e->meet || e->then || __atomic_load_n(&e->done, __ATOMIC_ACQUIRE) ||
		    !enf_same(e->source.thread, c->thread->id))
			continue;
		__atomic_store_n(&e->hopeless, true, __ATOMIC_RELEASE);
		raw(SYS_futex, &e->done, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 0x7fffffff);
	}
	if (serial_exit)
		serial_exit(c);
}

/*
 * The order of a thread may go on when that of another is over: what that one does then is in no order, so from there on
 * they, too, go one at a time. Else it is a race between the two how the run ends.
 */
static void behind_syscall(struct tr_ctx *c, long nr, long result)
{
	if (schedule.here && __atomic_load_n(&over, __ATOMIC_ACQUIRE))
		ctl_serial_join_late(c);
	if (serial_leave)
		serial_leave(c, nr, result);
}

static void stop_at(struct tr_ctx *c, struct enf_edge *e)
{
	if (e->then) {
		wait_then(e);
		return;
	}
	if (!e->turn) {
		wait_for(c, e);
		return;
	}
	wait_turn(c, e);
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	ctl_serial_join(c, (unsigned)(e - edges));
}

/*
 * What lies behind us has happened before we wait for anything; what is to
 * happen now, or is announced before it happens, comes after the waiting.
 */
void ctl_enforce(struct tr_ctx *c, uint64_t pc, enum ctl_at at)
{
	struct enf_edge *meeting = NULL;

	if (!schedule.here)
		return;
	for (unsigned i = 0; i < schedule.nedges; i++)
		if (edges[i].source.when != ENF_BEFORE && enf_reached(&edges[i].source, c, pc, at, true))
			happened(&edges[i]);
	for (unsigned i = 0; i < schedule.nedges; i++)
		if (enf_reached(&edges[i].target, c, pc, at, false)) {
			if (edges[i].meet)
				meeting = &edges[i];
			else
				stop_at(c, &edges[i]);
		}
	for (unsigned i = 0; i < schedule.nedges; i++)
		if (edges[i].meet && enf_reached(&edges[i].source, c, pc, at, true))
			meeting = &edges[i];
		else if (!edges[i].meet && edges[i].source.when == ENF_BEFORE && enf_reached(&edges[i].source, c, pc, at, true))
			happened(&edges[i]);
	/* Nothing may come between this and the instruction. */
	if (meeting)
		meet_here(meeting, c, pc);
}

static bool is_named(const struct tr_ctx *c)
{
	for (unsigned i = 0; i < schedule.nedges; i++)
		if (enf_same(edges[i].target.thread, c->thread->id) || enf_same(edges[i].source.thread, c->thread->id))
			return true;
	return false;
}

void ctl_enforce_start(struct tr_ctx *c)
{
	uint32_t start = ctl_module_hash(CTL_START_MODULE);
	const char *name = is_named(c) ? c->thread->id : CTL_ANY_THREAD;

	if (!schedule.here)
		return;
	if (schedule.turns)
		ctl_serial_arrive(c);
	for (unsigned i = 0; i < schedule.nedges; i++)
		if (edges[i].target.module == start && enf_same(edges[i].target.thread, name)) {
			edges[i].target.count = edges[i].target.n;
			stop_at(c, &edges[i]);
		}
	/* It begins behind the order. */
	if (schedule.turns && !is_named(c))
		ctl_serial_join(c, CTL_MAX_EDGES);
}

void ctl_enforce_end(void)
{
	if (schedule.turns)
		ctl_pct_end();
	for (unsigned i = 0; schedule.here && i < schedule.nedges; i++) {
		const struct enf_edge *e = &edges[i];

		if (e->turn)
			continue;
		if (e->source.count < e->source.n && e->source.n != CTL_NEVER)
			note(e, ": its source was never reached");
		else if (e->target.count < e->target.n)
			note(e, ": its target was never reached");
	}
}

/* native.c of the analyzer reads this note, too. What waits for the failure itself has no part in it. */
void ctl_enforce_failed(void)
{
	for (unsigned i = 0; schedule.here && i < schedule.nedges; i++) {
		const struct enf_edge *e = &edges[i];

		if (!e->turn && e->source.n != CTL_NEVER &&
		    (e->source.count < e->source.n || e->target.count < e->target.n))
			return;
	}
	if (schedule.here)
		shim_note(false, "schedule: it fails after the order");
}
