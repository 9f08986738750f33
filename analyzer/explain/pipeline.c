#include "analyzer/explain/explain.h"
#include "analyzer/explain/judge.h"

#include "common/log.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

/* Small windows are solved in a blink; most bugs lie close to their failure. */
#define FIRST_WINDOW 2000
/* Store buffers make the search much larger, and reach only a few events far. */
#define FIRST_WINDOW_TSO 60
#define TAIL_TSO 20
#define LAST_WINDOW 200000
/* Where a stretch holds so few events that this many times as many were asked for, the next one is so
 * many times longer, and then the whole run, if all this many executions of it leave half of the effort. */
#define THIN 16
#define EXECUTIONS 4
/* Branches that are turned and executed before giving up on leaving the recorded path. */
#define MOST_TURNS 8
/* And effort for all of them: executing (serial.c) finds what they do not. */
#define TURNING 15
/* From this window on what the failing thread touched is looked at before all that is shared (focus.c). */
#define FOCUS_FROM (4 * FIRST_WINDOW)
/* Effort of an answer after which others are sought by executing first. */
#define HARD 2

void explain_gap(struct explanation *e, const char *phase, const char *why)
{
	char *text = xstrdup(why);

	vec_push(&e->texts, text);
	vec_push(&e->gaps, (struct report_gap){ phase, text });
}

static void phase_done(struct explanation *e, const char *name, double since)
{
	for (size_t i = 0; i < e->phases.n; i++)
		if (!strcmp(e->phases.v[i].name, name)) {
			e->phases.v[i].seconds += explain_clock() - since;
			return;
		}
	vec_push(&e->phases, (struct report_phase){ name, explain_clock() - since });
}

static bool machine_progress(void *arg, uint64_t insns, double part)
{
	const struct explain_options *o = arg;

	(void)insns;
	return o->progress && o->progress(o->progress_arg, "following the run", part);
}

static err_t open_all(struct explanation *e, const char *path, const struct explain_options *o)
{
	struct mach_options m = { .keep_checkpoints = true, .timeout = o->timeout,
				  .progress = machine_progress,
				  .progress_arg = (void *)o };

	TRY(trc_open(path, 0, &e->t));
	e->images = img_set_new();
	if (!e->t->memory || !e->t->frags)
		return err_new(ERR_NOANSWER,
			       "%s holds sync events only: it was recorded with mode=sync or "
			       "recording ended before it began; record again with mode=path", path);
	return mach_open(e->t, e->images, &m, &e->run);
}

static const char *signal_word(int number)
{
	const char *word = number > 0 && number < NSIG ? sigabbrev_np(number) : NULL;

	return word ? word : "?";
}

/* Without a failure, or with one that came from outside, there are no orders to look for. */
static err_t has_cause(const struct trc *t, const char *path)
{
	if (!t->failure && !t->end)
		return err_new(ERR_NOANSWER, "the recorded run was killed (or is still running): its record is cut off "
			       "and no failure comes before that; csched info %s", path);
	if (!t->failure && t->end->rec.flags == 1)
		return err_new(ERR_NOANSWER, "the recorded run was killed by signal %d (SIG%s), which is no failure of "
			       "its own; csched info %s", t->end->status, signal_word(t->end->status), path);
	if (!t->failure)
		return err_new(ERR_NOANSWER, "the recorded run did not fail; csched info %s", path);
	return explain_from_outside(t);
}

err_t explain_follow(const char *path, const struct explain_options *o, struct explanation **out)
{
	struct explanation *e = xcalloc(1, sizeof *e);
	double since = explain_clock();
	err_t bad;

	e->deadline = o->timeout > 0 ? since + o->timeout : 0;
	e->scope = (struct explain_scope){ .window = o->window, .whole = o->whole, .model = o->model };
	bad = open_all(e, path, o);

	if (!bad && o->wants_cause)
		bad = has_cause(e->t, path);
	if (!bad)
		bad = mach_follow(e->run, &e->followed);
	if (bad) {
		explanation_free(e);
		return bad;
	}
	phase_done(e, "machine", since);
	log_line(LOG_FOLLOW, 1, "%" PRIu64 " instructions, failure %s%s%s", e->followed.insns,
		 e->followed.failure_reached ? "reached" : "not reached", e->followed.why ? ": " : "",
		 e->followed.why ? e->followed.why : "");
	explain_allow_effort(e, o);
	*out = e;
	return NULL;
}

