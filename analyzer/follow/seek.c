/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Moving about in the committed order, forwards and backwards, and looking for the next place of interest.
 *
 * The run stands at a time t of the run when exactly t instructions of the order are executed and everything
 * between them and the next one has happened (results of system calls, signals, ends of threads). Going
 * back is going forward from a saved state: those kept while following, and *seats* that are taken on
 * the way here, the closer together the nearer they are to where the run stands.
 *
 * All of this runs with hooks (empty ones): tickets and logged loads were settled when the run was followed.
 */
#include "analyzer/follow/follow.h"

#include <string.h>

#define SEATS 48u           /* saved states that are kept here */
#define SEAT_EVERY 250000u  /* instructions between two of them, at least: a few milliseconds of execution */

struct seat {
	struct checkpoint *state;
	size_t log;    /* the step it stands in ... */
	uint64_t done; /* ... of which so many instructions are executed */
};

struct run_seek {
	size_t log;
	uint64_t done;
	bool there; /* log and done are where the run stands */
	struct seat seats[SEATS];
	size_t nseats; /* by time */
	const struct mach_sight *sight; /* while mach_look() executes */
	struct mach_pcs pcs;
	bool seen;   /* and that is far enough */
	bool coarse; /* only whether there is something to be seen is of interest */
};

static const struct mach_hooks no_hooks;

/* An instruction is executed by the step; what the other steps do takes no time. */
static bool takes_time(const struct log_step *s)
{
	return run_step_insns(s) > 0;
}

static bool is_run(const struct log_step *s)
{
	return s->action == ACT_RUN || s->action == ACT_ORDER_RUN;
}

static uint64_t here(const struct mach_run *r)
{
	return r->time + (r->m->insns - r->stretch);
}

/* ---- what is looked for ---- */

static bool tell(struct mach_run *r, const struct mach_seen *seen)
{
	struct run_seek *k = r->seek;

	if (!k->seen)
		k->seen = k->coarse || k->sight->seen(k->sight->arg, seen);
	return k->seen;
}

bool run_sight_stops(struct mach_run *r, struct run_thread *t)
{
	uint64_t pc = r->m->frame->g.guest_RIP;
	struct mach_seen seen = { .time = here(r), .thread = t->index, .pc = pc };

	if (!r->seek || !r->seek->sight || !mach_pcs_have(&r->seek->pcs, pc))
		return false;
	return tell(r, &seen);
}

bool run_sight_pcs(const struct mach_run *r)
{
	return r->seek && r->seek->sight && r->seek->pcs.n;
}

static void look_at(struct mach_run *r, const struct mach_seen *seen, unsigned size)
{
	const struct mach_sight *s = r->seek->sight;

	for (size_t i = 0; i < s->nspans; i++) {
		const struct mach_span *span = &s->spans[i];

		if ((span->how & seen->how) && seen->address < span->hi && seen->address + size > span->lo) {
			struct mach_seen hit = *seen;

			hit.span = i;
			tell(r, &hit);
			return;
		}
	}
}

static void on_access(void *arg, struct mach *m, uint64_t pc, uint64_t address, unsigned size, unsigned how,
		      uint64_t value)
{
	struct mach_run *r = arg;
	uint64_t insn = m->insns + (m->now_op ? m->now_op->insn : 0);
	struct mach_seen seen = { .time = r->time + (insn - r->stretch), .thread = r->current, .access = true,
				  .how = how & (ACCESS_READ | ACCESS_WRITE), .pc = pc, .address = address };

	(void)value;
	look_at(r, &seen, size);
	if (r->seek->seen)
		m->stop_asked = true;
}

/* The kernel's: between two instructions, so the first moment at which they can be seen is now. */
static expr_id on_kernel_access(void *arg, const struct mach_access *a, expr_id value)
{
	struct mach_run *r = arg;
	struct mach_seen seen = { .time = r->time ? r->time - 1 : 0, .thread = a->thread, .access = true, .kernel = true,
				  .how = a->flags & (MACH_READ | MACH_WRITE), .pc = a->pc, .address = a->address };

	(void)value;
	if (a->flags & MACH_KERNEL)
		look_at(r, &seen, a->size);
	return EXPR_NONE;
}

