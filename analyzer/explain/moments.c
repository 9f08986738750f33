/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Orders that do not fail, found by executing: up to some moment as in the failing order, from there
 * on one thread after the other, each as far as it can go.
 *
 * Solving finds orders that turn the branch before the failure; where the damage was
 * done in many places (several lost updates, one audit at the end) each of them fails
 * behind that all the same. Threads that are not interrupted are what the programmer had
 * in mind, so they are tried from the end backwards: the later the moment, the more of
 * the failing order is kept.
 */
#include "analyzer/explain/moments.h"

#include <string.h>

/* Scheduling policy after the kept prefix: who fails first of all, or last, or who is made before its creator. */
enum way { FAILING_FIRST, OTHERS_FIRST, YOUNG_FIRST, NWAYS };

/*
 * Executing is cheap: it goes on until something is found though the solver has used up what
 * nobody limited. One thread after the other from the beginning seldom fails.
 */
static bool enough(const struct moments *s)
{
	return s->tries >= LIMIT_MOMENTS || explain_past_deadline(s->e) ||
	       (s->end > 0 && explain_effort(s->e) >= s->end) ||
	       (s->best.grade > FAILS && explain_out_of_time(s->e));
}

/* Appends what the thread did in the failing order up to this event, unless it is there. */
static void append(const struct moments *s, struct sched_order *o, bool *there, size_t upto)
{
	size_t n = 0;

	/* A thread's events are there from its first on: back to the last that is. */
	for (size_t i = upto + 1; i && !there[i - 1]; i = s->previous[i - 1])
		n++;
	o->n += n;
	for (size_t i = upto + 1, k = o->n; n; n--, i = s->previous[i - 1]) {
		there[i - 1] = true;
		o->refs[--k] = s->failing->refs[i - 1];
	}
}

/* So that nothing below looks through the whole order for one event. */
static void index_order(struct moments *s)
{
	const struct sched_order *f = s->failing;
	size_t *last = xcalloc(s->base->extracted->trace->nthreads + 1, sizeof *last);
	size_t *next;

	s->previous = xcalloc(f->n + 1, sizeof *s->previous);
	s->at_point = xcalloc(f->n + 1, sizeof *s->at_point);
	s->first = xcalloc(s->npoints + 2, sizeof *s->first);
	for (size_t i = 0; i < f->n; i++) {
		s->previous[i] = last[f->refs[i].thread];
		last[f->refs[i].thread] = i + 1;
		s->first[s->of[i] + 1]++;
	}
	for (size_t p = 1; p < s->npoints + 2; p++)
		s->first[p] += s->first[p - 1];
	next = xcalloc(s->npoints + 2, sizeof *next);
	memcpy(next, s->first, (s->npoints + 2) * sizeof *next);
	for (size_t i = 0; i < f->n; i++)
		s->at_point[next[s->of[i]]++] = i;
	free(next);
	free(last);
}

/* The order as executed: kept as it was before `from`, then what came by. */
static struct executed as_executed(const struct moments *s, size_t from, const struct mach_outcome *out)
{
	bool *there = xcalloc(s->failing->n + 1, sizeof *there);
	struct executed x = { .order.refs = xcalloc(s->failing->n + 1, sizeof *x.order.refs),
			      .why = xstrdup(out->why) };

	for (size_t i = 0; i < from; i++)
		append(s, &x.order, there, i);
	x.kept = x.order.n;
	for (size_t k = 0; k < out->nnoted; k++)
		for (size_t p = out->noted[k] + 1, i = s->first[p]; i < s->first[p + 1]; i++)
			append(s, &x.order, there, s->at_point[i]);
	free(there);
	return x;
}

static void executed_free(struct executed *x)
{
	free(x->order.refs);
	free(x->why);
}

/* ---- executing ---- */

static enum grade grade_of(const struct mach_outcome *out, enum telling told)
{
	static const enum grade clean[] = { MUTE, ASIDE, CLEAN };

	if (out->fails_later)
		return told == TELLS_NOTHING ? MUTE_AND_FAILS_LATER : FAILS_LATER;
	return clean[told];
}

/* Of two that are as good: the one that passes the failure point with its condition holding; then the later divergence. */
static bool is_better(const struct executed *new, const struct executed *best, enum grade enough)
{
	if (new->grade != best->grade)
		return new->grade > best->grade;
	if (new->met != best->met)
		return new->met;
	return new->grade >= enough && new->kept >= best->kept;
}

/*
 * The better of two stays; of two good ones the one that keeps more of the failing order. Without
 * a root cause to compare with it is enough for having found the place that it does not fail.
 */
static bool keep_better(struct moments *s, size_t which, const struct mach_outcome *out)
{
	struct executed new = as_executed(s, s->switches[which], out);
	enum telling told = s->known ? telling_pair(s, &new) : telling_own_pair(s, which, &new);
	enum grade enough = s->known ? CLEAN : ASIDE;

	new.from = s->switches[which];
	new.told = told;
	new.met = out->met;
	new.grade = grade_of(out, out->fails_later && !s->known ? TELLS_NOTHING : told);
	if (is_better(&new, &s->best, enough)) {
		executed_free(&s->best);
		s->best = new;
	} else {
		executed_free(&new);
	}
	return new.grade >= enough;
}

