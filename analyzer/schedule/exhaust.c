/*
 * Small windows, all of them: every reachable state, each once.
 *
 * Many orders lead into few states: a counter incremented under a lock by
 * three threads has millions of orders and a few thousand states. Where the
 * solver would have to prove a sum for every order, walking the states proves
 * that none avoids the failure, or finds one that does. A state is positions,
 * memory, synchronisation and the symbols that somebody will still look at.
 *
 * An event that nothing of another thread can come in conflict with is done as soon
 * as it can be, and nothing else is tried there: every order has a twin in which it
 * comes that early, with the same values and the same end.
 */
#include "analyzer/schedule/work.h"

#include <string.h>

struct live {
	uint32_t event;  /* the read */
	uint64_t symbol;
	uint32_t until;  /* last event that looks at it; SYM_NONE: the end does */
};

struct exhaust {
	struct study *s;
	const struct order_view *v;
	VEC(struct live) live;
	uint64_t *seen;
	size_t seen_cap, nseen, limit;
	uint32_t *order;
	size_t n, goal;
	bool gave_up;
	const uint32_t *keep; /* edges of the study */
	size_t nkeep;
	const struct study_edge *turned; /* or NULL */
	bool *alone; /* by local index: no other thread has a say in it or sees it meanwhile */
};

/* Positions tell what has happened, so keeping an edge is a matter of the state. */
static bool may_come(const struct exhaust *x, const struct order_check *c, uint32_t i)
{
	for (size_t k = 0; k < x->nkeep; k++) {
		const struct study_edge *e = &x->s->edges.v[x->keep[k]];

		if (e->after == i && !order_check_executed(c, e->before))
			return false;
	}
	return !x->turned || x->turned->before != i || order_check_executed(c, x->turned->after);
}

struct uses {
	const struct order_view *v;
	uint32_t *until;
	uint32_t at;
};

static void note_use(void *arg, uint64_t symbol)
{
	struct uses *u = arg;
	uint32_t r = u->v->reader[symbol];

	if (r == SYM_NONE || u->until[symbol] == SYM_NONE)
		return;
	if (u->at == SYM_NONE || u->v->ev[r].e->thread != u->v->ev[u->at].e->thread)
		u->until[symbol] = SYM_NONE;
	else if (u->at > u->until[symbol])
		u->until[symbol] = u->at;
}

/* Until when does the value of each symbol matter? */
static void find_live(struct exhaust *x)
{
	const struct order_view *v = x->v;
	const struct expr_pool *p = v->t->pool;
	struct uses u = { .v = v };

	u.until = xcalloc(expr_symbol_count(p) + 1, sizeof *u.until);
	for (uint32_t k = 0; k < v->nconds; k++) {
		u.at = k < v->first_late ? v->conds[k].after : SYM_NONE;
		/* The branch that is to go elsewhere is looked at in the end. */
		if (x->s->diverge != SYM_NONE && order_same_branch(v, k, x->s->diverge))
			u.at = SYM_NONE;
		expr_symbols(p, v->conds[k].cond, note_use, &u);
	}
	for (u.at = 0; u.at < v->n; u.at++)
		if (order_writes(v->ev[u.at].e))
			expr_symbols(p, v->ev[u.at].e->value, note_use, &u);
	u.at = SYM_NONE;
	if (v->t->failure.condition)
		expr_symbols(p, v->t->failure.condition, note_use, &u);
	for (uint32_t l = 0; l < x->s->win->n; l++) {
		uint32_t i = x->s->win->events[l];
		const struct sym_event *e = v->ev[i].e;

		if (order_reads(e) && e->symbol) {
			uint64_t s = expr_get(p, e->symbol)->value;

			if (u.until[s] > i)
				vec_push(&x->live, (struct live){ i, s, u.until[s] });
		}
	}
	free(u.until);
}

/* Operations whose effect lies in their own object, or that only let others go on. */
static bool is_simple(const struct order_view_event *e)
{
	switch (e->e->op) {
	case SYM_READ:
	case SYM_WRITE:
	case SYM_RMW:
	case SYM_LOCK:
	case SYM_UNLOCK:
	case SYM_FORK:
	case SYM_START:
	case SYM_EXIT:
	case SYM_JOIN:
		return e->wait == SYM_NONE && !e->pending && !e->foreign;
	default:
		return false;
	}
}

struct readers {
	const struct order_view *v;
	uint32_t thread;
	bool mine;
};

static void note_reader(void *arg, uint64_t symbol)
{
	struct readers *r = arg;
	uint32_t i = r->v->reader[symbol];

	r->mine &= i == SYM_NONE || r->v->ev[i].e->thread == r->thread;
}

/* What it decides is decided by what its own thread read. */
static bool decides_alone(const struct order_view *v, const struct order_view_event *e)
{
	struct readers r = { v, e->e->thread, true };

	for (uint32_t k = e->cond; k < e->cond + e->ncond; k++)
		expr_symbols(v->t->pool, v->conds[k].cond, note_reader, &r);
	return r.mine;
}