/* ---- executing the order from where the run stands ---- */

/* So many instructions of a thread's step; fewer when something was seen or somebody asked to stop. */
static err_t run_part(struct mach_run *r, const struct log_step *s, uint64_t insns, uint64_t *executed)
{
	struct run_thread *t = &r->threads[s->thread];
	uint64_t start = mach_thread_insns(r, t->index), target = start + insns;
	err_t bad = NULL;

	if (run_is_of_order(s)) {
		bad = r->order.part(r, s->thread, insns);
		*executed = mach_thread_insns(r, t->index) - start;
		return bad;
	}
	r->by_log = true;
	while (!bad && mach_thread_insns(r, t->index) < target) {
		bool granted = run_take_ticket(r, t);
		enum action a = run_thread_go(r, t, target, granted);

		if (mach_thread_insns(r, t->index) >= target || r->asked_to_stop || r->seek->seen)
			break;
		if (a != ACT_RUN && a != ACT_TICKET)
			bad = err_new(ERR_INTERNAL, "executing the committed order again went another way%s%s",
				      r->why ? ": " : "", r->why ? r->why : "");
	}
	r->by_log = false;
	*executed = mach_thread_insns(r, t->index) - start;
	return bad;
}

static void keep_seat(struct mach_run *r);

/* Brings the thread to where it does what the step says; false: something was seen on the way. */
static bool approach(struct mach_run *r, struct run_thread *t, const struct log_step *s)
{
	if (t->s.action != ACT_RUN || run_is_of_order(s)) {
		/* It was there before anybody looked. */
		if (run_sight_pcs(r) && takes_time(s)) {
			run_switch(r, t->index);
			r->stretch = r->m->insns;
			return !run_sight_stops(r, t);
		}
		return true;
	}
	if (s->action == ACT_SIGNAL)
		run_approach_signal(r, t);
	run_thread_go(r, t, UINT64_MAX, false);
	return !r->asked_to_stop;
}

/* Until time `to`, or less when something was seen; takes seats on the way. */
static err_t go_on(struct mach_run *r, uint64_t to)
{
	struct run_seek *k = r->seek;
	uint64_t executed;

	while (k->log < r->log.n && !k->seen && !r->asked_to_stop) {
		const struct log_step s = r->log.v[k->log];

		if (takes_time(&s) && r->time >= to)
			break;
		keep_seat(r);
		if (!is_run(&s)) {
			if (!approach(r, &r->threads[s.thread], &s))
				break;
			TRY(run_log_step(r, &s));
			k->log++;
			continue;
		}
		uint64_t left = s.insns - k->done, want = to - r->time < left ? to - r->time : left;

		if (want > SEAT_EVERY)
			want = SEAT_EVERY;
		TRY(run_part(r, &s, want, &executed));
		k->done += executed;
		if (k->done >= s.insns) {
			k->log++;
			k->done = 0;
		}
	}
	return NULL;
}

/* ---- saved states ---- */

static void drop_seat(struct mach_run *r, size_t i)
{
	struct run_seek *k = r->seek;

	checkpoint_free(r, k->seats[i].state);
	memmove(&k->seats[i], &k->seats[i + 1], (--k->nseats - i) * sizeof *k->seats);
}

/* Makes room: of all neighbours those two stand closest together in proportion to how far away they are. */
static void thin_seats(struct mach_run *r, uint64_t now)
{
	struct run_seek *k = r->seek;
	size_t worst = 0;
	double least = 0;

	for (size_t i = 0; i + 1 < k->nseats; i++) {
		uint64_t a = k->seats[i].state->time, b = k->seats[i + 1].state->time;
		double gap = (double)(b - a), away = (double)(now > b ? now - b : a > now ? a - now : 0) + SEAT_EVERY;

		if (!i || gap / away < least) {
			least = gap / away;
			worst = i;
		}
	}
	drop_seat(r, worst);
}

