/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an order tells that does not fail: the pair, of all that it turns round, that is about the root cause or cuts something in two. */
#include "analyzer/explain/moments.h"

/* What is turned round is looked for with both orders at hand. */
struct turning {
	const struct moments *s;
	const struct executed *new;
	struct order_places failing, there;
};

static bool is_by(const struct sched_edge *edge, uint32_t thread)
{
	return thread == edge->before.thread || thread == edge->after.thread;
}

/* Is this done by an instruction of the root cause, if at another time or by another thread? */
static bool is_done_in_cause(const struct moments *s, struct sched_ref r)
{
	const struct sched_answer *a = s->base->answer;
	uint64_t pc = moments_event(s, r)->pc;

	for (size_t i = 0; i < a->ncause; i++)
		if (pc == moments_event(s, a->cause[i].before)->pc || pc == moments_event(s, a->cause[i].after)->pc)
			return true;
	return false;
}

/* How close a pair is to the edge of the root cause that it is about. */
enum closeness { SAME_PLACES, ITS_THREADS, ONE_OF_ITS_THREADS, NCLOSENESS };

/* Two events on what the edge is about, not two reads. */
static bool touch_each_other(const struct moments *s, const struct sched_edge *edge, enum closeness how,
			     struct sched_ref a, struct sched_ref b)
{
	const struct sym_event *x = moments_event(s, a), *y = moments_event(s, b);

	return a.thread != b.thread && order_same_target(x, moments_event(s, edge->before)) &&
	       is_by(edge, a.thread) + is_by(edge, b.thread) >= (how == ONE_OF_ITS_THREADS ? 1 : 2) &&
	       order_conflict(x, y) &&
	       (how != SAME_PLACES || (is_done_in_cause(s, a) && is_done_in_cause(s, b)));
}

/* What came before y in the failing order and does not come before it, at `at`, in this one. */
static bool overtakes(const struct turning *x, const struct sched_edge *edge, enum closeness how, size_t at,
		      struct sched_edge *pair)
{
	const struct moments *s = x->s;
	struct sched_ref y = x->new->order.refs[at];

	/* What is about something else overtakes nothing: no need to look. */
	if (!order_same_target(moments_event(s, y), moments_event(s, edge->before)))
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
	const struct moments *s = x->s;
	const struct sched_answer *a = s->base->answer;

	for (size_t at = x->new->kept; at < x->new->order.n; at++)
		for (size_t i = 0; i < a->ncause; i++) {
			if (!order_same_target(moments_event(s, a->cause[i].before),
					 moments_event(s, a->cause[i].after)) ||
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
enum telling telling_pair(const struct moments *s, struct executed *new)
{
	const struct sym_trace *t = s->base->extracted->trace;
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

/* Without a root cause to compare with: what happened from the switch on, until it is too late. */
enum telling telling_own_pair(const struct moments *s, size_t which, struct executed *new)
{
	size_t too_late = which < s->bad ? s->bad : which + 1;
	size_t to = too_late < s->nswitches ? s->switches[too_late] : s->failing->n;

	new->pair = (struct sched_edge){ { 0, SYM_NONE }, { 0, SYM_NONE } };
	new->end = new->order.n;
	return explain_decisive_pair(s->base->extracted->trace, s->failing, s->switches[which], to,
				     &new->order, new->kept, &new->pair, &new->end) >=
	       EXPLAIN_PAIR_CUTS_GUARDED ? TELLS : LEADS_ASIDE;
}
