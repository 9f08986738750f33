/*
 * What a saved run tells. Executing (difference.c) has shown that the run is saved when threads go on
 * undisturbed from some moment of the failing order. What happened instead is that one thread went
 * on there, before another could do its part: of the pairs that the saving order turns round, the
 * first one that cut something in two.
 */
#include "analyzer/explain/candidate.h"

#include <string.h>

struct look {
	const struct sym_trace *t;
	const struct sched_order *failing, *saving;
	struct order_places failing_at, saving_at;
};

/*
 * y's thread was made behind z, or has waited for the end of z's thread: that z is not there, where
 * the run is saved, is no order that anybody could ask for.
 */
static bool is_settled(const struct look *l, struct sched_ref z, struct sched_ref y)
{
	return order_leads_to(l->t, SYM_FORK, z.thread, z.index + 1, SYM_NONE, y.thread) ||
	       order_leads_to(l->t, SYM_JOIN, y.thread, 0, y.index, z.thread);
}

/*
 * Two updates that are each a step of its own, or two rounds of a loop, are not one thing that could be cut,
 * unless the second goes on with what the first one read, or would not be there without it.
 */
static bool are_apart(const struct sym_trace *t, const struct sym_event *first, const struct sym_event *between,
		      const struct sym_event *last)
{
	bool steps = first->op == SYM_RMW && last->op == SYM_RMW && order_writes(between);
	bool rounds = first->pc && first->pc == last->pc && !dsp_decides_on_way(t, first, last);

	return (steps || rounds) && !dsp_mentions_read(t, last->value, first);
}

/* z came before y in the failing order, and does not where it was saved. */
static enum explain_pair weigh(const struct look *l, struct sched_ref z, struct sched_ref y)
{
	const struct sym_event *ez = order_event(l->t, z), *ey = order_event(l->t, y);
	uint32_t least = y.index > (uint32_t)LIMIT_CUT_EVENTS ? y.index - (uint32_t)LIMIT_CUT_EVENTS : 0;

	if (!order_is_access(ey))
		return EXPLAIN_PAIR_OBJECTS;
	for (uint32_t i = y.index; i-- > least;) {
		const struct sym_event *e = &l->t->threads[y.thread].events[i];

		if (!order_is_access(e) || e->target != ey->target)
			continue;
		if (order_place(&l->failing_at, (struct sched_ref){ y.thread, i }) > order_place(&l->failing_at, z))
			continue;
		if (are_apart(l->t, e, ez, ey))
			return EXPLAIN_PAIR_ACCESSES;
		/* What changed under its hands, or was seen before it had changed it. */
		if (!order_writes(ez) && e->op == SYM_WRITE)
			return EXPLAIN_PAIR_ACCESSES;
		return order_guarded(l->t, &l->failing_at, z, y) ? EXPLAIN_PAIR_CUTS_GUARDED : EXPLAIN_PAIR_CUTS;
	}
	return EXPLAIN_PAIR_ACCESSES;
}

enum explain_pair explain_decisive_pair(const struct sym_trace *t, const struct sched_order *failing,
					size_t from, size_t to, const struct sched_order *saving,
					size_t kept, struct sched_edge *pair, size_t *end)
{
	struct look l = { t, failing, saving, order_places_of(t, failing), order_places_of(t, saving) };
	enum explain_pair best = EXPLAIN_PAIR_NONE;
	size_t last = saving->n - kept > (size_t)LIMIT_REACH ? kept + (size_t)LIMIT_REACH : saving->n;
	unsigned weighed = 0;

	if (to - from > (size_t)LIMIT_REACH)
		from = to - (size_t)LIMIT_REACH;
	for (size_t at = kept; at < last && best < EXPLAIN_PAIR_CUTS && weighed < LIMIT_WEIGHED; at++) {
		struct sched_ref y = saving->refs[at];

		for (size_t i = from; i < to && i < order_place(&l.failing_at, y); i++) {
			struct sched_ref z = failing->refs[i];
			size_t there = order_place(&l.saving_at, z);

			if (z.thread == y.thread || there < at ||
			    !order_conflict(order_event(t, z), order_event(t, y)))
				continue;
			enum explain_pair w = weigh(&l, z, y);
			weighed++;
			if (w <= best || is_settled(&l, z, y))
				continue;
			best = w;
			*pair = (struct sched_edge){ .before = z, .after = y };
			*end = there == SIZE_MAX ? at + 1 : there + 1;
		}
	}
	order_places_free(&l.failing_at);
	order_places_free(&l.saving_at);
	return best;
}
