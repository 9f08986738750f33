/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instances of memory-access patterns in a trace, and the rules that filter them. */
#include "analyzer/explore/patterns.h"

#include <string.h>

#define MAX_INSTANCES 4000000u /* of one trace */
#define COUNT_EACH 400u        /* accesses of a variable: of more what is interrupted is not asked whether it is new */

const char *const xpl_rule_name[XPL_RULES] = {
	[XPL_RULE_NONE] = "none",
	[XPL_RULE_UNDEFINED] = "non-defined",
	[XPL_RULE_COVERED] = "covered",
	[XPL_RULE_ORDER] = "happens-before",
	[XPL_RULE_OLD_STATE] = "old-state",
	[XPL_RULE_INTERRUPTED] = "interrupted",
	[XPL_RULE_REDUNDANT] = "redundant",
};

const struct xpl_kind xpl_kinds[XPL_KINDS + 1] = {
	[1] = { "RW", "ab", "xx" },      [2] = { "WR", "ab", "xx" },      [3] = { "WW", "ab", "xx" },
	[4] = { "RWR", "aba", "xxx" },   [5] = { "WWR", "aba", "xxx" },   [6] = { "WRW", "aba", "xxx" },
	[7] = { "RWW", "aba", "xxx" },   [8] = { "WWW", "aba", "xxx" },   [9] = { "WWWW", "abba", "xxyy" },
	[10] = { "WWWW", "abba", "xyxy" }, [11] = { "WWWW", "abab", "xyyx" }, [12] = { "WRRW", "abba", "xxyy" },
	[13] = { "WRRW", "abba", "xyxy" }, [14] = { "RWWR", "abba", "xxyy" }, [15] = { "RWWR", "abba", "xyxy" },
	[16] = { "RWRW", "abab", "xyyx" }, [17] = { "WRWR", "abab", "xyyx" },
};

/* What is known of each event, for quick questions. */
struct access {
	uint32_t writes; /* of its variable, up to and with it, in the trace's order */
	uint32_t own;    /* the same thread's next access of the variable, as a number; XPL_NONE */
	uint32_t before, before_writes; /* the same thread's earlier ones: how many, and of these writing */
	uint32_t after, after_writes;   /* its later ones */
};

struct gen {
	const struct xpl_trace *t;
	struct xpl_life *life;
	struct access *a;       /* by event */
	VEC(uint32_t) *of_var;  /* events by variable, in order */
	bool (*tell)(void *arg, const struct xpl_pattern *p);
	void *arg;
	uint64_t *filtered;
	uint64_t told;
	bool full;
};

static const struct xpl_event *ev(const struct gen *g, uint32_t number)
{
	return &g->t->events.v[number];
}

static bool is_step(const struct xpl_event *e)
{
	return xpl_is_access(e) && e->program && e->place;
}

/* An update that cannot be cut in two stands for its write as well as for its read. */
static bool can_be(const struct xpl_event *e, char what)
{
	return what == 'R' ? xpl_reads(e) : xpl_writes(e);
}

/* Nobody but the steps writes the variable between two of them, in the trace's order. */
static bool uninterrupted(const struct gen *g, const struct xpl_pattern *p, unsigned from, unsigned to)
{
	uint32_t between = g->a[p->steps[to]].writes - g->a[p->steps[from]].writes;
	uint32_t own = 0;

	for (unsigned i = from + 1; i <= to; i++)
		own += ev(g, p->steps[i])->target == ev(g, p->steps[from])->target &&
		       xpl_writes(ev(g, p->steps[i]));
	return between == own;
}

/* Does the trace's own order show it? */
static bool shown(const struct gen *g, const struct xpl_pattern *p)
{
	for (unsigned i = 1; i < p->n; i++)
		if (p->steps[i] < p->steps[i - 1])
			return false;
	for (unsigned i = 0; i < p->n; i++)
		for (unsigned k = p->n; k-- > i + 1;)
			if (ev(g, p->steps[i])->target == ev(g, p->steps[k])->target) {
				if (!uninterrupted(g, p, i, k))
					return false;
				break;
			}
	return true;
}

enum newness { SAME, REORDERED, NEW_VALUE };

/* Two steps on one variable, one behind the other: what is new about that? */
static enum newness newness_of(const struct gen *g, uint32_t first, uint32_t second)
{
	const struct xpl_event *a = ev(g, first), *b = ev(g, second);

	if (xpl_writes(a) && xpl_reads(b)) {
		uint64_t mask = a->mask & b->mask;

		return (a->wvalue & mask) != (b->value & mask) ? NEW_VALUE : SAME;
	}
	return first > second ? REORDERED : SAME;
}

