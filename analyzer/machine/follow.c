/* The scheduler of a recorded run: see follow.h. */
#include "analyzer/machine/follow.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define FORCED_TOLD 20u         /* forced loads that are named */
/* Instructions between checkpoints that are kept: at least so many, and at least this part of
 * how long ago they were. What is asked later lies near the end more often than not. */
#define KEEP_EVERY 1000000u
#define KEEP_PART 8u

/* ---- time ---- */

double run_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

bool run_out_of_time(struct mach_run *r)
{
	if (!r->asked_to_stop && r->deadline && run_seconds() > r->deadline)
		r->timed_out = r->asked_to_stop = true;
	return r->asked_to_stop;
}

/* ---- the log ---- */

void run_log(struct mach_run *r, uint32_t thread, enum action action, uint64_t insns)
{
	struct log_step *last = r->log.n > r->log_sealed ? &r->log.v[r->log.n - 1] : NULL;

	if (action == ACT_RUN && !insns)
		return;
	if (action == ACT_RUN && last && last->thread == thread && last->action == ACT_RUN) {
		last->insns += insns;
		return;
	}
	vec_push(&r->log, (struct log_step){ thread, action, insns });
}

/* ---- whose turn ---- */

static bool ticket_is_due(const struct mach_run *r, const struct thread_state *s)
{
	return s->ticket == r->tickets[s->shard];
}

/* May the thread do what it stands at, as far as the recorded orders go? */
bool run_is_due(struct mach_run *r, struct run_thread *t)
{
	switch (t->s.action) {
	case ACT_RUN:
		return true;
	case ACT_CLEAR:
		return !t->s.clear_ordered || ticket_is_due(r, &t->s);
	case ACT_ENTER:
	case ACT_LEAVE:
	case ACT_SIGNAL:
	case ACT_EXIT:
		return r->seq < r->seqs.n && r->seqs.v[r->seq].thread == t->index;
	case ACT_TICKET:
		return ticket_is_due(r, &t->s);
	default:
		return false;
	}
}

static bool is_alive(const struct run_thread *t)
{
	return t->s.life == LIFE_RUNNING || t->s.life == LIFE_IN_CALL;
}

/* What the edge asks for has not happened yet. */
static bool edge_holds(const struct mach_run *r, const struct order_edge *e)
{
	if (r->threads[e->other].s.life == LIFE_ENDED)
		return false;
	if (e->other_insn == EDGE_LAZY)
		return !r->lazy_go && mach_thread_insns(r, e->thread) <= e->insn;
	return mach_thread_insns(r, e->other) < e->other_insn;
}

/* How far a thread may run: edges of the search restrict it. */
static uint64_t edge_limit(const struct mach_run *r, const struct run_thread *t)
{
	uint64_t limit = UINT64_MAX;

	for (size_t i = 0; i < r->edges.n; i++) {
		const struct order_edge *e = &r->edges.v[i];

		if (e->thread == t->index && e->insn < limit && edge_holds(r, e))
			limit = e->insn;
	}
	return limit;
}

/* Where others wait for this thread: stop there, they may go on. */
static uint64_t waited_for(const struct mach_run *r, const struct run_thread *t, uint64_t now)
{
	uint64_t at = UINT64_MAX;

	for (size_t i = 0; i < r->edges.n; i++) {
		const struct order_edge *e = &r->edges.v[i];

		if (e->other == t->index && e->other_insn > now && e->other_insn < at)
			at = e->other_insn;
	}
	return at;
}

static bool can_go(struct mach_run *r, struct run_thread *t)
{
	return is_alive(t) && run_is_due(r, t) &&
	       mach_thread_insns(r, t->index) < edge_limit(r, t);
}

/* Stands right behind an edge: what it waited for has just happened. */
static bool was_waiting(const struct mach_run *r, const struct run_thread *t)
{
	uint64_t now;

	if (!r->edges.n)
		return false;
	now = mach_thread_insns(r, t->index);
	for (size_t i = 0; i < r->edges.n; i++)
		if (r->edges.v[i].thread == t->index && r->edges.v[i].insn == now)
			return true;
	return false;
}

