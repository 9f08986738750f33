/*
 * An alternate found by executing: up to some moment as in the failing order, from there
 * on one thread after the other, each as far as it can go.
 *
 * Solving finds orders that turn the branch before the failure; where the damage was
 * done in many places (several lost updates, one audit at the end) each of them fails
 * behind that all the same. Threads that are not interrupted are what the programmer had
 * in mind, so they are tried from the end backwards: the later the moment, the more of
 * the failing order is kept.
 */
#include "analyzer/explain/judge.h"

#include <string.h>

/* How they go on: who fails first of all, or last, or who is made before its creator. */
enum way { FAILING_FIRST, OTHERS_FIRST, YOUNG_FIRST, NWAYS };

/* Each of the ways, to and fro between a thousand switches. */
#define MOST_TRIES (NWAYS * 24)

/*
 * How much of an order can be told: what it turns round of the root cause or where the same was
 * done at another time; something else, which leads aside; or nothing, because it avoids the
 * failure by what was never recorded.
 */
enum telling { TELLS_NOTHING, LEADS_ASIDE, TELLS };

/* How good an order is, as executed and told, from worst to best. */
enum grade { FAILS, MUTE_AND_FAILS_LATER, MUTE, ASIDE, FAILS_LATER, CLEAN };

struct executed {
	struct sched_order order;
	size_t kept;            /* so many of its events are as in the failing order */
	struct sched_edge pair; /* that it turns round; index SYM_NONE: none */
	size_t end;             /* where both of these are behind */
	enum grade grade;
	char *why;
};

struct serial {
	struct explanation *e;
	const struct sched_order *failing;
	struct mach_point *points;
	size_t npoints;
	size_t *of;       /* by event of the failing order, see explain_points() */
	size_t *previous; /* by event of the failing order: the one of its thread before it, + 1; 0: none */
	size_t *at_point; /* events of the failing order, by point: those of point p (from 1) are ... */
	size_t *first;    /* ... at_point[first[p] .. first[p + 1]) */
	size_t *switches; /* places in the failing order where another thread goes on; 0 first */
	size_t nswitches;
	size_t bad;       /* from this switch on none helps */
	bool known;       /* there is a root cause that orders are compared with */
	bool taken;       /* it is the answer now */
	unsigned tries;
	double end;       /* in effort; 0: none */
	struct executed best;
};

/* What the solver could name; what it could not, or not for sure, is told by executing alone. */
bool explain_has_cause(const struct explanation *e)
{
	return e->answer->ncause && e->answer->cause_minimal;
}

/*
 * Executing is cheap: it goes on until something is found though the solver has used up what
 * nobody limited. One thread after the other from the beginning seldom fails.
 */
static bool enough(const struct serial *s)
{
	return s->tries >= MOST_TRIES || explain_past_deadline(s->e) ||
	       (s->end > 0 && explain_effort(s->e) >= s->end) ||
	       (s->best.grade > FAILS && explain_out_of_time(s->e));
}