static void judge(const struct gen *g, struct xpl_pattern *p)
{
	enum newness most = SAME;
	bool moved = false;

	if (shown(g, p)) {
		p->rule = XPL_RULE_COVERED;
		return;
	}
	for (unsigned i = 0; i < p->n; i++)
		for (unsigned k = i + 1; k < p->n; k++) {
			if (ev(g, p->steps[i])->target != ev(g, p->steps[k])->target)
				continue;
			enum newness n = newness_of(g, p->steps[i], p->steps[k]);
			moved |= p->steps[i] > p->steps[k];
			most = n > most ? n : most;
			break;
		}
	if (most == NEW_VALUE)
		p->score += 100;
	if (p->n == 4 && !moved)
		p->rule = most == NEW_VALUE ? XPL_RULE_NONE : XPL_RULE_REDUNDANT;
	else if (most == SAME)
		p->rule = XPL_RULE_OLD_STATE;
}

static void tell(struct gen *g, unsigned kind, const uint32_t *steps)
{
	struct xpl_pattern p = { .kind = (uint8_t)kind, .n = (uint8_t)strlen(xpl_kinds[kind].steps) };

	if (++g->told > MAX_INSTANCES) {
		g->full = true;
		return;
	}
	p.key = xpl_mix(0, kind);
	for (unsigned i = 0; i < p.n; i++) {
		p.steps[i] = steps[i];
		p.places[i] = ev(g, steps[i])->pc;
		p.key = xpl_mix(p.key, p.places[i]);
	}
	judge(g, &p);
	/* The nearer the two steps of one thread, the likelier they were meant to be one. */
	unsigned last = p.n - 1;
	if (p.n > 2) {
		uint32_t far = p.n == 3 ? ev(g, steps[last])->index - ev(g, steps[0])->index :
					  ev(g, steps[3])->index > ev(g, steps[0])->index ?
					  ev(g, steps[3])->index - ev(g, steps[0])->index : 1;
		p.score += far < 50 ? 50 - far : 0;
	}
	if (p.rule)
		g->filtered[p.rule]++;
	g->full |= g->tell(g->arg, &p);
}

/* Every way in which these events are steps of this kind. */
static bool tell_kinds(struct gen *g, unsigned from, unsigned to, const uint32_t *steps)
{
	bool any = false;

	for (unsigned kind = from; kind <= to; kind++) {
		const char *what = xpl_kinds[kind].steps;
		bool is = true;

		for (unsigned i = 0; what[i] && is; i++)
			is = can_be(ev(g, steps[i]), what[i]);
		if (is)
			tell(g, kind, steps);
		any |= is;
	}
	return any;
}

static bool conflict(const struct gen *g, uint32_t a, uint32_t b)
{
	return xpl_writes(ev(g, a)) || xpl_writes(ev(g, b));
}

static bool in_order(struct gen *g, uint32_t first, uint32_t second)
{
	if (!xpl_life_before(g->life, ev(g, second), ev(g, first)))
		return true;
	g->filtered[XPL_RULE_ORDER]++;
	return false;
}

/*
 * Third steps that are not the thread's next access: those further on are interrupted by that one, unless an earlier rule is against
 * them, and those before the first step contradict program order.
 */
static void count_others(struct gen *g, uint32_t var, uint32_t a, uint32_t b)
{
	const struct xpl_event *first = ev(g, a), *second = ev(g, b);
	bool each = g->of_var[var].n <= COUNT_EACH, new = newness_of(g, a, b) != SAME;
	uint32_t c = g->a[a].own;

	/* What only reads makes a pattern with two that write. */
	if (!xpl_writes(second) && !xpl_writes(first))
		return;
	g->filtered[XPL_RULE_ORDER] += xpl_writes(second) ? g->a[a].before : g->a[a].before_writes;
	if (!each && c != XPL_NONE)
		g->filtered[XPL_RULE_INTERRUPTED] += xpl_writes(second) ? g->a[c].after : g->a[c].after_writes;
	while (each && c != XPL_NONE && (c = g->a[c].own) != XPL_NONE) {
		if (!xpl_writes(second) && !xpl_writes(ev(g, c)))
			continue;
		if (!in_order(g, b, c))
			continue;
		g->filtered[!new && newness_of(g, b, c) == SAME ? XPL_RULE_OLD_STATE : XPL_RULE_INTERRUPTED]++;
	}
}

