/*
 * Whose turn it is while a recorded run is followed: of the threads whose next ordered point is due
 * the one whose clock shows the earliest time (follow.h).
 */
#include "analyzer/follow/follow.h"

static bool ticket_is_due(const struct mach_run *r, const struct thread_state *s)
{
	return s->ticket == r->tickets[s->shard];
}

/* May the thread do what it stands at, as far as the recorded orders go? */
bool run_is_due(const struct mach_run *r, const struct run_thread *t)
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
	case ACT_STOP:
		return r->seq < r->ncalls && r->calls[r->seq] == t->index;
	case ACT_TICKET:
		return ticket_is_due(r, &t->s);
	default:
		return false;
	}
}

/* Somebody else has something to do before the thread's next timestamp. */
static bool is_early(const struct mach_run *r, const struct run_thread *t)
{
	uint64_t next = run_head_time(t);

	for (size_t i = 0; i < r->nthreads; i++) {
		const struct run_thread *o = &r->threads[i];

		if (o != t && run_alive(o) && !o->s.waiting && run_is_due(r, o) && run_clock_now(r, o) < next)
			return true;
	}
	return false;
}

/* What the edge asks for has not happened yet. */
static bool edge_holds(const struct mach_run *r, const struct order_edge *e)
{
	if (r->threads[e->other].s.life == LIFE_ENDED)
		return false;
	if (e->other_insn == EDGE_LAZY)
		return !r->lazy_go && !r->threads[e->other].s.waiting &&
		       mach_thread_insns(r, e->thread) <= e->insn;
	if (e->other_insn == EDGE_LATE)
		return !r->lazy_go && mach_thread_insns(r, e->thread) <= e->insn && is_early(r, &r->threads[e->thread]);
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

/* Or where others wait for it: it stops there, they may go on. */
uint64_t run_turn_limit(const struct mach_run *r, const struct run_thread *t)
{
	uint64_t at = edge_limit(r, t), now = mach_thread_insns(r, t->index);

	for (size_t i = 0; i < r->edges.n; i++) {
		const struct order_edge *e = &r->edges.v[i];

		if (e->other == t->index && e->other_insn > now && e->other_insn < at)
			at = e->other_insn;
	}
	return at;
}

static bool can_go(struct mach_run *r, struct run_thread *t)
{
	return run_alive(t) && !t->s.waiting && run_is_due(r, t) &&
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

/* What the thread's clock shows, between records a guess. */
static uint64_t estimate(const struct mach_run *r, const struct run_thread *t)
{
	const struct thread_state *s = &t->s;
	uint64_t next = run_head_time(t), now;

	if (s->action != ACT_RUN && s->action != ACT_TICKET)
		return next; /* at a record with a timestamp */
	now = run_clock_between(t);
	if (!now)
		now = s->clock_tsc +
		      (((mach_thread_insns(r, t->index) - s->clock_insn) * s->clock_rate) >> 8);
	return now < next ? now : next;
}

/* Likewise; 0: it goes first. */
uint64_t run_clock_now(const struct mach_run *r, const struct run_thread *t)
{
	return was_waiting(r, t) || t->s.action == ACT_CLEAR ? 0 : estimate(r, t);
}

static void clock_at_least(struct mach_run *r, struct run_thread *t, uint64_t tsc)
{
	if (tsc > estimate(r, t) && tsc < run_head_time(t))
		run_clock_set(t, mach_thread_insns(r, t->index), tsc);
}

/* It comes after what it waited for: its clock cannot show less than the other's. */
void run_clock_by_edges(struct mach_run *r, struct run_thread *t)
{
	uint64_t now = mach_thread_insns(r, t->index);

	for (size_t i = 0; i < r->edges.n; i++) {
		const struct order_edge *e = &r->edges.v[i];
		const struct run_thread *other = &r->threads[e->other];

		if (e->thread == t->index && e->insn == now && !EDGE_IS_OPEN(e) &&
		    other->s.life == LIFE_RUNNING)
			clock_at_least(r, t, estimate(r, other));
	}
}

#define LEAST_TURN 300u   /* instructions */

/* Ticks / 256 an instruction of the thread, whose clock shows `now`, has been taking lately. */
static uint64_t speed_of(const struct mach_run *r, const struct run_thread *t, uint64_t now)
{
	uint64_t insns = mach_thread_insns(r, t->index) - t->s.clock_insn;

	if (insns < LEAST_TURN || now <= t->s.clock_tsc)
		return t->s.clock_rate | 1;
	return (((now - t->s.clock_tsc) << 8) / insns) | 1;
}

#define SLACK 3000u       /* ticks: how much clocks may be apart before it matters */
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

static uint64_t min_time(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The earliest clock of those that wait for the ticket the thread stands at; UINT64_MAX: nobody. */
static uint64_t time_of_next(struct mach_run *r, const struct run_thread *t)
{
	uint64_t first = UINT64_MAX;

	if (t->s.action != ACT_TICKET)
		return first;
	for (size_t i = 0; i < r->nthreads; i++) {
		const struct run_thread *o = &r->threads[i];

		if (run_alive(o) && o->s.action == ACT_TICKET && o->s.shard == t->s.shard &&
		    o->s.ticket == t->s.ticket + 1)
			first = min_time(first, run_clock_now(r, o));
	}
	return first;
}

/* The one with the earliest clock among those that can go on; NULL: nobody can. */
static struct run_thread *choose_earliest(struct mach_run *r, uint64_t *insns)
{
	struct run_thread *best = NULL;
	uint64_t first = 0, second = UINT64_MAX;

	*insns = LONGEST_TURN;
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
	if (best)
		second = min_time(second, time_of_next(r, best));
	if (best && second != UINT64_MAX && first) {
		uint64_t n = second + SLACK < first ? 0 :
			     ((second - first + SLACK) << 8) / speed_of(r, best, first);

		/* Whoever its ticket lets go on was there before it. */
		*insns = second + SLACK < first ? 1 :
			 n < LEAST_TURN ? LEAST_TURN : n > LONGEST_TURN ? LONGEST_TURN : n;
	}
	if (best && is_near_mark(best))
		*insns = NEAR_TURN;
	return best;
}

struct run_thread *run_choose(struct mach_run *r, uint64_t *insns)
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

/* It comes after the last ticket of its shard: its clock cannot show less than that one's did. */
static void clock_by_ticket(struct mach_run *r, struct run_thread *t)
{
	uint64_t *last = &r->ticket_times[t->s.shard], now = estimate(r, t);

	if (now >= *last)
		*last = now;
	else
		clock_at_least(r, t, *last);
}

/* The ordered access the thread stands at, if any, may be executed now. */
bool run_take_ticket(struct mach_run *r, struct run_thread *t)
{
	if (t->s.action != ACT_TICKET)
		return false;
	clock_by_ticket(r, t);
	if (r->tickets[t->s.shard] <= t->s.ticket)
		r->tickets[t->s.shard] = t->s.ticket + 1;
	t->s.item++;
	r->res.locked++;
	return true;
}
