/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One exploration from beginning to end: record, follow, drive, and confirm what fails. */
#include "analyzer/explore/explore_internal.h"

#include "analyzer/explore/coverage.h"
#include "analyzer/hunt/files.h"
#include "analyzer/hunt/interrupt.h"
#include "analyzer/hunt/pick.h"
#include "analyzer/trace_image.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RUN_LIMIT 10.0     /* seconds for one native run */
#define FOLLOW_SECONDS 60.0 /* for the recorded run, or what is left of the budget ... */
#define LEAST_SECONDS 1.0   /* ... but no less */
#define LEAST_COMPARED 100u /* orders of a strategy that is only compared with, at least ... */
#define COMPARE_SECONDS 10.0 /* ... and how long */
#define LEAST_INSNS 2000000ull /* an order may take, and ... */
#define MOST_RECORDED 500000000ull /* instructions of the recorded run: seconds */
#define MOST_INSNS 40000000ull /* a second or two */
#define MOST_ENDLESS 4000000ull /* instructions of a recorded run that did not end, and of an order of it */
#define LONG_INSNS 4000000ull /* of a recorded run: more is worth trying whether the machine's own order is shorter */
#define LONGER 10u         /* ... times as many as the recorded run */
#define SHARD_SEEDS 0x9e3779b97f4a7c15ull /* between two shards' random choices */
#define SAVE_TIMES 10.0    /* as long as saving takes a shard explores before it saves again: a tenth of its time at most */

/* ---- executing ---- */

static err_t run_serial(void *arg, const uint32_t *order, struct xpl_seen *out)
{
	struct session *s = arg;

	return xpl_observe_serial(s->res->run, s->res->images, s->res->prelude, order, s->runner.most, out);
}

static bool differs(void *arg, const struct xpl_seen *seen)
{
	return xpl_serial_differs(&((struct session *)arg)->res->serial, seen);
}

static bool bad_exit(void *arg, int status)
{
	struct session *s = arg;
	const char *p = s->o->fail_exit;
	char *end;

	while (p && *p) {
		long one = strtol(p, &end, 10);

		if (end == p)
			return false;
		if (one == status)
			return true;
		p = *end == ',' ? end + 1 : end;
	}
	return false;
}

/*
 * A shard is to be useful after a kill at any instant, also between the two files. Failures come first: what
 * is covered is not executed again, so a failure that is missing when its patterns are covered would be lost.
 */
static err_t save(struct session *s)
{
	const struct xpl_part part = { s->o->shard, s->o->shards, s->res->drive.exhausted };
	double since = xpl_now();

	s->confirmed = confirm_count(s->res);
	if (s->o->save)
		TRY(s->o->save(s->o->save_arg, s->res));
	if (s->o->coverage)
		TRY(xpl_coverage_write(&s->res->drive, s->res->images, s->o->shards ? &part : NULL, s->o->coverage));
	s->saved = xpl_now();
	s->save_seconds = s->saved - since;
	return NULL;
}

/* After every order, where saving is cheap beside it. */
static bool is_time_to_save(const struct session *s)
{
	return s->o->shards && s->caught_up && !s->unsaved &&
	       (xpl_now() - s->saved > SAVE_TIMES * s->save_seconds || confirm_count(s->res) > s->confirmed);
}

static bool on_progress(void *arg)
{
	struct session *s = arg;

	if (is_time_to_save(s))
		s->unsaved = save(s);
	if (s->unsaved)
		s->res->interrupted = true;
	if (interrupt_pending())
		s->res->interrupted = true;
	if (s->o->progress && s->o->progress(s->o->progress_arg, &s->res->drive))
		s->res->interrupted = true;
	return s->res->interrupted || confirm_shake(s);
}

/* ---- the beginning ---- */

/* Threads by the order of their names: their numbers say who came first. */
static uint32_t *ranks_of(const struct trc *t)
{
	uint32_t *rank = xcalloc(t->threads.n + 1, sizeof *rank);

	for (uint32_t i = 0; i < t->threads.n; i++)
		for (uint32_t k = 0; k < t->threads.n; k++)
			rank[i] += strcmp(trc_thread_id(t, k), trc_thread_id(t, i)) < 0;
	return rank;
}

