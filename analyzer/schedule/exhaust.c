/*
 * Small windows, all of them: every reachable state, each once.
 *
 * Many orders lead into few states: a counter incremented under a lock by
 * three threads has millions of orders and a few thousand states. Where the
 * solver would have to prove a sum for every order, walking the states proves
 * that none avoids the failure, or finds one that does. A state is positions,
 * memory, synchronisation and the symbols that somebody will still look at.
 */
#include "analyzer/schedule/work.h"

#include <string.h>

/* Events that could be executed instead of entering a state. */
#define STATE_COST 12

struct live {
	uint32_t event;  /* the read */
	uint64_t symbol;
	uint32_t until;  /* last event that looks at it; VIEW_NONE: the end does */
};

struct exhaust {
	struct study *s;
	const struct sched_view *v;
	VEC(struct live) live;
	uint64_t *seen;
	size_t seen_cap, nseen, limit;
	uint32_t *order;
	size_t n, goal;
	bool gave_up;
	const uint32_t *keep; /* edges of the study */
	size_t nkeep;
};

/* Positions tell what has happened, so keeping an edge is a matter of the state. */
static bool may_come(const struct exhaust *x, const struct check *c, uint32_t i)
{
	for (size_t k = 0; k < x->nkeep; k++) {
		const struct study_edge *e = &x->s->edges.v[x->keep[k]];

		if (e->after == i && !check_executed(c, e->before))
			return false;
	}
	return true;
}

struct uses {
	const struct sched_view *v;
	uint32_t *until;
	uint32_t at;
};

static void note_use(void *arg, uint64_t symbol)
{
	struct uses *u = arg;
	uint32_t r = u->v->reader[symbol];

	if (r == VIEW_NONE || u->until[symbol] == VIEW_NONE)
		return;
	if (u->at == VIEW_NONE || u->v->ev[r].e->thread != u->v->ev[u->at].e->thread)
		u->until[symbol] = VIEW_NONE;
	else if (u->at > u->until[symbol])
		u->until[symbol] = u->at;
}

/* Until when does the value of each symbol matter? */
static void find_live(struct exhaust *x)
{
	const struct sched_view *v = x->v;
	const struct expr_pool *p = v->t->pool;
	struct uses u = { .v = v };

	u.until = xcalloc(expr_symbol_count(p) + 1, sizeof *u.until);
	for (uint32_t k = 0; k < v->nconds; k++) {
		u.at = k < v->first_late ? v->conds[k].after : VIEW_NONE;
		/* The branch that is to go elsewhere is looked at in the end. */
		if (x->s->diverge != VIEW_NONE && view_same_branch(v, k, x->s->diverge))
			u.at = VIEW_NONE;
		expr_symbols(p, v->conds[k].cond, note_use, &u);
	}
	for (u.at = 0; u.at < v->n; u.at++)
		if (view_writes(v->ev[u.at].e))
			expr_symbols(p, v->ev[u.at].e->value, note_use, &u);
	u.at = VIEW_NONE;
	if (v->t->failure.condition)
		expr_symbols(p, v->t->failure.condition, note_use, &u);
	for (uint32_t l = 0; l < x->s->win->n; l++) {
		uint32_t i = x->s->win->events[l];
		const struct sym_event *e = v->ev[i].e;

		if (view_reads(e) && e->symbol) {
			uint64_t s = expr_get(p, e->symbol)->value;

			if (u.until[s] > i)
				vec_push(&x->live, (struct live){ i, s, u.until[s] });
		}
	}
	free(u.until);
}

static uint64_t state_hash(struct exhaust *x)
{
	struct check *c = x->s->run;
	uint64_t h = check_hash(c);

	for (size_t i = 0; i < x->live.n; i++) {
		const struct live *l = &x->live.v[i];

		if (!check_executed(c, l->event) ||
		    (l->until != VIEW_NONE && check_executed(c, l->until)))
			continue;
		h = (h ^ (check_values(c)[l->symbol] + l->symbol * 0x9e3779b97f4a7c15ull)) *
		    0xbf58476d1ce4e5b9ull;
		h ^= h >> 29;
	}
	return h | 1;
}

static bool enter(struct exhaust *x, uint64_t hash)
{
	size_t k = (hash >> 1) & (x->seen_cap - 1);

	for (; x->seen[k]; k = (k + 1) & (x->seen_cap - 1))
		if (x->seen[k] == hash)
			return false;
	x->seen[k] = hash;
	x->nseen++;
	return true;
}

static bool is_goal(struct exhaust *x)
{
	struct check *c = x->s->run;

	return x->n == x->goal && check_late(c) == CHECK_OK && check_avoids(c);
}

static bool walk(struct exhaust *x)
{
	struct check *c = x->s->run, *here;
	bool found = false;

	if (is_goal(x))
		return true;
	if (x->nseen > x->limit || ((x->nseen & 255) == 0 && work_stopped(x->s->w))) {
		x->gave_up = true;
		return false;
	}
	here = check_save(c);
	for (uint32_t k = 0; k < x->v->nchains && !found && !x->gave_up; k++) {
		uint32_t i = check_next(here, k);

		if (i == VIEW_NONE || !window_has(x->s->win, i) || !may_come(x, here, i))
			continue;
		check_restore(c, here);
		if (check_step(c, i) != CHECK_OK || !enter(x, state_hash(x)))
			continue;
		x->order[x->n++] = i;
		found = walk(x);
		x->n -= !found;
	}
	check_free(here);
	return found;
}

enum smt_result exhaust_window(struct study *s, const uint32_t *keep, size_t nkeep, size_t limit,
			       uint32_t *out)
{
	struct exhaust x = { .s = s, .v = s->win->v, .limit = limit, .order = out,
			     .keep = keep, .nkeep = nkeep };
	bool found;

	/* Who goes on after a deadlock is the solver's business. */
	if (x.v->deadlock || s->win->n > EXHAUST_EVENTS)
		return SMT_UNKNOWN;
	x.goal = s->win->n;
	for (x.seen_cap = 1024; x.seen_cap < limit * 4; x.seen_cap *= 2)
		;
	x.seen = xcalloc(x.seen_cap, sizeof *x.seen);
	find_live(&x);
	check_restore(s->run, s->base);
	check_set_diverge(s->run, s->diverge);
	check_set_relax(s->run, s->w->relax);
	found = walk(&x);
	work_executed(s->w, x.nseen * STATE_COST);
	free(x.seen);
	vec_free(&x.live);
	return found ? SMT_SAT : x.gave_up ? SMT_UNKNOWN : SMT_UNSAT;
}