static void of_length_2_and_3(struct gen *g, uint32_t var)
{
	for (size_t i = 0; i < g->of_var[var].n && !g->full; i++) {
		uint32_t a = g->of_var[var].v[i], next = g->a[a].own;

		for (size_t k = 0; k < g->of_var[var].n && !g->full; k++) {
			uint32_t b = g->of_var[var].v[k];
			uint32_t steps[3] = { a, b, next };

			if (ev(g, a)->thread == ev(g, b)->thread)
				continue;
			/* Two reads are no candidate. */
			if (!xpl_writes(ev(g, a)) && !xpl_writes(ev(g, b)))
				continue;
			if (!in_order(g, a, b))
				continue;
			tell_kinds(g, 1, 3, steps);
			if (next == XPL_NONE) {
				count_others(g, var, a, b);
				continue;
			}
			if ((xpl_writes(ev(g, b)) || (xpl_writes(ev(g, a)) && xpl_writes(ev(g, next)))) && in_order(g, b, next))
				tell_kinds(g, 4, 8, steps);
			count_others(g, var, a, b);
		}
	}
}

/* Two accesses of one thread, of different variables, with none of either between them. */
struct pair {
	uint32_t first, second;
	uint32_t x, y; /* variables */
	uint32_t thread;
};

typedef VEC(struct pair) pairs;

static void find_pairs(const struct gen *g, pairs *out)
{
	for (uint32_t th = 0; th < g->t->nthreads; th++) {
		const struct xpl_thread *thread = &g->t->threads[th];

		for (size_t i = 0; i < thread->events.n; i++) {
			uint32_t a = thread->events.v[i];
			size_t began = out->n;

			if (!is_step(ev(g, a)))
				continue;
			for (size_t k = i + 1; k < thread->events.n; k++) {
				uint32_t b = thread->events.v[k];
				bool known = false;

				if (!is_step(ev(g, b)))
					continue;
				if (ev(g, b)->target == ev(g, a)->target)
					break;
				for (size_t m = began; m < out->n && !known; m++)
					known = out->v[m].y == ev(g, b)->target;
				if (!known && out->n < MAX_INSTANCES / 8)
					vec_push(out, (struct pair){ a, b, ev(g, a)->target, ev(g, b)->target, th });
			}
		}
	}
}

static int by_vars(const void *a, const void *b)
{
	const struct pair *p = a, *q = b;
	uint64_t x = (uint64_t)p->x << 32 | p->y, y = (uint64_t)q->x << 32 | q->y;

	return x != y ? (x > y) - (x < y) : (p->first > q->first) - (p->first < q->first);
}

static size_t first_of(const pairs *v, uint32_t x, uint32_t y)
{
	size_t lo = 0, hi = v->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		bool less = v->v[mid].x != x ? v->v[mid].x < x : v->v[mid].y < y;

		*(less ? &lo : &hi) = less ? mid + 1 : mid;
	}
	return lo;
}

static const unsigned both_ways[] = { 9, 12, 14 }, across[] = { 10, 13, 15 };

static void crossing(struct gen *g, const struct pair *p, const struct pair *q, bool same_way)
{
	/* a: p->first on x, p->second on y; b: q. */
	if (same_way) {
		uint32_t steps[4] = { p->first, q->first, q->second, p->second };

		bool defined = false;

		if (!in_order(g, p->first, q->first) || !in_order(g, q->second, p->second))
			return;
		for (unsigned i = 0; i < 3; i++)
			defined |= tell_kinds(g, both_ways[i], both_ways[i], steps);
		g->filtered[XPL_RULE_UNDEFINED] += !defined && conflict(g, p->first, q->first) && conflict(g, q->second, p->second);
		return;
	}
	uint32_t between[4] = { p->first, q->first, q->second, p->second };
	uint32_t around[4] = { p->first, q->first, p->second, q->second };

	/* On x are p's first and q's second step, on y the others. */
	bool candidate = conflict(g, p->first, q->second) && conflict(g, q->first, p->second);

	if (in_order(g, p->first, q->first) && in_order(g, q->second, p->second)) {
		bool defined = false;

		for (unsigned i = 0; i < 3; i++)
			defined |= tell_kinds(g, across[i], across[i], between);
		g->filtered[XPL_RULE_UNDEFINED] += candidate && !defined;
	}
	if (in_order(g, p->first, q->first) && in_order(g, q->first, p->second)) {
		bool eleven = tell_kinds(g, 11, 11, around);

		g->filtered[XPL_RULE_UNDEFINED] += !tell_kinds(g, 16, 17, around) && !eleven && candidate;
	}
}

static void of_length_4(struct gen *g)
{
	pairs all = { 0 };

	find_pairs(g, &all);
	if (all.n)
		qsort(all.v, all.n, sizeof *all.v, by_vars);
	for (size_t i = 0; i < all.n && !g->full; i++) {
		const struct pair *p = &all.v[i];

		for (size_t k = first_of(&all, p->x, p->y);
		     k < all.n && all.v[k].x == p->x && all.v[k].y == p->y && !g->full; k++)
			if (all.v[k].thread != p->thread)
				crossing(g, p, &all.v[k], true);
		for (size_t k = first_of(&all, p->y, p->x);
		     k < all.n && all.v[k].x == p->y && all.v[k].y == p->x && !g->full; k++)
			if (all.v[k].thread != p->thread)
				crossing(g, p, &all.v[k], false);
	}
	vec_free(&all);
}