static void keep_seat(struct mach_run *r)
{
	struct run_seek *k = r->seek;
	uint64_t now = r->time;
	size_t at = 0;

	while (at < k->nseats && k->seats[at].state->time <= now)
		at++;
	if ((at && now - k->seats[at - 1].state->time < SEAT_EVERY) ||
	    (at < k->nseats && k->seats[at].state->time - now < SEAT_EVERY))
		return;
	if (k->nseats == SEATS) {
		thin_seats(r, now);
		for (at = 0; at < k->nseats && k->seats[at].state->time <= now; at++)
			;
	}
	memmove(&k->seats[at + 1], &k->seats[at], (k->nseats++ - at) * sizeof *k->seats);
	k->seats[at] = (struct seat){ checkpoint_take(r), k->log, k->done };
}

static void restore(struct mach_run *r, const struct checkpoint *c, size_t log, uint64_t done)
{
	size_t keep = r->log.n;

	checkpoint_restore(r, c);
	r->log.n = r->log_sealed = keep; /* the committed order stays */
	r->seek->log = log;
	r->seek->done = done;
	r->seek->there = true;
}

/* The latest saved state before that time, unless the run stands closer. */
static err_t go_back(struct mach_run *r, uint64_t time)
{
	struct run_seek *k = r->seek;
	const struct checkpoint *best = NULL;
	struct seat *seat = NULL;

	for (size_t i = 0; i < r->checkpoints.n; i++)
		if (r->checkpoints.v[i]->time <= time && (!best || r->checkpoints.v[i]->time > best->time))
			best = r->checkpoints.v[i];
	for (size_t i = 0; i < k->nseats; i++)
		if (k->seats[i].state->time <= time && (!best || k->seats[i].state->time > best->time)) {
			seat = &k->seats[i];
			best = seat->state;
		}
	if (k->there && r->time <= time && (!best || r->time >= best->time))
		return NULL;
	if (!best)
		return err_new(ERR_INTERNAL, "the run has not been followed yet");
	if (seat)
		restore(r, seat->state, seat->log, seat->done);
	else
		restore(r, best, best->log, 0);
	return NULL;
}

/* ---- what callers see ---- */

static void prepare(struct mach_run *r)
{
	if (!r->seek)
		r->seek = xcalloc(1, sizeof *r->seek);
	r->seek->seen = false;
	r->hooks = &no_hooks;
	r->hooks_from = 0;
	r->free = false;
	r->edges.n = 0;
	r->deadline = 0;
	r->asked_to_stop = r->timed_out = false;
}

/* Whoever executes the run in another way meanwhile leaves it somewhere else. */
void run_seek_lost(struct mach_run *r)
{
	if (r->seek)
		r->seek->there = false;
}

err_t mach_seek(struct mach_run *r, uint64_t time)
{
	prepare(r);
	if (time > r->length)
		time = r->length;
	TRY(go_back(r, time));
	TRY(go_on(r, time));
	run_settle(r);
	r->hooks = NULL;
	return NULL;
}

/* Every access is told. */
static err_t look_closely(struct mach_run *r, uint64_t to)
{
	struct mach_hooks kernel = { .arg = r, .access = on_kernel_access };
	err_t bad;

	r->hooks = &kernel;
	r->m->access = on_access;
	r->m->access_arg = r;
	bad = go_on(r, to);
	r->m->access = NULL;
	r->hooks = &no_hooks;
	return bad;
}

/*
 * Telling every access makes the engine several times as slow. So a stretch is executed at full speed first, and
 * memory notices whether anything watched was accessed at all; only such a stretch is executed again and watched.
 */
static err_t look_at_spans(struct mach_run *r, uint64_t to)
{
	const struct mach_sight *s = r->seek->sight;
	struct mem_watch *watched = xcalloc(s->nspans, sizeof *watched);
	err_t bad = NULL;

	for (size_t i = 0; i < s->nspans; i++)
		watched[i] = (struct mem_watch){ s->spans[i].lo, s->spans[i].hi, s->spans[i].how & MACH_READ,
						 s->spans[i].how & MACH_WRITE };
	while (!bad && r->time < to && r->seek->log < r->log.n && !r->seek->seen && !r->asked_to_stop) {
		uint64_t stretch = to - r->time < SEAT_EVERY ? to : r->time + SEAT_EVERY;
		struct seat begin = { checkpoint_take(r), r->seek->log, r->seek->done };

		mem_watch(r->m->mem, watched, s->nspans);
		r->seek->coarse = true;
		bad = go_on(r, stretch);
		bool anything = r->m->mem->touched || r->seek->seen;

		r->seek->coarse = false;
		mem_watch(r->m->mem, NULL, 0);
		if (!bad && anything && (r->seek->seen || !r->asked_to_stop)) {
			restore(r, begin.state, begin.log, begin.done);
			r->seek->seen = r->asked_to_stop = false;
			bad = look_closely(r, stretch);
		}
		checkpoint_free(r, begin.state);
	}
	free(watched);
	return bad;
}