static bool is_one_threads(uint32_t kind)
{
	return kind != TRC_FAIL_DEADLOCK && kind != TRC_FAIL_HANG && kind != TRC_FAIL_EXIT;
}

/* Of a run that failed; 0: it cannot be followed. */
static uint64_t print_of_failed(struct session *s)
{
	struct explore_result *r = s->res;
	const struct mach_options m = { .keep_checkpoints = true, .max_insns = MOST_RECORDED };
	struct mach_result how = { 0 };
	struct xpl_seen seen = { 0 };
	uint64_t print = 0;

	r->images = img_set_new();
	err_t e = mach_open(r->t, r->images, &m, &r->run);
	if (!e)
		e = mach_follow(r->run, &how);
	if (!e && how.end == MACH_END_FAILURE)
		e = xpl_prelude_find(r->run, r->images, &r->prelude);
	if (!e && r->prelude)
		e = xpl_observe_recorded(r->run, r->images, r->prelude, NULL, NULL, &seen);
	if (!e && seen.trace) {
		const struct trc_failure *f = r->t->failure;
		uint32_t *rank = ranks_of(r->t);

		print = xpl_trace_print(seen.trace, is_one_threads(f->rec.flags) ? f->thread : XPL_NONE, rank);
		free(rank);
	}
	xpl_seen_free(&seen);
	mach_result_free(&how);
	err_free(e);
	return print;
}

static err_t first_failure(struct session *s, const char *trace)
{
	struct explore_failure f = { .text = trace_failure_text(s->res->t->failure), .schedule = 0, .orders = 1,
				     .print = pick_print(s->res->t->failure), .kind = s->res->t->failure->rec.flags,
				     .bad = confirm_bad(s->res->t->failure->rec.flags), .confirmed = true };

	s->res->first_failed = true;
	if (!s->o->argv)
		s->res->first_print = print_of_failed(s);
	if (s->o->argv && !s->o->trace)
		TRY(xpl_native_keep(trace, s->o->out, &f.trace));
	else
		f.trace = xstrdup(trace);
	vec_push(&s->res->failures, f);
	return s->o->save ? s->o->save(s->o->save_arg, s->res) : NULL;
}

static bool over(void *arg, uint64_t insns, double part)
{
	struct session *s = arg;

	(void)insns;
	(void)part;
	/* Later the machine must not stop by itself: what is executed then is bounded in other ways. */
	return s->follow_until > 0 && (interrupt_pending() || xpl_now() > s->follow_until);
}

/* *given_up: it was asked to stop, or the time is over. */
static err_t follow(struct session *s, const char *trace, bool *given_up)
{
	struct explore_result *r = s->res;
	double left = s->drive.deadline > 0 ? s->drive.deadline - xpl_now() : FOLLOW_SECONDS;
	struct mach_options m = { .keep_checkpoints = true, .progress = over, .progress_arg = s,
				  .max_insns = r->cut_after > 0 ? MOST_ENDLESS : MOST_RECORDED };
	struct mach_result how = { 0 };

	TRY(trc_open(trace, 0, &r->t));
	if (r->t->failure)
		return NULL;
	r->images = img_set_new();
	if (!r->t->memory || !r->t->frags)
		return err_new(ERR_NOANSWER, "%s holds no path: it cannot be executed in another order; record with "
			       "--mode path", trace);
	TRY(mach_open(r->t, r->images, &m, &r->run));
	s->follow_until = xpl_now() + (left < LEAST_SECONDS ? LEAST_SECONDS : left < FOLLOW_SECONDS ? left :
				       FOLLOW_SECONDS);
	err_t e = mach_follow(r->run, &how);
	s->follow_until = 0;
	if (!e && how.end == MACH_END_STOPPED && mach_length(r->run) >= m.max_insns)
		r->looked_at = mach_length(r->run);
	else if (!e && how.end == MACH_END_STOPPED)
		*given_up = true;
	else if (!e && how.end != MACH_END_EXIT && how.end != MACH_END_PATH)
		e = err_new(ERR_NOANSWER, "the recorded run could not be followed to its end: %s",
			    how.why ? how.why : "no reason was given");
	/* One that was ended by its time limit never ends: that is no failure of an order. */
	s->drive.endless = how.end == MACH_END_PATH || r->looked_at || r->cut_after > 0;
	mach_result_free(&how);
	s->runner.most = LEAST_INSNS + LONGER * mach_length(r->run);
	if (s->runner.most > MOST_INSNS)
		s->runner.most = MOST_INSNS;
	if (r->looked_at && s->runner.most > r->looked_at)
		s->runner.most = r->looked_at;
	return e;
}

