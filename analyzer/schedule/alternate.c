/*
 * Alternates: runs that do not fail and differ little from the one that does.
 *
 * For each ordering of the root cause, the pair nearest together first, the
 * pair is turned round: by moving the stretch of one thread past the other,
 * which only has to be executed, or by the solver, which is then asked to keep
 * as many of the other orderings as it can.
 */
#include "analyzer/schedule/work.h"

#include <string.h>

struct found {
	uint32_t *order;
	size_t n;
	uint32_t edge;
	bool single;
	size_t distance;
};

struct alternates {
	struct work *w;
	struct study *s;
	VEC(struct found) found;
	uint64_t *place; /* by event: scratch */
	VEC(uint32_t) keep;
	double start; /* effort spent before */
};

static void places(struct alternates *x, const uint32_t *order, size_t n)
{
	memset(x->place, 0xff, x->w->v->n * sizeof *x->place);
	for (size_t k = 0; k < n; k++)
		x->place[order[k]] = k;
}

static bool already_found(const struct alternates *x, const uint32_t *order, size_t n)
{
	for (size_t i = 0; i < x->found.n; i++)
		if (x->found.v[i].n == n &&
		    !memcmp(x->found.v[i].order, order, n * sizeof *order))
			return true;
	return false;
}

/* Takes the order over; executes it first. */
static bool accept(struct alternates *x, uint32_t *order, size_t n, uint32_t edge, bool single)
{
	if (!work_avoids(x->w, order, n, x->s->diverge) || already_found(x, order, n)) {
		free(order);
		return false;
	}
	vec_push(&x->found, (struct found){ order, n, edge, single, order_distance(x->w->v, x->w->rank, order, n) });
	return true;
}

/*
 * What stands the other way round than in the failing schedule for no reason is
 * turned back, neighbours at a time: each result is executed. In the end no
 * two neighbours are left that could be.
 */
static void settle(struct alternates *x, uint32_t *order, size_t n)
{
	struct study *s = x->s;
	double end = x->w->limit.spent + GROW_ALL;
	size_t k = s->from;

	while (k + 1 < n && x->w->limit.spent < end && !work_stopped(x->w)) {
		uint32_t a = order[k], b = order[k + 1];

		if (x->w->rank[a] > x->w->rank[b] && x->w->v->ev[a].chain != x->w->v->ev[b].chain) {
			order[k] = b;
			order[k + 1] = a;
			if (study_avoids(s, order + s->from, n - s->from)) {
				k -= k > s->from;
				continue;
			}
			order[k] = a;
			order[k + 1] = b;
		}
		k++;
	}
}

static bool turn_by_moving(struct alternates *x, uint32_t edge)
{
	uint32_t *order = xcalloc(x->w->v->n + 1, sizeof *order);

	x->w->a->stats.pairs_tried++;
	memcpy(order, x->w->order, x->s->from * sizeof *order);
	size_t n = turn_directly(x->s, edge, NULL, 0, order + x->s->from);
	if (n) {
		settle(x, order, x->s->from + n);
		return accept(x, order, x->s->from + n, edge, true);
	}
	free(order);
	return false;
}

/* Which edges does this order keep? Returns how many. */
static size_t kept_edges(struct alternates *x, const uint32_t *order, size_t n, bool *kept)
{
	size_t count = 0;

	places(x, order, n);
	for (size_t k = 0; k < x->s->edges.n; k++) {
		const struct study_edge *e = &x->s->edges.v[k];

		kept[k] = x->place[e->before] < x->place[e->after] ||
			  (x->place[e->before] == UINT64_MAX && x->place[e->after] == UINT64_MAX);
		count += kept[k];
	}
	return count;
}

/* kept[] edges, then up to `more` of the others that were not refused; how many of those. */
static size_t gather(struct alternates *x, const bool *kept, const bool *refused, size_t more)
{
	size_t added = 0;

	x->keep.n = 0;
	for (uint32_t i = 0; i < x->s->edges.n; i++)
		if (kept[i])
			vec_push(&x->keep, i);
	for (uint32_t i = 0; i < x->s->edges.n && added < more; i++) {
		if (!kept[i] && !refused[i]) {
			vec_push(&x->keep, i);
			added++;
		}
	}
	return added;
}

/*
 * Starting from any solution, ask for orderings it broke to be kept as well:
 * many at once, fewer when that is too much, one that is too much alone is
 * given up. What an answer keeps by itself is kept for free.
 */
static void come_closer(struct alternates *x, uint32_t edge, uint32_t **order, size_t *n)
{
	struct study *s = x->s;
	bool *kept = xcalloc(s->edges.n + 1, 1), *refused = xcalloc(s->edges.n + 1, 1);
	double end = x->w->limit.spent + GROW_ALL;
	size_t chunk = s->edges.n, added;

	kept_edges(x, *order, *n, kept);
	refused[edge] = true;
	for (int asked = 0; asked < GROW_QUESTIONS && x->w->limit.spent < end; asked++) {
		uint32_t *better;
		size_t m;

		added = gather(x, kept, refused, chunk);
		if (!added)
			break;
		if (study_ask(s, x->keep.v, x->keep.n, edge, end - x->w->limit.spent + 0.01) != SMT_SAT) {
			if (added == 1)
				refused[x->keep.v[x->keep.n - 1]] = true;
			chunk = added > 4 ? added / 4 : 1;
			continue;
		}
		better = study_order(s, &m);
		if (!study_avoids(s, better + s->from, m - s->from)) {
			free(better);
			break;
		}
		free(*order);
		*order = better;
		*n = m;
		kept_edges(x, *order, *n, kept);
		chunk *= 2;
	}
	free(kept);
	free(refused);
}

