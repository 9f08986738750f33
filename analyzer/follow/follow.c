/* The scheduler of a recorded run: see follow.h. */
#include "analyzer/follow/follow.h"

#include "common/log.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define FORCED_TOLD 20u         /* forced loads that are named */
/* Instructions between checkpoints that are kept: at least so many, and at least this part of
 * how long ago they were. What is asked later lies near the end more often than not. */
#define KEEP_EVERY 1000000u
#define KEEP_PART 8u
#define LET_GO_EVERY 20000000u  /* instructions: they take some MB of the trace at most */
#define SPIN_TURN 5000u         /* instructions */
#define OVERTIME 1.5            /* seconds behind the limit: for what is executed again to tell the answer */

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

bool run_is_hopeless(struct mach_run *r)
{
	if (!r->asked_to_stop || !r->timed_out)
		return false;
	return r->following || run_seconds() > r->deadline + OVERTIME;
}

/* ---- the log ---- */

void run_log(struct mach_run *r, uint32_t thread, enum action action, uint64_t insns)
{
	struct log_step *last = r->log.n > r->log_sealed ? &r->log.v[r->log.n - 1] : NULL;

	if (action == ACT_RUN && !insns)
		return;
	if (action == ACT_RUN && last && last->thread == thread && last->action == ACT_RUN &&
	    insns <= LOG_MOST_INSNS - last->insns) {
		last->insns += insns;
		return;
	}
	for (; insns > LOG_MOST_INSNS; insns -= LOG_MOST_INSNS)
		vec_push(&r->log, (struct log_step){ thread, action, LOG_MOST_INSNS });
	vec_push(&r->log, (struct log_step){ thread, action, insns });
}

/* ---- going on ---- */

enum action run_turn(struct mach_run *r, struct run_thread *t, uint64_t insns)
{
	uint64_t now = mach_thread_insns(r, t->index), limit, before;
	bool granted;
	enum action a = t->s.action;

	if (a != ACT_RUN && a != ACT_TICKET) {
		run_log(r, t->index, a, 0);
		return run_perform(r, t);
	}
	if (r->edges.n)
		run_clock_by_edges(r, t);
	granted = run_take_ticket(r, t);
	limit = run_turn_limit(r, t);
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
		if (!run_alive(t) || t->s.action != ACT_END || !run_ended(t))
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
	return run_alive(t) && t->s.action != ACT_END && t->s.action != ACT_FAILURE;
}

static bool somebody_waits(const struct mach_run *r)
{
	for (size_t i = 0; i < r->nthreads; i++)
		if (waits(&r->threads[i]))
			return true;
	return false;
}

/* Recording stopped before the program did, and a thread is where its record ends. */
static bool is_cut_short(const struct mach_run *r)
{
	for (size_t i = 0; i < r->nthreads && run_degraded(r); i++)
		if (run_alive(&r->threads[i]) && r->threads[i].s.action == ACT_END)
			return true;
	return false;
}

static enum mach_end record_ends(struct mach_run *r)
{
	const struct trc_note *why = run_degraded(r);

	int killed = r->t->end && r->t->end->rec.flags == 1 ? r->t->end->status : 0;

	if (killed && !why)
		run_say(r, "the run was killed by signal %d (SIG%s)", killed,
			killed > 0 && killed < NSIG && sigabbrev_np(killed) ? sigabbrev_np(killed) : "?");
	else
		run_say(r, why ? "the record ends here: %.*s" : "the record ends here",
			why ? (int)why->text_len : 0, why ? why->text : "");
	/* A program that became another one ended as recorded. */
	return r->t->end && r->t->end->rec.flags == 2 ? MACH_END_EXIT : MACH_END_PATH;
}