/* What the thread's clock shows. */
uint64_t run_clock_now(const struct mach_run *r, const struct run_thread *t)
{
	const struct thread_state *s = &t->s;
	uint64_t next = run_head_time(t), now;

	if (was_waiting(r, t) || s->action == ACT_CLEAR)
		return 0;
	if (s->action != ACT_RUN && s->action != ACT_TICKET)
		return next; /* at a record with a timestamp */
	now = s->clock_tsc + (((mach_thread_insns(r, t->index) - s->clock_insn) * s->clock_rate) >> 8);
	return now < next ? now : next;
}

#define SLACK 3000u       /* ticks: how much clocks may be apart before it matters */
#define LEAST_TURN 300u   /* instructions */
#define LONGEST_TURN 100000u

#define NEAR_MARK 64u     /* bytes of path: so near a timestamp ... */
#define NEAR_TURN 20u     /* ... turns are short: behind it others may be due */

/* Times that a hunt without tickets takes at shared loads lie close together. */
static bool is_near_mark(struct run_thread *t)
{
	const struct trc_rec *head = run_head(t);

	return head && head->type == TRC_TIME &&
	       ((const struct trc_time *)head)->path_pos < t->s.cursor.pos + NEAR_MARK;
}

/* Whom an edge makes the thread wait for here; NULL: nobody. */
static struct run_thread *held_by(struct mach_run *r, const struct run_thread *t)
{
	uint64_t now = mach_thread_insns(r, t->index);

	for (size_t i = 0; i < r->edges.n; i++) {
		const struct order_edge *e = &r->edges.v[i];

		if (e->thread == t->index && e->insn <= now && edge_holds(r, e))
			return &r->threads[e->other];
	}
	return NULL;
}

/*
 * The earliest thread waits at an edge: whoever it waits for goes next, so that
 * the others do not run ahead meanwhile.
 */
static struct run_thread *on_behalf_of_earliest(struct mach_run *r)
{
	struct run_thread *best = NULL;
	uint64_t first = 0;

	if (!r->edges.n)
		return NULL;
	for (size_t i = 0; i < r->nthreads; i++) {
		struct run_thread *t = &r->threads[i];

		if (is_alive(t) && run_is_due(r, t) && (!best || run_clock_now(r, t) < first)) {
			best = t;
			first = run_clock_now(r, t);
		}
	}
	if (!best || can_go(r, best))
		return NULL;
	for (size_t hops = 0; best && !can_go(r, best) && hops < r->nthreads; hops++)
		best = held_by(r, best);
	return best && can_go(r, best) ? best : NULL;
}

/* The one with the earliest clock among those that can go on; NULL: nobody can. */
static struct run_thread *choose_earliest(struct mach_run *r, uint64_t *insns)
{
	struct run_thread *best = NULL;
	uint64_t first = 0, second = UINT64_MAX;

	*insns = LONGEST_TURN;
	best = on_behalf_of_earliest(r);
	if (best)
		return best;
	for (size_t i = 0; i < r->nthreads; i++) {
		struct run_thread *t = &r->threads[i];
		uint64_t time;

		if (!can_go(r, t))
			continue;
		time = run_clock_now(r, t);
		if (!best || time < first) {
			second = best ? first : second;
			best = t;
			first = time;
		} else if (time < second) {
			second = time;
		}
	}
	if (best && second != UINT64_MAX && first) {
		uint64_t n = ((second - first + SLACK) << 8) / (best->s.clock_rate | 1);

		*insns = n < LEAST_TURN ? LEAST_TURN : n > LONGEST_TURN ? LONGEST_TURN : n;
	}
	if (best && is_near_mark(best))
		*insns = NEAR_TURN;
	return best;
}

/* The thread that should go on now, and for how long. */
static struct run_thread *choose(struct mach_run *r, uint64_t *insns)
{
	struct run_thread *t;