static const char *const strategy_names[] = { [XPL_PCR] = "pcr", [XPL_MCR] = "mcr", [XPL_PCT] = "pct",
					      [XPL_RANDOM] = "random" };

static void keep_curve(struct explore_result *r, unsigned at, const char *name, const struct xpl_drive *d)
{
	r->curves[at].name = name;
	for (size_t i = 0; i < d->over_time.n; i++)
		vec_push(&r->curves[at].points, d->over_time.v[i]);
}

/* The same beginning, by other strategies: for their curves only. */
static err_t compare(struct session *s)
{
	struct explore_result *r = s->res;
	unsigned at = 1;
	err_t e = NULL;

	for (enum xpl_strategy other = XPL_PCR; other <= XPL_RANDOM && at < 3 && !e; other++) {
		struct xpl_drive_options o = { .strategy = other, .seed = s->o->seed, .keep_going = true,
					       .max_schedules = r->drive.schedules < LEAST_COMPARED ? LEAST_COMPARED :
								r->drive.schedules,
					       .deadline = xpl_now() + COMPARE_SECONDS,
					       .progress = on_progress, .arg = s };
		struct xpl_seen seen = { 0 };
		struct xpl_drive d;

		if (other == s->o->strategy || other == XPL_PCT)
			continue;
		e = xpl_observe_recorded(r->run, r->images, r->prelude, NULL, NULL, &seen);
		if (e)
			break;
		xpl_drive_new(&d, &o, &s->executor);
		e = xpl_drive_go(&d, seen.trace);
		seen.trace = NULL;
		keep_curve(r, at++, strategy_names[other], &d);
		xpl_drive_free(&d);
		xpl_seen_free(&seen);
	}
	return e;
}

/* What was followed of a run that does not end may be one thread's part alone. */
static err_t all_in_turn(struct session *s)
{
	uint32_t number;

	return xpl_drive_try(&s->res->drive, NULL, 0, &number);
}

/* The serial orders; then the recorded one is judged as well. */
static err_t find_serial(struct session *s, const struct xpl_trace *first)
{
	struct explore_result *r = s->res;
	struct xpl_path all = { 0 };
	struct mach_step *steps;
	uint32_t number;
	size_t n;

	TRY(xpl_serial_find(&r->serial, &r->drive, first->nthreads, run_serial, s));
	if (!r->serial.complete || xpl_drive_over(&r->drive))
		return NULL;
	for (uint32_t i = 0; i < first->events.n; i++)
		vec_push(&all.events, i);
	xpl_steps_of(first, &all, &steps, &n);
	err_t e = xpl_drive_try(&r->drive, steps, n, &number);
	free(steps);
	xpl_path_free(&all);
	return e;
}

/* Shards begin with one and the same order, not with the run that each has recorded; false: it does not end well. */
static err_t common_first(struct session *s, struct xpl_trace **first)
{
	struct xpl_drive *d = &s->res->drive;
	struct xpl_seen seen = { 0 };

	TRY(s->executor.run(s->executor.arg, &(struct xpl_order){ 0 }, &seen));
	if (seen.tried.end == MACH_TRIED_EXIT && seen.trace) {
		xpl_trace_free(*first);
		*first = seen.trace;
		seen.trace = NULL;
	} else {
		/* Each goes on from its own run: together they may have seen less than all. */
		d->unknown_left = true;
		d->left++;
		if (!d->left_why)
			d->left_why = xasprintf("all threads in turn: %s", seen.tried.why ? seen.tried.why : "unknown");
	}
	xpl_seen_free(&seen);
	return NULL;
}

/* All threads in turn, on the machine: *out stays NULL when that does not end well, or has more events than are looked at. */
static err_t take_turns(struct session *s, struct xpl_trace **out)
{
	struct xpl_seen seen = { 0 };

	TRY(xpl_observe(s->res->run, s->res->images, s->res->prelude, &(struct xpl_order){ 0 }, s->runner.most, &seen));
	if (seen.tried.end == MACH_TRIED_EXIT && seen.trace && !seen.trace->cut) {
		*out = seen.trace;
		seen.trace = NULL;
		if (s->runner.most > LEAST_INSNS + LONGER * seen.tried.insns)
			s->runner.most = LEAST_INSNS + LONGER * seen.tried.insns;
	}
	xpl_seen_free(&seen);
	return NULL;
}