/* No thread can go on: the record ends here, or the orders contradict each other. */
static enum mach_end stuck(struct mach_run *r)
{
	if (deadlock_reached(r)) {
		uint32_t index = r->t->failure->thread;

		verdict_failure(r, &r->threads[index < r->nthreads ? index : 0]);
		return MACH_END_FAILURE;
	}
	for (size_t i = 0; i < r->nthreads && !is_cut_short(r); i++) {
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
	return record_ends(r);
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

		ended |= run_alive(t) && t->s.action == ACT_END;
		if (run_alive(t) && has_ticket(t) && t->s.ticket > r->tickets[t->s.shard] &&
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

/*
 * Nobody can go on, and no record ends too early: the first that waits at a ticket is not where
 * it was, its address came from a wrong read.
 */
static bool resolve_stuck(struct mach_run *r)
{
	struct run_thread *best = NULL;

	for (size_t i = 0; i < r->nthreads; i++) {
		struct run_thread *t = &r->threads[i];

		if (run_alive(t) && t->s.action == ACT_TICKET &&
		    (!best || run_clock_now(r, t) < run_clock_now(r, best)))
			best = t;
	}
	if (!best)
		return false;
	run_switch(r, best->index);
	run_mismatch(r, r->m->frame->g.guest_RIP, "its turn at an ordered access never comes");
	return search_resolve(r, best);
}

/* What was read of the trace lies behind us. */
static void let_go(struct mach_run *r)
{
	if (r->worked - r->let_go < LET_GO_EVERY)
		return;
	r->let_go = r->worked;
	trc_let_go(r->t);
}

static void keep_checkpoint(struct mach_run *r)
{
	if (r->checkpoints.n && r->time - r->checkpoints.v[r->checkpoints.n - 1]->time < KEEP_EVERY)
		return;
	if (!r->checkpoints.n || r->o.keep_checkpoints)
		vec_push(&r->checkpoints, checkpoint_take(r));
	thin_checkpoints(r);
}

/* What grows with the length of a run: for whoever looks where memory goes. */
static void log_kept(const struct mach_run *r)
{
	size_t records = 0, copied = 0;

	if (!log_wants(LOG_FOLLOW, 1))
		return;
	for (size_t i = 0; i < r->nthreads; i++)
		records += r->threads[i].recs.n;
	for (size_t i = 0; i < r->t->streams.n; i++)
		copied += r->t->streams.v[i]->kept.n;
	log_line(LOG_FOLLOW, 1, "kept: %zu steps of the order, %zu records (%zu blocks made), %zu points in the order of system calls, "
		 "%zu checkpoints", r->log.n, records, copied, r->ncalls, r->checkpoints.n);
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
		let_go(r);
		keep_checkpoint(r);
		search_checkpoint(r);
		t = run_choose(r, &insns);
		if (!t) {
			if (run_spins_give_up(r))
				continue;
			/* Those who wait for one that is cut short wait for what was not recorded. */
			if (somebody_waits(r) && !is_cut_short(r) &&
			    (search_stuck(r) || skip_lost_ticket(r) || resolve_stuck(r)))
				continue;
			end_at(r, stuck(r), r->current);
			return;
		}
		bool spinning = run_spins_wait(r);
		if (spinning && insns > SPIN_TURN)
			insns = SPIN_TURN; /* whether what they wait for has come is seen in between */
		r->may_wait = true;
		a = run_turn(r, t, insns);
		r->may_wait = false;
		if (a == ACT_VALUE) {
			run_wait_for_value(r, t);
			a = run_turn(r, t, 1);
		}
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
		if (a == ACT_MISMATCH && run_spin(r, t))
			continue;
		if (spinning && a != ACT_MISMATCH)
			run_spins_look(r);
		if (a == ACT_MISMATCH && !search_resolve(r, t) && !r->asked_to_stop) {
			end_at(r, is_cut_short(r) ? record_ends(r) : MACH_END_DIVERGED, t->index);
			return;
		}
	}
}

/* A system call whose effects are not known, as the kernel's rings of io_uring are not. */
static const struct trc_note *unrecorded(const struct mach_run *r)
{
	static const char such[] = "memory effects not recorded";

	for (size_t i = 0; i < r->t->notes.n; i++) {
		const struct trc_note *n = r->t->notes.v[i];

		if (n->text_len >= sizeof such - 1 && !memcmp(n->text, such, sizeof such - 1))
			return n;
	}
	return NULL;
}

static void add_reason(struct mach_run *r, const char *what, const struct trc_note *n)
{
	char *why = r->why;

	if (!n)
		return;
	r->why = xasprintf("%s; %s%.*s", why, what, (int)n->text_len, n->text);
	free(why);
}

static void describe_divergence(struct mach_run *r)
{
	char *place, *why;

	if (r->res.end != MACH_END_DIVERGED || r->res.thread == NO_THREAD)
		return;
	why = r->why ? r->why : xstrdup("");
	place = run_place(r, r->mismatch_pc ? r->mismatch_pc : r->res.pc);
	r->why = xasprintf("%s at %s, its instruction %" PRIu64 ": %s",
			   trc_thread_id(r->t, r->blamed ? r->blamed_thread : r->res.thread), place,
			   r->blamed ? r->blamed_insn : mach_thread_insns(r, r->res.thread), why);
	free(place);
	free(why);
	if (!r->blamed)
		run_blame(r, r->res.thread, r->nthreads < 2);
	if (r->reason) {
		why = r->why;
		r->why = xasprintf("%s; %s", why, r->reason);
		free(why);
	}
	add_reason(r, "the trace is incomplete: ", run_degraded(r));
	add_reason(r, "", unrecorded(r));
}

/* An address as reports name it: without offsets, nor the linker's own names for what it makes. */
static char *spoken_address(struct mach_run *r, uint64_t address)
{
	uint64_t offset;
	const char *name = img_symbol(r->images, address, &offset);
	struct img_module *m = img_module_at(r->images, address);

	if (!name)
		return m ? xstrdup(img_module_name(m)) : xasprintf("0x%" PRIx64, address);
	if (!strcmp(name, "_GLOBAL_OFFSET_TABLE_"))
		return xstrdup("the dynamic linker's table");
	return xstrdup(strstr(name, "@plt") ? "a call into a library" : name);
}

static void tell_buffered(struct mach_run *r, const struct mach_forced *f, const char *what,
			  const char *place)
{
	char *store = spoken_address(r, f->store_pc);

	run_note(r, "%s's load of %s at %s saw 0x%" PRIx64 ": the store of %s at %s was still in its "
		 "store buffer", trc_thread_id(r->t, f->thread), what, place, f->value,
		 trc_thread_id(r->t, f->store_thread), store);
	free(store);
}

/* A load in a loop is told once. */
static void tell_forced(struct mach_run *r)
{
	size_t told = r->undetermined.n + FORCED_TOLD;

	for (size_t i = 0; i < r->forced.n; i++) {
		const struct mach_forced *f = &r->forced.v[i];
		char *place, *what;

		if (!f->buffered && r->undetermined.n >= told) {
			run_undetermined(r, "%zu forced loads in all", r->forced.n);
			return;
		}
		place = spoken_address(r, f->pc);
		what = spoken_address(r, f->address);
		if (f->buffered)
			tell_buffered(r, f, what, place);
		else if (f->logged)
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
	r->following = true;
	follow(r);
	r->following = false;
	r->length = r->time;
	log_kept(r);
	if (r->res.end == MACH_END_EXIT)
		verdict_final_memory(r);
	describe_divergence(r);
	search_end(r);
	run_settle(r);
	run_explain_forces(r);
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