static void look_at(struct gen *g)
{
	const struct xpl_trace *t = g->t;
	uint32_t *writes = xcalloc(t->vars.n + 1, sizeof *writes);
	uint32_t *last = xmalloc((t->vars.n * t->nthreads + 1) * sizeof *last);

	memset(last, 0xff, (t->vars.n * t->nthreads + 1) * sizeof *last);
	for (size_t i = 0; i < t->events.n; i++) {
		const struct xpl_event *e = &t->events.v[i];

		g->a[i].own = XPL_NONE;
		if (!xpl_is_access(e))
			continue;
		writes[e->target] += xpl_writes(e);
		g->a[i].writes = writes[e->target];
		if (!is_step(e))
			continue;
		uint32_t *l = &last[(size_t)e->target * t->nthreads + e->thread];
		if (*l != XPL_NONE) {
			g->a[*l].own = (uint32_t)i;
			g->a[i].before = g->a[*l].before + 1;
			g->a[i].before_writes = g->a[*l].before_writes + xpl_writes(ev(g, *l));
		}
		*l = (uint32_t)i;
		vec_push(&g->of_var[e->target], (uint32_t)i);
	}
	for (size_t i = t->events.n; i-- > 0;) {
		uint32_t own = xpl_is_access(&t->events.v[i]) ? g->a[i].own : XPL_NONE;

		if (own == XPL_NONE)
			continue;
		g->a[i].after = g->a[own].after + 1;
		g->a[i].after_writes = g->a[own].after_writes + xpl_writes(ev(g, own));
	}
	free(writes);
	free(last);
}

bool xpl_patterns(const struct xpl_trace *t, bool (*tell_one)(void *arg, const struct xpl_pattern *p),
		  void *arg, uint64_t filtered[XPL_RULES])
{
	struct gen g = { .t = t, .life = xpl_life_new(t), .tell = tell_one, .arg = arg, .filtered = filtered };

	g.a = xcalloc(t->events.n + 1, sizeof *g.a);
	g.of_var = xcalloc(t->vars.n + 1, sizeof *g.of_var);
	look_at(&g);
	of_length_4(&g);
	for (uint32_t v = 0; v < t->vars.n; v++)
		of_length_2_and_3(&g, v);
	for (size_t v = 0; v < t->vars.n; v++)
		vec_free(&g.of_var[v]);
	free(g.of_var);
	free(g.a);
	xpl_life_free(g.life);
	return !g.full;
}

/* ---- the estimate ---- */

typedef VEC(uint64_t) pcs;

static void add_place(pcs *p, uint64_t pc)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i] == pc)
			return;
	vec_push(p, pc);
}

double xpl_patterns_estimate(const struct xpl_trace *t, double by_kind[XPL_KINDS + 1])
{
	struct {
		pcs read, write;
	} *p = xcalloc(t->vars.n + 1, sizeof *p);
	double sum = 0, sw2 = 0, sw4 = 0, srw = 0, srw2 = 0;

	memset(by_kind, 0, (XPL_KINDS + 1) * sizeof *by_kind);
	for (size_t i = 0; i < t->events.n; i++) {
		const struct xpl_event *e = &t->events.v[i];

		if (!is_step(e))
			continue;
		if (xpl_reads(e))
			add_place(&p[e->target].read, e->pc);
		if (xpl_writes(e))
			add_place(&p[e->target].write, e->pc);
	}
	for (size_t v = 0; v < t->vars.n; v++) {
		double r = (double)p[v].read.n, w = (double)p[v].write.n;

		by_kind[1] += r * w;
		by_kind[2] += r * w;
		by_kind[3] += w * w;
		by_kind[4] += r * r * w;
		for (unsigned k = 5; k <= 7; k++)
			by_kind[k] += r * w * w;
		by_kind[8] += w * w * w;
		/* Sums over pairs of variables, from the square of the sum. */
		sw2 += w * w;
		sw4 += w * w * w * w;
		srw += w * r;
		srw2 += w * r * w * r;
	}
	for (unsigned k = 9; k <= 11; k++)
		by_kind[k] = (sw2 * sw2 - sw4) / 2;
	for (unsigned k = 12; k <= 17; k++)
		by_kind[k] = (srw * srw - srw2) / 2;
	for (unsigned k = 1; k <= XPL_KINDS; k++)
		sum += by_kind[k];
	for (size_t v = 0; v < t->vars.n; v++) {
		vec_free(&p[v].read);
		vec_free(&p[v].write);
	}
	free(p);
	return sum;
}