/*
 * What the exploration begins with: the recorded order. But a thread that spun until another was done may have done so thousands
 * of times when it was recorded, more often than is looked at. The machine lets it make way: all threads in turn are a beginning
 * as good as any.
 */
static err_t beginning(struct session *s, struct xpl_trace **first)
{
	struct explore_result *r = s->res;
	bool is_long = mach_length(r->run) > LONG_INSNS && !r->looked_at;
	struct xpl_trace *shorter = NULL;
	struct xpl_seen seen = { 0 };

	*first = NULL;
	if (is_long)
		TRY(take_turns(s, first));
	if (*first)
		return NULL;
	TRY(xpl_observe_recorded(r->run, r->images, r->prelude, NULL, NULL, &seen));
	*first = seen.trace;
	seen.trace = NULL;
	xpl_seen_free(&seen);
	if ((*first)->cut && !r->looked_at && !is_long)
		TRY(take_turns(s, &shorter));
	if (shorter) {
		xpl_trace_free(*first);
		*first = shorter;
	}
	return NULL;
}

static err_t start_jobs(struct session *s)
{
	TRY(xpl_runner_start(&s->runner, s->o->jobs));
	if (s->runner.workers) {
		s->executor.run_all = xpl_runner_run_all;
		s->executor.width = s->o->jobs;
	}
	return NULL;
}

/* How long the run would have gone on is not known. */
static bool has_cut_off(const struct xpl_trace *t)
{
	for (uint32_t i = 0; i < t->nthreads; i++)
		if (i != t->exits && xpl_is_born(t, i) && !t->threads[i].ended && !t->threads[i].waits)
			return true;
	return false;
}

static err_t explore_from(struct session *s, const char *trace)
{
	struct explore_result *r = s->res;
	struct xpl_trace *first = NULL;
	bool given_up = false;

	TRY(follow(s, trace, &given_up));
	if (r->t->failure)
		return first_failure(s, trace);
	if (given_up) {
		r->interrupted = interrupt_pending();
		r->drive.over = !r->interrupted;
		return NULL;
	}
	TRY(xpl_prelude_find(r->run, r->images, &r->prelude));
	xpl_assumed_find(r->t, &r->assumed);
	s->runner.run = r->run;
	s->runner.live = (struct xpl_live){ .native = &s->native, .first = r->t, .images = r->images, .prelude = r->prelude,
					    .most = MOST_RECORDED };
	TRY(beginning(s, &first));
	if (has_cut_off(first) && !s->drive.endless)
		s->runner.most = MOST_INSNS;
	err_t e = s->o->coverage ? xpl_coverage_read(&r->drive, r->images, s->o->coverage) : NULL;
	s->caught_up = !e;
	if (!e && r->looked_at)
		e = all_in_turn(s);
	if (!e && s->o->shards)
		e = common_first(s, &first);
	if (!e && s->o->differ)
		e = find_serial(s, first);
	if (e) {
		xpl_trace_free(first);
		return e;
	}
	e = start_jobs(s);
	if (e) {
		xpl_trace_free(first);
		return e;
	}
	if (s->o->argv && !s->o->trace && s->o->on == EXPLORE_AUTO && s->drive.deadline > 0)
		xpl_shake_begin(&s->shake);
	TRY(xpl_drive_go(&r->drive, first));
	if (r->drive.timed && !xpl_assumed_has_timed(&r->assumed))
		xpl_assumed_add_timed(&r->assumed);
	s->shake.since = 0;
	keep_curve(r, 0, strategy_names[s->o->strategy], &r->drive);
	if (!r->interrupted)
		TRY(xpl_races_find(&r->drive, &s->executor, &r->races));
	if (s->unsaved) {
		err_t unsaved = s->unsaved;

		s->unsaved = NULL;
		return unsaved;
	}
	/* What is cut short is no proof. */
	r->drive.exhausted &= !r->looked_at;
	if (s->o->compare && !r->interrupted)
		TRY(compare(s));
	return save(s);
}