static bool turn_by_solver(struct alternates *x, uint32_t edge, double effort)
{
	struct study *s = x->s;
	uint32_t *order;
	bool *kept;
	size_t n, turned;

	/* Out of a deadlock best everybody gets; one of them is enough. */
	s->everybody = x->w->v->deadlock;
	if (s->everybody && study_ask(s, NULL, 0, edge, effort) != SMT_SAT)
		s->everybody = false;
	if (!s->everybody && study_ask(s, NULL, 0, edge, effort) != SMT_SAT)
		return false;
	order = study_order(s, &n);
	if (!work_avoids(x->w, order, n, s->diverge)) {
		work_why(x->w, "an alternate of the solver did not survive its execution");
		free(order);
		return false;
	}
	come_closer(x, edge, &order, &n);
	settle(x, order, n);
	s->everybody = false;
	kept = xcalloc(s->edges.n + 1, 1);
	turned = s->edges.n - kept_edges(x, order, n, kept);
	free(kept);
	return accept(x, order, n, edge, turned <= 1);
}

static int by_distance(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return (x->distance > y->distance) - (x->distance < y->distance);
}

static void turn_each(struct alternates *x, uint32_t *edges, size_t n, size_t want, double effort)
{
	turn_sort(x->s, edges, n);
	for (size_t i = 0; i < n && x->found.n < want && !work_stopped(x->w) &&
	     x->w->limit.spent < x->start + TURN_ALL; i++) {
		/* More than were asked for only while that is little effort. */
		if (x->found.n >= x->w->o->alternates && x->w->limit.spent > x->start + GROW_ALL)
			break;
		if (!turn_by_moving(x, edges[i]) && effort > 0)
			turn_by_solver(x, edges[i], effort);
	}
}

/* Turning was too hard, but a way out was met before: it turns one of these. */
static void use_witness(struct alternates *x, const uint32_t *cause, size_t ncause)
{
	struct study *s = x->s;
	uint32_t *order = xcalloc(x->w->v->n + 1, sizeof *order), edge = SYM_NONE;
	bool *kept = xcalloc(s->edges.n + 1, 1);

	memcpy(order, s->witness, s->nwitness * sizeof *order);
	settle(x, order, s->nwitness);
	kept_edges(x, order, s->nwitness, kept);
	for (size_t i = 0; i < ncause && edge == SYM_NONE; i++)
		if (!kept[cause[i]])
			edge = cause[i];
	for (uint32_t k = 0; k < s->edges.n && edge == SYM_NONE; k++)
		if (!kept[k])
			edge = k;
	free(kept);
	accept(x, order, s->nwitness, edge, false);
}

/* Exact up to where the path is no longer the recorded one; there it ends. */
static size_t exact_part(const struct work *w, const struct found *f)
{
	for (size_t k = 0; w->relax != SYM_NONE && k < f->n; k++)
		if (f->order[k] == w->v->conds[w->relax].after)
			return k + 1;
	return f->n;
}

static void export(struct alternates *x)
{
	struct work *w = x->w;
	size_t n = x->found.n < w->o->alternates ? x->found.n : w->o->alternates;

	if (x->found.n)
		qsort(x->found.v, x->found.n, sizeof *x->found.v, by_distance);
	w->a->alternates = xcalloc(n + 1, sizeof *w->a->alternates);
	w->a->nalternates = n;
	for (size_t i = 0; i < n; i++) {
		const struct found *f = &x->found.v[i];
		struct sched_alternate *a = &w->a->alternates[i];

		work_export(w, f->order, exact_part(w, f), false, &a->order);
		if (f->edge != SYM_NONE) {
			a->inverted.before = order_view_ref(w->v, x->s->edges.v[f->edge].before);
			a->inverted.after = order_view_ref(w->v, x->s->edges.v[f->edge].after);
		}
		a->single = f->single;
		uint32_t left = x->s->diverge != SYM_NONE ? x->s->diverge : w->relax;

		a->path_differs = left != SYM_NONE;
		if (a->path_differs)
			a->left = (struct sched_ref){ w->v->conds[left].thread,
						      w->v->conds[left].number };
		a->distance = f->distance;
	}
}

void find_alternates(struct work *w, struct study *s, const uint32_t *cause, size_t ncause,
		     bool by_moving)
{
	struct alternates x = { .w = w, .s = s, .start = w->limit.spent };
	VEC(uint32_t) list = { 0 };
	/* A few more than asked for, so that the closest can be chosen. */
	size_t want = w->o->alternates ? w->o->alternates + 1 : 0;

	x.place = xcalloc(w->v->n + 1, sizeof *x.place);
	for (size_t i = 0; i < ncause; i++)
		vec_push(&list, cause[i]);
	/* What the solver did not know about the cause it will not know here. */
	bool hopeless = s->by_states && s->witness;
	turn_each(&x, list.v, list.n, want, by_moving || hopeless ? 0 : TURN_ASK);
	if (x.found.n < w->o->alternates && !by_moving && !hopeless) {
		list.n = 0;
		for (uint32_t k = 0; k < s->edges.n; k++)
			vec_push(&list, k);
		turn_each(&x, list.v, list.n, w->o->alternates, TURN_ASK);
	}
	if (!x.found.n && s->witness && w->o->alternates)
		use_witness(&x, cause, ncause);
	export(&x);
	for (size_t i = 0; i < x.found.n; i++)
		free(x.found.v[i].order);
	vec_free(&x.found);
	vec_free(&x.keep);
	vec_free(&list);
	free(x.place);
}