struct extraction {
	struct explanation *e;
	const struct explain_options *o;
};

static bool extract_progress(void *arg, const char *phase, double part)
{
	const struct extraction *x = arg;

	return explain_out_of_time(x->e) || (x->o->progress && x->o->progress(x->o->progress_arg, phase, part));
}

struct ext_options explain_extraction(struct explanation *e)
{
	if (!e->survey)
		e->survey = ext_survey_new();
	const struct explain_scope *s = &e->scope;

	return (struct ext_options){ .survey = e->survey, .window = s->window, .whole = s->whole,
				     .tail = s->model == SCHED_TSO ? TAIL_TSO : 0,
				     .onward = s->onward, .focus = s->focus, .middle = s->in_middle ? &s->around : NULL };
}

err_t explain_extract(struct explanation *e, const struct explain_options *o)
{
	struct extraction stops = { e, o };
	struct ext_options x = explain_extraction(e);
	double since = explain_clock();

	x.progress = extract_progress;
	x.progress_arg = &stops;
	ext_result_free(e->extracted);
	e->extracted = NULL;
	err_t bad = ext_extract(e->t, e->images, e->run, &x, &e->extracted);
	if (bad)
		return explain_out_of_time(e) ? err_wrap(bad, "--timeout is over") : bad;
	phase_done(e, "symbolic traces", since);
	return NULL;
}

static bool schedule_progress(void *arg, const char *phase, double part)
{
	const struct extraction *x = arg;

	return explain_computed_long(x->e) ||
	       (x->o->progress && x->o->progress(x->o->progress_arg, phase, part));
}

struct execution {
	struct explanation *e;
	err_t bad;
};

/*
 * In an order far from the recorded one mappings lie elsewhere, and system calls come with
 * arguments nobody knows the answer to; and what lies between the last branch and the failure
 * may go another way with other values: then one that is nearer, before a cause is looked for.
 */
static bool stands(void *arg, const struct sched_order *failing, enum sched_keeps keeps)
{
	struct execution *x = arg;

	x->e->kept = keeps;
	x->bad = explain_validate_failing(x->e, failing);
	return x->bad || x->e->failing_proof.by[REPORT_MACHINE].agreed || explain_out_of_time(x->e);
}

err_t explain_solve_window(struct explanation *e, const struct explain_options *o, bool leave_path)
{
	struct execution x = { .e = e };
	struct extraction stops = { e, o };
	struct sched_options s;
	double since = explain_effort(e);

	sched_options_init(&s);
	s.model = e->scope.model;
	/* 0 would be no limit. */
	s.timeout = e->deadline > 0 ? (explain_out_of_time(e) ? 0.01 : e->deadline - explain_clock()) : 0;
	if (e->effort_end > 0)
		s.effort = e->effort_end > explain_effort(e) ? e->effort_end - explain_effort(e) : 0.01;
	if (e->soon > 0 && (s.effort <= 0 || s.effort > e->soon))
		s.effort = e->soon;
	s.alternates = o->alternates;
	s.leave_path = leave_path;
	s.keeps = leave_path ? e->kept : e->keeps;
	if (!leave_path)
		e->failing_proof = (struct report_validation){ 0 };
	if (!leave_path && e->scope.model == SCHED_SC) {
		s.stands = stands;
		s.stands_arg = &x;
	}
	s.unproved = e->unproved;
	s.progress = schedule_progress;
	s.progress_arg = &stops;
	sched_answer_free(e->answer);
	e->answer = NULL;
	err_t bad = sched_solve(e->extracted->trace, &s, &e->answer);
	if (!bad) {
		const struct sched_answer *a = e->answer;

		e->solved += a->stats.effort;
		e->asked += a->stats.questions;
		if (a->stats.constraints >= e->clauses) {
			e->clauses = a->stats.constraints;
			e->bools = a->stats.variables;
		}
		e->alternate_proof = (struct report_validation){ 0 };
		explain_attempt(e, leave_path ? "core, another branch" : "core", since, NULL, true);
	}
	if (!x.bad)
		return bad;
	err_free(bad);
	return x.bad;
}

/* That nothing avoids the failure is proved only when the window holds the whole run. */
static bool answered(const struct explanation *e)
{
	const struct sched_answer *a = e->answer;

	return a->found && (a->nalternates > 0 || (a->deterministic && e->extracted->from == 0));
}