	*insns = UINT64_MAX;
	if (r->nthreads == 1)
		return can_go(r, &r->threads[0]) ? &r->threads[0] : NULL;
	r->lazy_go = false;
	t = choose_earliest(r, insns);
	if (t || !r->edges.n)
		return t;
	r->lazy_go = true;
	return choose_earliest(r, insns);
}

/* ---- going on ---- */

/* The ordered access the thread stands at, if any, may be executed now. */
bool run_take_ticket(struct mach_run *r, struct run_thread *t)
{
	if (t->s.action != ACT_TICKET)
		return false;
	r->tickets[t->s.shard] = t->s.ticket + 1;
	t->s.item++;
	r->res.locked++;
	return true;
}

enum action run_turn(struct mach_run *r, struct run_thread *t, uint64_t insns)
{
	uint64_t now = mach_thread_insns(r, t->index), limit, wanted, before;
	bool granted;
	enum action a = t->s.action;

	if (a != ACT_RUN && a != ACT_TICKET) {
		run_log(r, t->index, a, 0);
		return run_perform(r, t);
	}
	granted = run_take_ticket(r, t);
	limit = edge_limit(r, t);
	wanted = waited_for(r, t, now);
	if (wanted < limit)
		limit = wanted;
	if (insns < UINT64_MAX - now && now + insns < limit)
		limit = now + insns;
	if (r->o.until_insn > now && r->o.until_thread == t->index && r->o.until_insn < limit)
		limit = r->o.until_insn;
	run_switch(r, t->index);
	before = r->m->insns;
	a = run_thread_go(r, t, limit, granted);
	run_log(r, t->index, ACT_RUN, r->m->insns - before);
	return a;
}

static bool until_reached(const struct mach_run *r)
{
	const struct mach_options *o = &r->o;

	if (o->until_insn && o->until_thread < r->nthreads &&
	    mach_thread_insns(r, o->until_thread) >= o->until_insn)
		return true;
	return o->max_insns && r->time >= o->max_insns;
}

/* All threads of a recorded deadlock or hang stand where their records end. */
static bool deadlock_reached(struct mach_run *r)
{
	const struct trc_failure *f = r->t->failure;
	struct run_thread *t;

	if (!f || (f->rec.flags != TRC_FAIL_DEADLOCK && f->rec.flags != TRC_FAIL_HANG))
		return false;
	for (size_t i = 0; i < r->t->blocked.n; i++) {
		uint32_t index = r->t->blocked.v[i]->thread;

		if (index >= r->nthreads)
			return false;
		t = &r->threads[index];
		if (!is_alive(t) || t->s.action != ACT_END || !run_ended(t))
			return false;
	}
	return r->t->blocked.n > 0;
}

static void end_at(struct mach_run *r, enum mach_end end, uint32_t thread)
{
	r->res.end = end;
	r->res.thread = thread;
	if (thread != NO_THREAD && thread < r->nthreads) {
		run_switch(r, thread);
		r->res.pc = r->m->frame->g.guest_RIP;
	}
}

static bool waits(const struct run_thread *t)
{
	return is_alive(t) && t->s.action != ACT_END && t->s.action != ACT_FAILURE;
}

static bool somebody_waits(const struct mach_run *r)
{
	for (size_t i = 0; i < r->nthreads; i++)
		if (waits(&r->threads[i]))
			return true;
	return false;
}

/* No thread can go on: the record ends here, or the orders contradict each other. */
static enum mach_end stuck(struct mach_run *r)
{
	if (deadlock_reached(r)) {
		uint32_t index = r->t->failure->thread;

		verdict_failure(r, &r->threads[index < r->nthreads ? index : 0]);
		return MACH_END_FAILURE;
	}
	for (size_t i = 0; i < r->nthreads; i++) {
		struct run_thread *t = &r->threads[i];

		if (waits(t)) {
			if (search_complain(r))
				return MACH_END_DIVERGED;
			run_say(r, "%s waits for its turn at 0x%" PRIx64 " (action %d), which never comes",
				trc_thread_id(r->t, (uint32_t)i),
				(uint64_t)(r->current == i ? r->m->frame->g.guest_RIP :
							     t->s.cpu.g.guest_RIP),
				t->s.action);
			return MACH_END_DIVERGED;
		}
	}
	run_say(r, "the record ends here");
	/* A program that became another one ended as recorded. */
	return r->t->end && r->t->end->rec.flags == 2 ? MACH_END_EXIT : MACH_END_PATH;
}