/* Appends what the thread did in the failing order up to this event, unless it is there. */
static void append(const struct serial *s, struct sched_order *o, bool *there, size_t upto)
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
static void index_order(struct serial *s)
{
	const struct sched_order *f = s->failing;
	size_t *last = xcalloc(s->e->extracted->trace->nthreads + 1, sizeof *last);
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
static struct executed as_executed(const struct serial *s, size_t from, const struct mach_outcome *out)
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

/* ---- what an order tells ---- */

static const struct sym_event *event_at(const struct serial *s, struct sched_ref r)
{
	return order_event(s->e->extracted->trace, r);
}

/* What is turned round is looked for with both orders at hand. */
struct turning {
	const struct serial *s;
	const struct executed *new;
	struct order_places failing, there;
};

static bool is_by(const struct sched_edge *edge, uint32_t thread)
{
	return thread == edge->before.thread || thread == edge->after.thread;
}

/* Is this done by an instruction of the root cause, if at another time or by another thread? */
static bool is_done_in_cause(const struct serial *s, struct sched_ref r)
{
	const struct sched_answer *a = s->e->answer;
	uint64_t pc = event_at(s, r)->pc;

	for (size_t i = 0; i < a->ncause; i++)
		if (pc == event_at(s, a->cause[i].before)->pc || pc == event_at(s, a->cause[i].after)->pc)
			return true;
	return false;
}

/* How close a pair is to the edge of the root cause that it is about. */
enum closeness { SAME_PLACES, ITS_THREADS, ONE_OF_ITS_THREADS, NCLOSENESS };

/* Two events on what the edge is about, not two reads. */
static bool touch_each_other(const struct serial *s, const struct sched_edge *edge, enum closeness how,
			     struct sched_ref a, struct sched_ref b)
{
	const struct sym_event *x = event_at(s, a), *y = event_at(s, b);

	return a.thread != b.thread && order_same_target(x, event_at(s, edge->before)) &&
	       is_by(edge, a.thread) + is_by(edge, b.thread) >= (how == ONE_OF_ITS_THREADS ? 1 : 2) &&
	       order_conflict(x, y) &&
	       (how != SAME_PLACES || (is_done_in_cause(s, a) && is_done_in_cause(s, b)));
}

/* What came before y in the failing order and does not come before it, at `at`, in this one. */
static bool overtakes(const struct turning *x, const struct sched_edge *edge, enum closeness how, size_t at,
		      struct sched_edge *pair)
{
	const struct serial *s = x->s;
	struct sched_ref y = x->new->order.refs[at];

	/* What is about something else overtakes nothing: no need to look. */
	if (!order_same_target(event_at(s, y), event_at(s, edge->before)))
		return false;
	for (size_t i = order_place(&x->failing, y); i-- > 0;) {
		struct sched_ref z = s->failing->refs[i];

		if (!touch_each_other(s, edge, how, z, y) || order_place(&x->there, z) < at)
			continue;
		*pair = (struct sched_edge){ .before = z, .after = y };
		return true;
	}
	return false;
}

static bool first_pair(const struct turning *x, enum closeness how, struct sched_edge *pair, size_t *end)
{
	const struct serial *s = x->s;
	const struct sched_answer *a = s->e->answer;

	for (size_t at = x->new->kept; at < x->new->order.n; at++)
		for (size_t i = 0; i < a->ncause; i++) {
			if (!order_same_target(event_at(s, a->cause[i].before),
					 event_at(s, a->cause[i].after)) ||
			    !overtakes(x, &a->cause[i], how, at, pair))
				continue;
			size_t other = order_place(&x->there, pair->before);

			*end = other == SIZE_MAX ? at + 1 : other + 1;
			return true;
		}
	return false;
}

/*
 * The first pair about the root cause that this order turns round, of the closest there are.
 * What follows is each thread going on: it differs in many ways that tell nothing.
 */
static enum telling find_pair(const struct serial *s, struct executed *new)
{
	const struct sym_trace *t = s->e->extracted->trace;
	struct turning x = { s, new, order_places_of(t, s->failing), order_places_of(t, &new->order) };

	new->pair = (struct sched_edge){ { 0, SYM_NONE }, { 0, SYM_NONE } };
	new->end = new->order.n;
	enum closeness how = SAME_PLACES;
	while (how < NCLOSENESS && !first_pair(&x, how, &new->pair, &new->end))
		how++;
	order_places_free(&x.failing);
	order_places_free(&x.there);
	return how == SAME_PLACES ? TELLS : how < NCLOSENESS ? LEADS_ASIDE : TELLS_NOTHING;
}

/* ---- executing ---- */

static enum grade grade_of(const struct mach_outcome *out, enum telling told)
{
	static const enum grade clean[] = { MUTE, ASIDE, CLEAN };

	if (out->fails_later)
		return told == TELLS_NOTHING ? MUTE_AND_FAILS_LATER : FAILS_LATER;
	return clean[told];
}

/* Without a root cause to compare with: what happened from the switch on, until it is too late. */
static enum telling find_own_pair(const struct serial *s, size_t which, struct executed *new)
{
	size_t too_late = which < s->bad ? s->bad : which + 1;
	size_t to = too_late < s->nswitches ? s->switches[too_late] : s->failing->n;

	new->pair = (struct sched_edge){ { 0, SYM_NONE }, { 0, SYM_NONE } };
	new->end = new->order.n;
	return explain_decisive_pair(s->e->extracted->trace, s->failing, s->switches[which], to,
				     &new->order, new->kept, &new->pair, &new->end) >=
	       EXPLAIN_PAIR_CUTS_GUARDED ? TELLS : LEADS_ASIDE;
}

/*
 * The better of two stays; of two good ones the one that keeps more of the failing order. Without
 * a root cause to compare with it is enough for having found the place that it does not fail.
 */
static bool judge(struct serial *s, size_t which, const struct mach_outcome *out)
{
	struct executed new = as_executed(s, s->switches[which], out);
	enum telling told = s->known ? find_pair(s, &new) : find_own_pair(s, which, &new);
	enum grade enough = s->known ? CLEAN : ASIDE;

	new.grade = grade_of(out, out->fails_later && !s->known ? TELLS_NOTHING : told);
	if (new.grade > s->best.grade ||
	    (new.grade == s->best.grade && new.grade >= enough && new.kept >= s->best.kept)) {
		executed_free(&s->best);
		s->best = new;
	} else {
		executed_free(&new);
	}
	return new.grade >= enough;
}

/* Threads go freely from the switch on: does that hold? */
static err_t holds(struct serial *s, size_t which, enum way way, bool *yes)
{
	size_t from = s->switches[which], strict = 0;
	const struct mach_point *fate = &s->e->extracted->fate, *brink = &s->e->extracted->brink;
	struct mach_outcome out = { 0 };

	for (size_t i = 0; i < from; i++)
		strict = s->of[i] > strict ? s->of[i] : strict;

	struct mach_order o = {
		.from = s->e->extracted->from, .points = s->points, .npoints = s->npoints,
		.loose = s->npoints - strict, .others_first = way == OTHERS_FIRST, .young_first = way == YOUNG_FIRST,
		.fate = fate->thread == SYM_NONE ? NULL : fate,
		.brink = brink->thread == SYM_NONE ? NULL : brink,
		.onward_insns = s->e->extracted->onward_insns,
	};
	err_t bad = o.loose ? mach_execute(s->e->run, &o, &out) : NULL;

	s->tries++;
	if (!bad && o.loose)
		explain_count_tried(s->e, &out);
	s->e->ordered_insns += out.insns;
	s->e->printed |= out.printed;
	*yes = false;
	if (!bad && o.loose && out.kind == MACH_OUT_PASSED && !out.recurs && !mach_fails_in_handler(s->e->run))
		*yes = judge(s, which, &out);
	mach_outcome_free(&out);
	return bad;
}

/* Is a thread made from the switch on? */
static bool makes_one(const struct serial *s, size_t which)
{
	for (size_t i = s->switches[which]; i < s->failing->n; i++)
		if (event_at(s, s->failing->refs[i])->op == SYM_FORK)
			return true;
	return false;
}

static err_t holds_somehow(struct serial *s, size_t which, bool *yes)
{
	*yes = false;
	for (enum way way = FAILING_FIRST; way < NWAYS && (!*yes || s->best.grade < CLEAN); way++) {
		bool here = false;

		if (way != YOUNG_FIRST || (!*yes && makes_one(s, which)))
			TRY(holds(s, which, way, &here));
		*yes |= here;
	}
	return NULL;
}

/* Backwards in growing steps until it holds, then forwards again to the last such place. */
static err_t search(struct serial *s)
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

/* The root cause, where the solver has none for sure, or one that was refuted: the pair that the run was saved by turning. */
static void tell_pair(struct serial *s)
{
	struct sched_answer *a = s->e->answer;

	if (s->known || s->best.pair.before.index == SYM_NONE)
		return;
	a->cause = xrealloc(a->cause, sizeof *a->cause);
	a->cause[0] = s->best.pair;
	a->ncause = 1;
	a->cause_minimal = true;
	a->cause_events = 0;
	free(a->why); /* what the solver could not do */
	a->why = NULL;
	a->cause_executed = true;
	a->cause_kept = s->best.kept;
}

static void make_first(struct serial *s)
{
	struct sched_answer *a = s->e->answer;
	struct report_proof *proof = &s->e->alternate_proof.by[REPORT_MACHINE];
	struct sched_alternate *first;

	a->alternates = xrealloc(a->alternates, (a->nalternates + 1) * sizeof *a->alternates);
	memmove(a->alternates + 1, a->alternates, a->nalternates * sizeof *a->alternates);
	a->nalternates++;
	first = &a->alternates[0];
	*first = (struct sched_alternate){
		.order = { .refs = s->best.order.refs, .n = s->best.end }, .inverted = s->best.pair,
		.left = { .thread = SYM_NONE },
		.path_differs = s->best.end < s->failing->n, .executed = true,
	};
	s->best.order.refs = NULL;
	/* The solver had found that nothing helps, as far as it sees; this was executed. */
	if (a->deterministic) {
		free(a->why);
		a->why = NULL;
	}
	a->deterministic = false;
	free(s->e->alternate_why);
	s->e->alternate_why = s->best.why;
	s->best.why = NULL;
	*proof = (struct report_proof){ .runs = 1, .agreed = 1, .why = s->e->alternate_why,
					.fails_later = s->best.grade == FAILS_LATER || s->best.grade == MUTE_AND_FAILS_LATER };
}

/* What the solver found tells, or it would not have been found. */
static enum grade grade_at_hand(const struct explanation *e)
{
	static const enum grade grades[] = {
		[JUDGE_DOES_NOT_PASS] = FAILS, [JUDGE_PASSES_AND_FAILS] = FAILS_LATER, [JUDGE_PASSES] = CLEAN,
	};

	return grades[judge_passing(e)];
}

/* Of moments from event `before` of the failing order on it is known that none helps. */
static err_t serial_new(struct explanation *e, bool known, size_t before, struct serial *s)
{
	const struct sched_order *failing = &e->answer->failing;
	struct sched_ref look;

	*s = (struct serial){ .e = e, .failing = failing, .known = known,
			      /* As much as the solver, when it is to be found soon. */
			      .end = e->soon > 0 ? explain_effort(e) + e->soon : 0,
			      .of = xcalloc(failing->n + 1, sizeof *s->of),
			      .switches = xcalloc(failing->n + 1, sizeof *s->switches) };
	s->points = explain_points(e->extracted, failing, &s->npoints, s->of);
	/* A thread that fails in the middle of a long run of its own: the others might have come
	 * before it looked at what it failed by. */
	bool looks = explain_decisive_read(e->extracted->trace, &look);
	for (size_t i = 0; i < failing->n; i++)
		if (!i || failing->refs[i].thread != failing->refs[i - 1].thread ||
		    (looks && failing->refs[i].thread == look.thread && failing->refs[i].index == look.index))
			s->switches[s->nswitches++] = i;
	while (s->bad < s->nswitches && s->switches[s->bad] < before)
		s->bad++;
	index_order(s);
	return search(s);
}

static void serial_free(struct serial *s)
{
	free(s->points);
	free(s->of);
	free(s->previous);
	free(s->at_point);
	free(s->first);
	free(s->switches);
	executed_free(&s->best);
}

/* It passes, and has every ordering of the root cause: then these are not why the run fails. */
static bool refutes_cause(const struct serial *s)
{
	const struct sched_answer *a = s->e->answer;
	struct order_places there = order_places_of(s->e->extracted->trace, &s->best.order);
	bool all = a->ncause > 0;

	for (size_t i = 0; i < a->ncause && all; i++) {
		size_t after = order_place(&there, a->cause[i].after);

		all = after != SIZE_MAX && order_place(&there, a->cause[i].before) < after;
	}
	order_places_free(&there);
	return all;
}

static void take_over(struct serial *s)
{
	s->taken = true;
	s->known = s->known && !refutes_cause(s);
	tell_pair(s);
	make_first(s);
}

/* What executing came to, whether it is told or not. */
static void note_attempt(const struct serial *s, double since)
{
	static const char *const grades[] = {
		[FAILS] = "none avoids it", [MUTE_AND_FAILS_LATER] = "one fails later, and says nothing of a cause",
		[MUTE] = "one avoids it, and says nothing of a cause", [ASIDE] = "one avoids it by another pair",
		[FAILS_LATER] = "one fails later", [CLEAN] = "one does not fail",
	};
	char *text = xasprintf("%u orders executed, %s%s", s->tries, grades[s->best.grade],
			       s->known ? " (compared with the cause at hand)" : "");

	explain_attempt(s->e, "difference", since, text, s->taken);
	free(text);
}

err_t explain_serial(struct explanation *e, size_t before)
{
	struct serial s;
	double since = explain_effort(e);
	bool known = explain_has_cause(e);
	err_t bad = serial_new(e, known, before, &s);

	/* While the solver may still find a better one it has to tell something. */
	if (s.best.grade == CLEAN ? !s.known || grade_at_hand(e) < CLEAN :
	    e->soon <= 0 && s.best.grade > grade_at_hand(e))
		take_over(&s);
	note_attempt(&s, since);
	/* Turning what the solver named only puts the failure off: then whatever saves the run is told. */
	if (!bad && known && grade_at_hand(e) == FAILS_LATER && !explain_out_of_time(e)) {
		serial_free(&s);
		since = explain_effort(e);
		bad = serial_new(e, false, before, &s);
		if (s.best.grade == CLEAN)
			take_over(&s);
		note_attempt(&s, since);
	}
	serial_free(&s);
	return bad;
}