err_t mach_look(struct mach_run *r, uint64_t to, const struct mach_sight *s)
{
	err_t bad;

	if (!r->seek || !r->seek->there)
		TRY(mach_seek(r, r->time));
	prepare(r);
	to = to < r->length ? to : r->length;
	r->seek->sight = s;
	r->seek->pcs = (struct mach_pcs){ s->pcs, s->npcs };
	if (s->npcs)
		mach_set_breaks(r->m, s->pcs, s->npcs);
	bad = s->nspans ? look_at_spans(r, to) : go_on(r, to);
	run_settle(r);
	r->hooks = NULL;
	r->seek->sight = NULL;
	if (s->npcs)
		mach_set_breaks(r->m, NULL, 0);
	return bad;
}

uint32_t mach_next_thread(const struct mach_run *r)
{
	for (size_t i = r->seek ? r->seek->log : r->log.n; i < r->log.n; i++)
		if (takes_time(&r->log.v[i]))
			return r->log.v[i].thread;
	return r->res.thread;
}

bool mach_position_time(const struct mach_run *r, uint32_t thread, uint64_t insn, uint64_t *time)
{
	uint64_t now = 0, of_thread = 0;

	if (!insn) {
		*time = 0;
		return thread < r->nthreads;
	}
	for (size_t i = 0; i < r->log.n; i++) {
		const struct log_step *s = &r->log.v[i];
		uint64_t n = run_step_insns(s);

		if (s->thread == thread && of_thread + n >= insn) {
			*time = now + (insn - of_thread);
			return true;
		}
		now += n;
		if (s->thread == thread)
			of_thread += s->action == ACT_ORDER_AGAIN ? -(uint64_t)s->insns : n;
	}
	return false;
}

bool mach_thread_time(const struct mach_run *r, uint32_t thread, uint64_t from, bool back, uint64_t *time)
{
	uint64_t now = 0;
	bool found = false;

	for (size_t i = 0; i < r->log.n; i++) {
		const struct log_step *s = &r->log.v[i];
		uint64_t n = run_step_insns(s);

		if (n && s->thread == thread) {
			/* Its instructions in this step begin at the times [now, now + n). */
			if (back && now < from) {
				*time = now + n <= from ? now + n - 1 : from - 1;
				found = true;
			}
			if (!back && now + n > from) {
				*time = now >= from ? now : from;
				return true;
			}
		}
		now += n;
		if (back && now >= from)
			break;
	}
	return found;
}

void run_seek_free(struct mach_run *r)
{
	if (!r->seek)
		return;
	while (r->seek->nseats)
		drop_seat(r, r->seek->nseats - 1);
	free(r->seek);
	r->seek = NULL;
}

bool mach_vectors(struct mach_run *r, uint32_t thread, struct mach_vectors *out)
{
	const struct mach_cpu *cpu;
	uint64_t regs[TRC_NREGS];

	if (!mach_regs(r, thread, regs, NULL))
		return false;
	run_settle(r);
	cpu = &r->threads[thread].s.cpu;
	memcpy(out->fx, cpu->fx, sizeof out->fx);
	memcpy(out->ymm, &cpu->g.guest_YMM0, sizeof out->ymm);
	for (unsigned i = 0; i < 16; i++)
		memcpy(out->fx + 160 + 16 * i, out->ymm[i], 16);
	out->fs_base = cpu->g.guest_FS_CONST;
	out->gs_base = cpu->g.guest_GS_CONST;
	return true;
}