/* Before the work, not when a failure is there. *made: it was not there. */
static err_t check_out(const char *out, bool *made)
{
	*made = out && *out && access(out, F_OK);
	if (*made)
		TRY(files_make_dirs(out));
	if (access(out && *out ? out : ".", W_OK | X_OK))
		return err_errno("no trace could be kept in %s", out && *out ? out : "the current directory");
	return NULL;
}

static err_t record_and_explore(struct session *s)
{
	double since = xpl_now();
	char *trace = NULL;

	TRY(xpl_native_open(&s->native));
	if (s->o->trace)
		return explore_from(s, s->o->trace);
	/* No longer than there is time, but so long that something can be seen. */
	double limit = s->native.limit, left = s->drive.deadline > 0 ? s->drive.deadline - xpl_now() : limit;
	s->native.limit = left < LEAST_SECONDS ? LEAST_SECONDS : left < limit ? left : limit;
	err_t e = xpl_native_run(&s->native, NULL, &trace, &s->res->output);
	s->res->cut_after = s->native.timed_out ? s->native.limit : 0;
	s->native.limit = limit;
	s->res->record_seconds = xpl_now() - since;
	s->res->interrupted = interrupt_pending();
	if (!e && s->res->interrupted) {
		free(trace);
		return NULL;
	}
	if (!e && !trace)
		e = err_new(ERR_NOANSWER, "the program left no trace: csched doctor says what may be wrong");
	if (!e)
		e = explore_from(s, trace);
	free(trace);
	return e;
}

err_t explore_run(const struct explore_options *o, struct explore_result *res)
{
	double since = xpl_now();
	struct session s = { .o = o, .res = res, .began = since, .saved = since };
	err_t e;

	*res = (struct explore_result){ 0 };
	s.runner = (struct xpl_runner){ .on = o->argv ? o->on : EXPLORE_MACHINE, .drive = &res->drive };
	s.executor = (struct xpl_executor){ .arg = &s.runner, .run = xpl_runner_run };
	s.drive = (struct xpl_drive_options){
		.strategy = o->strategy, .seed = o->seed + o->shard * SHARD_SEEDS, .shard = o->shard - 1, .shards = o->shards, .max_schedules = o->max_schedules,
		.deadline = o->max_seconds > 0 ? since + o->max_seconds : 0, .keep_going = o->keep_going || o->compare,
		.bad_exit = bad_exit, .differs = o->differ ? differs : NULL, .failed = confirm_failed, .progress = on_progress, .arg = &s,
	};
	if (o->done)
		s.drive.seed = xpl_mix(s.drive.seed, o->done);
	s.native = (struct xpl_native){ .argv = o->argv, .shim = o->shim, .fail_exit = o->fail_exit,
					.limit = o->run_limit > 0 ? o->run_limit : RUN_LIMIT };
	xpl_drive_new(&res->drive, &s.drive, &s.executor);
	interrupt_catch();
	bool made_out = false;

	e = o->argv ? check_out(o->out, &made_out) : NULL;
	if (!e)
		e = o->argv ? record_and_explore(&s) : explore_from(&s, o->trace);
	if (made_out)
		rmdir(o->out); /* unless something was kept there */
	xpl_runner_end(&s.runner);
	res->native_orders = s.runner.native_orders;
	xpl_native_close(&s.native);
	interrupt_release();
	res->seconds = xpl_now() - since;
	res->part = o->shards > 1;
	err_free(s.unsaved);
	res->drive.o = NULL; /* it was ours */
	res->drive.exec = NULL;
	return e;
}

void explore_result_free(struct explore_result *res)
{
	for (size_t i = 0; i < res->failures.n; i++) {
		free(res->failures.v[i].text);
		free(res->failures.v[i].trace);
	}
	vec_free(&res->failures);
	xpl_drive_free(&res->drive);
	xpl_prelude_free(res->prelude);
	mach_close(res->run);
	if (res->images)
		img_set_free(res->images);
	if (res->t)
		trc_close(res->t);
	free(res->output);
	xpl_races_free(&res->races);
	xpl_serial_free(&res->serial);
	xpl_assumed_free(&res->assumed);
	for (unsigned i = 0; i < 3; i++)
		vec_free(&res->curves[i].points);
	*res = (struct explore_result){ 0 };
}