static bool has_ticket(const struct run_thread *t)
{
	return t->s.action == ACT_TICKET || (t->s.action == ACT_CLEAR && t->s.clear_ordered);
}

/*
 * A thread that was killed between taking a ticket and noting it leaves a gap
 * that nobody will fill. Only when nobody can go on, and no try is to blame.
 */
static bool skip_lost_ticket(struct mach_run *r)
{
	struct run_thread *best = NULL;
	bool ended = false;

	if (r->edges.n)
		return false;
	for (size_t i = 0; i < r->nthreads; i++) {
		struct run_thread *t = &r->threads[i];

		ended |= is_alive(t) && t->s.action == ACT_END;
		if (is_alive(t) && has_ticket(t) && t->s.ticket > r->tickets[t->s.shard] &&
		    (!best || run_clock_now(r, t) < run_clock_now(r, best)))
			best = t;
	}
	if (!best || !ended)
		return false;
	r->tickets[best->s.shard] = best->s.ticket;
	run_undetermined(r, "an access that was ordered before one of %s, by a thread whose record "
			 "ends there", trc_thread_id(r->t, best->index));
	return true;
}

/* The first stays: the beginning of the run. */
static void thin_checkpoints(struct mach_run *r)
{
	size_t n = 1;

	for (size_t i = 1; i < r->checkpoints.n; i++) {
		struct checkpoint *c = r->checkpoints.v[i];
		const struct checkpoint *next = i + 1 < r->checkpoints.n ? r->checkpoints.v[i + 1] : NULL;

		if (next && next->time - r->checkpoints.v[n - 1]->time < (r->time - c->time) / KEEP_PART)
			checkpoint_free(r, c);
		else
			r->checkpoints.v[n++] = c;
	}
	r->checkpoints.n = n;
}

static void keep_checkpoint(struct mach_run *r)
{
	if (r->checkpoints.n && r->time - r->checkpoints.v[r->checkpoints.n - 1]->time < KEEP_EVERY)
		return;
	if (!r->checkpoints.n || r->o.keep_checkpoints)
		vec_push(&r->checkpoints, checkpoint_take(r));
	thin_checkpoints(r);
}

/* Follows to the end, or to a mismatch that no order resolves. */
static void follow(struct mach_run *r)
{
	for (;;) {
		struct run_thread *t;
		enum action a;
		uint64_t insns;

		if (r->asked_to_stop || until_reached(r)) {
			bool until = r->until_pc_reached || (!r->asked_to_stop && r->o.until_insn);

			run_say(r, r->timed_out ? "the time limit was reached" : "stopped as asked");
			end_at(r, until ? MACH_END_UNTIL : MACH_END_STOPPED, r->current);
			return;
		}
		keep_checkpoint(r);
		search_checkpoint(r);
		t = choose(r, &insns);
		if (!t) {
			if (somebody_waits(r) && (search_stuck(r) || skip_lost_ticket(r)))
				continue;
			end_at(r, stuck(r), r->current);
			return;
		}
		a = run_turn(r, t, insns);
		if (run_fault_missed(r, t))
			a = run_mismatch(r, r->t->failure->regs[TRC_RIP], MISSED_FAULT,
					 r->t->failure->signal);
		if (a == ACT_FAILURE) {
			verdict_failure(r, t);
			end_at(r, MACH_END_FAILURE, t->index);
			return;
		}
		if (a == ACT_STOPPED) {
			end_at(r, r->stop_end, t->index);
			return;
		}
		if (a == ACT_MISMATCH && !search_resolve(r, t) && !r->asked_to_stop) {
			end_at(r, MACH_END_DIVERGED, t->index);
			return;
		}
	}
}