/* Threads go freely from the switch on: does that hold? */
static err_t holds(struct moments *s, size_t which, enum way way, bool *yes)
{
	size_t from = s->switches[which], strict = 0;
	const struct mach_point *fate = &s->base->extracted->fate, *brink = &s->base->extracted->brink;
	struct mach_outcome out = { 0 };

	for (size_t i = 0; i < from; i++)
		strict = s->of[i] > strict ? s->of[i] : strict;

	struct mach_order o = {
		.from = s->base->extracted->from, .points = s->points, .npoints = s->npoints,
		.loose = s->npoints - strict, .others_first = way == OTHERS_FIRST, .young_first = way == YOUNG_FIRST,
		.fate = fate->thread == SYM_NONE ? NULL : fate,
		.brink = brink->thread == SYM_NONE ? NULL : brink,
		.onward_insns = s->base->extracted->onward_insns,
	};
	err_t bad = o.loose ? mach_execute(s->e->run, &o, &out) : NULL;

	s->tries++;
	if (!bad && o.loose)
		candidate_count(s->e, &out);
	s->e->ordered_insns += out.insns;
	s->e->printed |= out.printed;
	s->e->timed |= out.timed;
	*yes = false;
	if (!bad && o.loose && out.kind == MACH_OUT_PASSED && !out.recurs && !mach_fails_in_handler(s->e->run))
		*yes = keep_better(s, which, &out);
	mach_outcome_free(&out);
	return bad;
}

/* Is a thread made from the switch on? */
static bool makes_one(const struct moments *s, size_t which)
{
	for (size_t i = s->switches[which]; i < s->failing->n; i++)
		if (moments_event(s, s->failing->refs[i])->op == SYM_FORK)
			return true;
	return false;
}

static err_t holds_somehow(struct moments *s, size_t which, bool *yes)
{
	*yes = false;
	for (enum way way = FAILING_FIRST; way < NWAYS && (!*yes || s->best.grade < CLEAN || !s->best.met); way++) {
		bool here = false;

		if (way != YOUNG_FIRST || (!*yes && makes_one(s, which)))
			TRY(holds(s, which, way, &here));
		*yes |= here;
	}
	return NULL;
}

/* Backwards in growing steps until it holds, then forwards again to the last such place. */
static err_t search(struct moments *s)
{
	size_t good = 0, step = 1;
	bool yes = false;

	while (!yes && s->bad > 0 && !enough(s)) {
		good = s->bad > step ? s->bad - step : 0;
		TRY(holds_somehow(s, good, &yes));
		if (!yes)
			s->bad = good;
		step *= 2;
	}
	while (yes && s->bad - good > 1 && !enough(s)) {
		size_t middle = good + (s->bad - good) / 2;
		bool here;

		TRY(holds_somehow(s, middle, &here));
		if (here)
			good = middle;
		else
			s->bad = middle;
	}
	/* That it helps there may be by chance: what happened a little before may tell more. */
	while (yes && good > 0 && s->best.grade < CLEAN && !enough(s)) {
		bool here;

		TRY(holds_somehow(s, --good, &here));
	}
	return NULL;
}

/* Of moments from event `before` of the failing order on it is known that none helps. */
err_t moments_find(const struct candidate *base, bool known, size_t before, double effort, struct moments *s)
{
	const struct sched_order *failing = &base->answer->failing;
	struct explanation *e = base->e;
	struct sched_ref look;

	*s = (struct moments){ .base = base, .e = e, .failing = failing, .known = known,
			      .end = effort > 0 ? explain_effort(e) + effort : 0,
			      .of = xcalloc(failing->n + 1, sizeof *s->of),
			      .switches = xcalloc(failing->n + 1, sizeof *s->switches) };
	s->points = explain_points(base->extracted, failing, &s->npoints, s->of);
	/* A thread that fails in the middle of a long run of its own: the others might have come
	 * before it looked at what it failed by. */
	bool looks = onward_decisive_read(base->extracted->trace, &look);
	for (size_t i = 0; i < failing->n; i++)
		if (!i || failing->refs[i].thread != failing->refs[i - 1].thread ||
		    (looks && failing->refs[i].thread == look.thread && failing->refs[i].index == look.index))
			s->switches[s->nswitches++] = i;
	while (s->bad < s->nswitches && s->switches[s->bad] < before)
		s->bad++;
	index_order(s);
	return search(s);
}

const struct sym_event *moments_event(const struct moments *s, struct sched_ref r)
{
	return order_event(s->base->extracted->trace, r);
}

void moments_free(struct moments *s)
{
	free(s->points);
	free(s->of);
	free(s->previous);
	free(s->at_point);
	free(s->first);
	free(s->switches);
	executed_free(&s->best);
}