static bool is_alone(const struct exhaust *x, uint32_t i)
{
	const struct order_view_event *e = &x->v->ev[i];

	if (!is_simple(e) || !decides_alone(x->v, e))
		return false;
	for (uint32_t l = 0; l < x->s->win->n; l++) {
		uint32_t j = x->s->win->events[l];
		const struct sym_event *other = x->v->ev[j].e;

		if (other->thread != e->e->thread && order_conflict(e->e, other) &&
		    !encode_must(x->s->enc, i, j) && !encode_must(x->s->enc, j, i))
			return false;
	}
	return true;
}

static void find_alone(struct exhaust *x)
{
	x->alone = xcalloc(x->s->win->n + 1, sizeof *x->alone);
	/* Store buffers and time stamps bind more than these rules know. */
	if (x->v->model != SCHED_SC || x->v->use_times || x->s->enc->contradiction)
		return;
	for (uint32_t l = 0; l < x->s->win->n; l++)
		x->alone[l] = is_alone(x, x->s->win->events[l]);
}

static uint64_t state_hash(struct exhaust *x)
{
	struct order_check *c = x->s->run;
	uint64_t h = order_check_hash(c);

	for (size_t i = 0; i < x->live.n; i++) {
		const struct live *l = &x->live.v[i];

		if (!order_check_executed(c, l->event) ||
		    (l->until != SYM_NONE && order_check_executed(c, l->until)))
			continue;
		h = (h ^ (order_check_values(c)[l->symbol] + l->symbol * 0x9e3779b97f4a7c15ull)) *
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
	struct order_check *c = x->s->run;

	return x->n == x->goal && order_check_late(c) == ORDER_OK && order_check_avoids(c);
}

/* A chain whose next event is alone and can happen now, or SYM_NONE. */
static uint32_t next_alone(const struct exhaust *x, struct order_check *c)
{
	for (uint32_t k = 0; k < x->v->nchains; k++) {
		uint32_t i = order_check_next(c, k);

		if (i != SYM_NONE && order_window_has(x->s->win, i) && x->alone[x->s->win->local[i]] &&
		    may_come(x, c, i) && order_check_ready(c, i) == ORDER_OK)
			return k;
	}
	return SYM_NONE;
}

/* Does what is alone; false: the recorded path cannot be kept from here. */
static bool do_alone(struct exhaust *x)
{
	struct order_check *c = x->s->run;

	for (uint32_t k = next_alone(x, c); k != SYM_NONE; k = next_alone(x, c)) {
		uint32_t i = order_check_next(c, k);

		if (order_check_step(c, i) != ORDER_OK)
			return false;
		x->order[x->n++] = i;
	}
	return true;
}

static bool walk(struct exhaust *x);

/* Into the state that comes next, if it is new. */
static bool walk_on(struct exhaust *x, uint32_t event)
{
	size_t n = x->n;

	x->order[x->n++] = event;
	if (do_alone(x) && enter(x, state_hash(x)) && walk(x))
		return true;
	x->n = n;
	return false;
}

static bool walk(struct exhaust *x)
{
	struct order_check *c = x->s->run, *here;
	bool found = false;

	if (is_goal(x))
		return true;
	if (x->nseen > x->limit || ((x->nseen & 255) == 0 && work_stopped(x->s->w))) {
		x->gave_up = true;
		return false;
	}
	here = order_check_save(c);
	for (uint32_t k = 0; k < x->v->nchains && !found && !x->gave_up; k++) {
		uint32_t i = order_check_next(here, k);

		if (i == SYM_NONE || !order_window_has(x->s->win, i) || !may_come(x, here, i))
			continue;
		order_check_restore(c, here);
		found = order_check_step(c, i) == ORDER_OK && walk_on(x, i);
	}
	order_check_free(here);
	return found;
}

enum smt_result exhaust_window(struct study *s, const uint32_t *keep, size_t nkeep, uint32_t turned,
			       size_t limit, uint32_t *out)
{
	struct exhaust x = { .s = s, .v = s->win->v, .limit = limit, .order = out,
			     .keep = keep, .nkeep = nkeep,
			     .turned = turned == SYM_NONE ? NULL : &s->edges.v[turned] };
	bool found;

	/* Who goes on after a deadlock is the solver's business. */
	if (x.v->deadlock || s->win->n > EXHAUST_EVENTS)
		return SMT_UNKNOWN;
	x.goal = s->win->n;
	for (x.seen_cap = 1024; x.seen_cap < limit * 4; x.seen_cap *= 2)
		;
	x.seen = xcalloc(x.seen_cap, sizeof *x.seen);
	find_live(&x);
	find_alone(&x);
	order_check_restore(s->run, s->base);
	order_check_set_diverge(s->run, s->diverge);
	order_check_set_relax(s->run, s->w->relax);
	found = do_alone(&x) && walk(&x);
	work_executed(s->w, x.nseen * STATE_COST);
	free(x.seen);
	free(x.alone);
	vec_free(&x.live);
	return found ? SMT_SAT : x.gave_up ? SMT_UNKNOWN : SMT_UNSAT;
}