/* Each window is executed several times over: where events lie thin only a much larger one helps. */
static uint64_t larger_window(const struct explanation *e, uint64_t window, const struct ext_result *smaller)
{
	if (smaller->total >= window / THIN)
		return window * 4;
	if (window < LAST_WINDOW / THIN || EXECUTIONS * explain_effort_again(e) > e->effort / 2)
		return window * THIN;
	return UINT64_MAX;
}

/* What the smaller one told stays when there is no time for the larger. */
static err_t take_larger(struct explanation *e, const struct explain_options *o, bool *ended)
{
	struct ext_result *smaller = e->extracted;
	uint64_t window = e->scope.window;

	*ended = false;
	e->extracted = NULL;
	e->scope.window = larger_window(e, window, smaller);
	err_t bad = explain_extract(e, o);
	if (!bad || !explain_out_of_time(e)) {
		ext_result_free(smaller);
		return bad;
	}
	*ended = true;
	e->extracted = smaller;
	e->scope.window = window;
	e->answer->timed_out = true;
	err_free(bad);
	return NULL;
}

/* There is nothing before it, or more than the schedule side can show anyone. */
static bool is_largest(const struct explanation *e)
{
	return e->extracted->from == 0 ||
	       (e->scope.window >= LAST_WINDOW && e->extracted->total >= LAST_WINDOW);
}

/* Too small a window shows neither cause nor alternate: take a larger one and look again. */
static err_t solve_growing(struct explanation *e, const struct explain_options *o)
{
	bool chosen = o->window != 0;

	if (!chosen)
		e->scope.window = e->scope.model == SCHED_TSO ? FIRST_WINDOW_TSO : FIRST_WINDOW;
	if (!e->extracted)
		TRY(explain_extract(e, o));
	for (;;) {
		TRY(explain_solve_soon(e, o, chosen));
		if (answered(e) || e->answer->timed_out || chosen || is_largest(e) ||
		    explain_out_of_time(e))
			return NULL;
		TRY(explain_lost_updates(e, o));
		if (!answered(e) && larger_window(e, e->scope.window, e->extracted) >= FOCUS_FROM)
			TRY(explain_focus(e, o));
		if (answered(e))
			return NULL;
		bool ended;
		TRY(take_larger(e, o, &ended));
		if (ended)
			return NULL;
	}
}

/*
 * Did a load overtake a store? It did where a store that was still in a buffer explains what it saw, and it may have where
 * the record says what that was, and no order gives it. A value that was only chosen to follow a branch, or a call through a
 * table that the linker fills in, tells nothing of buffers.
 */
static bool overtook(const struct explanation *e)
{
	const struct mach_forced *forced;

	for (size_t n = mach_forced(e->run, &forced); n-- > 0;)
		if (forced[n].buffered || forced[n].logged)
			return true;
	return false;
}

/*
 * Where the failure turns out to need store buffers (delays), the answer stands; where not, or when nothing is found,
 * it is sought in order first.
 */
static err_t solve_with_buffers(struct explanation *e, const struct explain_options *o)
{
	bool first = o->model == SCHED_TSO || overtook(e);

	if (!first) {
		TRY(solve_growing(e, o));
		if (e->answer->found || e->answer->timed_out || explain_out_of_time(e))
			return NULL;
		ext_result_free(e->extracted);
		e->extracted = NULL;
		e->scope.window = o->window;
	}
	e->scope.model = SCHED_TSO;
	TRY(solve_growing(e, o));
	if (e->answer->found && (e->answer->ndelays || o->model == SCHED_TSO || !first))
		return NULL;
	if (!first || o->model == SCHED_TSO || explain_out_of_time(e))
		return NULL;
	e->scope.model = SCHED_SC;
	ext_result_free(e->extracted);
	e->extracted = NULL;
	e->scope.window = o->window;
	return solve_growing(e, o);
}

/* The branch that the alternate turned did not help: it is not to be turned again. */
static void make_firm(struct explanation *e, struct sched_ref left)
{
	struct sym_thread *t = &e->extracted->trace->threads[left.thread];
	uint32_t after = t->conds[left.index].after;

	for (size_t i = 0; i < t->nconds; i++)
		if (t->conds[i].after == after)
			t->conds[i].firm = true;
}

static bool can_turn(const struct explanation *e)
{
	const struct sched_answer *a = e->answer;

	return a->nalternates && a->alternates[0].path_differs && a->alternates[0].left.thread != SYM_NONE;
}