static void describe_divergence(struct mach_run *r)
{
	char *place, *why;

	if (r->res.end != MACH_END_DIVERGED || r->res.thread == NO_THREAD)
		return;
	why = r->why ? r->why : xstrdup("");
	place = run_place(r, r->mismatch_pc ? r->mismatch_pc : r->res.pc);
	r->why = xasprintf("%s at %s, its instruction %" PRIu64 ": %s",
			   trc_thread_id(r->t, r->res.thread), place,
			   mach_thread_insns(r, r->res.thread), why);
	free(place);
	free(why);
}

/* A load in a loop is told once. */
static void tell_forced(struct mach_run *r)
{
	size_t told = r->undetermined.n + FORCED_TOLD;

	for (size_t i = 0; i < r->forced.n; i++) {
		const struct mach_forced *f = &r->forced.v[i];
		char *place, *what;

		if (r->undetermined.n >= told) {
			run_undetermined(r, "%zu forced loads in all", r->forced.n);
			return;
		}
		place = img_symbol_text(r->images, f->pc);
		what = img_symbol_text(r->images, f->address);
		if (f->logged)
			run_undetermined(r, "%s's load of %s at %s saw 0x%" PRIx64
					 " where no order that was tried gives it",
					 trc_thread_id(r->t, f->thread), what, place, f->value);
		else
			run_undetermined(r, "what %s's load of %s at %s saw: 0x%" PRIx64
					 " follows the record, no order that was tried does",
					 trc_thread_id(r->t, f->thread), what, place, f->value);
		free(place);
		free(what);
	}
}

static bool is_exact(const struct mach_result *res)
{
	bool end = res->end == MACH_END_EXIT ||
		   (res->end == MACH_END_FAILURE && res->same_thread && res->same_pc && res->same_kind);

	return end && res->output_identical && !res->nundetermined && !res->final_differ &&
	       (!res->ndiffer || (res->ndiffer == 1 && !strcmp(res->differ[0].name, "rflags")));
}

static void publish(struct mach_run *r, struct mach_result *out)
{
	struct mach_result *res = &r->res;

	if (r->why && res->end != MACH_END_EXIT && res->end != MACH_END_FAILURE)
		res->why = xstrdup(r->why);
	res->insns = r->time;
	res->native_insns = r->m->native_insns;
	res->nundetermined = r->undetermined.n;
	res->undetermined = xcalloc(r->undetermined.n + 1, sizeof(char *));
	for (size_t i = 0; i < r->undetermined.n; i++)
		res->undetermined[i] = xstrdup(r->undetermined.v[i]);
	res->nnotes = r->notes.n;
	res->notes = xcalloc(r->notes.n + 1, sizeof(char *));
	for (size_t i = 0; i < r->notes.n; i++)
		res->notes[i] = xstrdup(r->notes.v[i]);
	res->exact = is_exact(res);
	*out = *res;
}

err_t mach_follow(struct mach_run *r, struct mach_result *out)
{
	double start = run_seconds();

	if (r->followed)
		return err_new(ERR_INTERNAL, "a run is followed once");
	r->followed = true;
	r->deadline = r->o.timeout > 0 ? start + r->o.timeout : 0;
	r->res.output_identical = true;
	r->res.failure_recorded = r->t->failure != NULL;
	follow(r);
	r->length = r->time;
	if (r->res.end == MACH_END_EXIT)
		verdict_final_memory(r);
	describe_divergence(r);
	search_end(r);
	run_settle(r);
	run_forces_publish(r);
	tell_forced(r);
	r->res.forced = r->forced.n;
	r->res.seconds = run_seconds() - start;
	publish(r, out);
	return NULL;
}

void mach_result_free(struct mach_result *res)
{
	for (size_t i = 0; i < res->nundetermined; i++)
		free(res->undetermined[i]);
	for (size_t i = 0; i < res->nnotes; i++)
		free(res->notes[i]);
	free(res->undetermined);
	free(res->notes);
	free(res->why);
	*res = (struct mach_result){ 0 };
}