/*
 * An alternate that leaves the recorded path may fail behind that all the same:
 * only its execution tells. Then the next branch is turned. When none helps,
 * the first answer stands, unconfirmed or with the failure behind it named.
 */
static err_t turn_others(struct explanation *e, const struct explain_options *o)
{
	struct sched_answer *best = NULL;
	enum judge_passing had = judge_passing(e);
	double end = explain_effort(e) + TURNING;
	err_t bad = NULL;

	for (int i = 0; i < MOST_TURNS && !bad && judge_passing(e) < JUDGE_PASSES && can_turn(e) &&
	     !explain_out_of_time(e) && (explain_effort(e) < end || e->deadline > 0); i++) {
		make_firm(e, e->answer->alternates[0].left);
		if (!best || judge_passing(e) > had) {
			sched_answer_free(best);
			best = e->answer;
			had = judge_passing(e);
			e->answer = NULL;
		}
		bad = explain_solve_window(e, o, true);
		if (!bad)
			bad = explain_validate_alternates(e);
	}
	if (!best)
		return bad;
	if (bad || judge_passing(e) <= had) {
		sched_answer_free(e->answer);
		e->answer = best;
		err_free(bad);
		return explain_validate_alternates(e);
	}
	sched_answer_free(best);
	return NULL;
}

/* chosen: the window is not to grow. */
static err_t validate(struct explanation *e, const struct explain_options *o, bool chosen)
{
	if (explain_executed(e))
		return NULL;
	/* Elsewhere it has been, before its cause was looked for. */
	if (e->answer->found && e->scope.model == SCHED_TSO)
		TRY(explain_validate_failing(e, &e->answer->failing));
	TRY(explain_validate_alternates(e));
	/* What is hard to solve is hard again for each branch; executing is not. */
	const struct sched_answer *tried = NULL, *a = e->answer;
	if (a->found && !a->deterministic &&
	    (!explain_has_cause(e) || (judge_passing(e) < JUDGE_PASSES && a->stats.effort > HARD))) {
		TRY(explain_serial(e, SIZE_MAX));
		tried = a;
		if (!chosen && judge_passing(e) == JUDGE_DOES_NOT_PASS)
			TRY(explain_look_before(e, o));
	}
	TRY(turn_others(e, o));
	if (!explain_out_of_time(e))
		TRY(explain_solve_later(e, o));
	if (e->answer->found && judge_passing(e) < JUDGE_PASSES && e->answer != tried) {
		TRY(explain_serial(e, SIZE_MAX));
		if (!chosen && judge_passing(e) == JUDGE_DOES_NOT_PASS)
			TRY(explain_look_before(e, o));
	}
	return NULL;
}

err_t explain_solve(struct explanation *e, const struct explain_options *o)
{
	bool chosen = o->window != 0;

	TRY(solve_with_buffers(e, o));
	bool history = !chosen && answered(e);
	double since = explain_clock();
	if (!explain_needs_buffers(e) && !e->extracted->to)
		TRY(validate(e, o, chosen));
	phase_done(e, "validation", since);
	TRY(explain_lost_updates(e, o));
	if (!chosen)
		TRY(explain_focus(e, o));
	if (history && !e->extracted->to)
		TRY(explain_look_further_back(e, o));
	explain_notes(e);
	judge_conclude(e);
	if (e->attempt < e->attempts.n)
		e->attempts.v[e->attempt].chosen = true;
	e->answer->stats.questions = e->asked;
	e->answer->stats.constraints = e->clauses;
	e->answer->stats.variables = e->bools;
	TRY(dsp_build(e->extracted->trace, e->answer, &e->dsp));
	explain_misuse_hint(e);
	return NULL;
}

void explanation_free(struct explanation *e)
{
	if (!e)
		return;
	dsp_free(e->dsp);
	sched_answer_free(e->answer);
	ext_result_free(e->extracted);
	ext_survey_free(e->survey);
	mach_result_free(&e->followed);
	mach_close(e->run);
	img_set_free(e->images);
	trc_close(e->t);
	for (size_t i = 0; i < e->texts.n; i++)
		free(e->texts.v[i]);
	vec_free(&e->texts);
	vec_free(&e->gaps);
	vec_free(&e->attempts);
	vec_free(&e->phases);
	free(e->failing_why);
	free(e->alternate_why);
	free(e);
}
