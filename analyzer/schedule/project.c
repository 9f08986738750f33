#include "analyzer/schedule/project.h"
#include "analyzer/schedule/limits.h"
#include "common/vec.h"

#include <string.h>

/* Accesses of one thread to the variable that nothing of others comes between. */
struct step {
	uint32_t first, last; /* events */
};

struct lane {
	VEC(struct step) steps;
};

/* A state of the projection: hash of positions and value -> can it end? */
struct memo {
	uint64_t *key; /* 0 empty; lowest bit: 1 can end */
	size_t cap, n;
};

struct projection {
	uint32_t var;
	struct lane *lanes; /* by thread */
	struct memo memo;
	bool off;
};

struct value {
	uint64_t v;
	bool known;
};

struct projections {
	const struct order_view *v;
	bool failing;      /* the failure's condition counts as one of the path */
	VEC(struct projection) list;
	uint64_t *symbols; /* scratch for evaluation */
	uint32_t *stamp;   /* by symbol: known in this step */
	uint32_t epoch;
	uint32_t *pos;     /* by thread: scratch */
	bool unknown;      /* set while walking symbols */
};

/* The lock that every access to the variable is made under, or SYM_NONE. */
static uint32_t common_lock(const struct order_view *v, uint32_t var)
{
	size_t no = v->t->nobjects;
	bool *always = xmalloc(no + 1), some = false;
	uint32_t *depth = xcalloc(no + 1, sizeof *depth), found = SYM_NONE;

	memset(always, 1, no + 1);
	for (size_t t = 0; t < v->t->nthreads; t++) {
		memset(depth, 0, no * sizeof *depth);
		for (uint32_t i = v->first[t]; i < v->first[t + 1]; i++) {
			const struct sym_event *e = v->ev[i].e;

			if (order_acquires(e) && !order_shared(e))
				depth[e->target]++;
			else if (e->op == SYM_UNLOCK && depth[e->target])
				depth[e->target]--;
			if ((!order_reads(e) && !order_writes(e)) || e->target != var)
				continue;
			some = true;
			for (size_t o = 0; o < no; o++)
				always[o] = always[o] && depth[o];
		}
	}
	for (size_t o = 0; o < no && some && found == SYM_NONE; o++)
		if (always[o])
			found = o;
	free(always);
	free(depth);
	return found;
}

static void cut_steps(struct projections *p, struct projection *x)
{
	const struct order_view *v = p->v;
	uint32_t lock = common_lock(v, x->var);

	for (size_t t = 0; t < v->t->nthreads; t++) {
		struct lane *l = &x->lanes[t];
		bool joined = false; /* the next access belongs to the step before it */

		for (uint32_t i = v->first[t]; i < v->first[t + 1]; i++) {
			const struct sym_event *e = v->ev[i].e;

			if (e->op == SYM_UNLOCK && e->target == lock)
				joined = false;
			if ((!order_reads(e) && !order_writes(e)) || e->target != x->var)
				continue;
			if (joined)
				l->steps.v[l->steps.n - 1].last = i;
			else
				vec_push(&l->steps, (struct step){ i, i });
			joined = lock != SYM_NONE;
		}
	}
}

struct projections *project_new(const struct order_view *v, const bool *var_matters, bool failing)
{
	struct projections *p = xcalloc(1, sizeof *p);
	size_t nsyms = expr_symbol_count(v->t->pool);

	p->v = v;
	p->failing = failing;
	p->symbols = xcalloc(nsyms + 1, sizeof *p->symbols);
	p->stamp = xcalloc(nsyms + 1, sizeof *p->stamp);
	p->pos = xcalloc(v->t->nthreads + 1, sizeof *p->pos);
	for (uint32_t var = 0; var < v->t->nvars && v->model == SCHED_SC; var++) {
		struct projection x = { .var = var };

		if (!var_matters[var])
			continue;
		x.lanes = xcalloc(v->t->nthreads + 1, sizeof *x.lanes);
		cut_steps(p, &x);
		vec_push(&p->list, x);
	}
	return p;
}

void project_free(struct projections *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->list.n; i++) {
		for (size_t t = 0; t < p->v->t->nthreads; t++)
			vec_free(&p->list.v[i].lanes[t].steps);
		free(p->list.v[i].lanes);
		free(p->list.v[i].memo.key);
	}
	vec_free(&p->list);
	free(p->symbols);
	free(p->stamp);
	free(p->pos);
	free(p);
}

static void note_unknown(void *arg, uint64_t symbol)
{
	struct projections *p = arg;

	if (p->stamp[symbol] != p->epoch)
		p->unknown = true;
}

static bool evaluable(struct projections *p, expr_id e)
{
	p->unknown = false;
	expr_symbols(p->v->t->pool, e, note_unknown, p);
	return !p->unknown;
}

static bool conds_hold(struct projections *p, uint32_t i)
{
	const struct order_view_event *x = &p->v->ev[i];
	expr_id failure = p->v->t->failure.condition;

	if (p->failing && i == p->v->fail && failure && evaluable(p, failure) &&
	    !expr_eval(p->v->t->pool, failure, p->symbols))
		return false;
	for (uint32_t k = x->cond; k < x->cond + x->ncond; k++) {
		expr_id cond = p->v->conds[k].cond;

		if (evaluable(p, cond) && !expr_eval(p->v->t->pool, cond, p->symbols))
			return false;
	}
	return true;
}

/* Execute a step of the variable; false when the thread's path says no. */
static bool do_step(struct projections *p, const struct projection *x, struct step s,
		    uint32_t until, struct value *val)
{
	const struct order_view *v = p->v;

	p->epoch++;
	for (uint32_t i = s.first; i < until; i++) {
		const struct sym_event *e = v->ev[i].e;

		if (i <= s.last && (order_reads(e) || order_writes(e)) && e->target == x->var) {
			if (order_reads(e) && e->symbol && val->known) {
				uint64_t sym = expr_get(v->t->pool, e->symbol)->value;

				p->symbols[sym] = val->v;
				p->stamp[sym] = p->epoch;
				if (e->fixed && e->seen != val->v)
					return false;
			}
			if (order_writes(e)) {
				val->known = evaluable(p, e->value);
				if (val->known)
					val->v = expr_eval(v->t->pool, e->value, p->symbols);
			}
		}
		if (!conds_hold(p, i))
			return false;
	}
	return true;
}

static uint64_t state_key(const struct projections *p, const struct projection *x,
			  const struct value *val)
{
	uint64_t h = val->known ? val->v * 2 + 1 : 0;

	for (size_t t = 0; t < p->v->t->nthreads; t++) {
		if (!x->lanes[t].steps.n)
			continue;
		h = (h ^ p->pos[t]) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 31;
	}
	return (h | 2) & ~1ull;
}

static size_t memo_slot(const struct memo *m, uint64_t key)
{
	size_t k = (key >> 2) & (m->cap - 1);

	while (m->key[k] && (m->key[k] & ~1ull) != key)
		k = (k + 1) & (m->cap - 1);
	return k;
}

static void memo_put(struct memo *m, uint64_t key, bool can)
{
	if (m->n * 2 >= m->cap) {
		struct memo old = *m;

		m->cap = m->cap ? m->cap * 2 : 1024;
		m->key = xcalloc(m->cap, sizeof *m->key);
		for (size_t i = 0; i < old.cap; i++)
			if (old.key[i])
				m->key[memo_slot(m, old.key[i] & ~1ull)] = old.key[i];
		free(old.key);
	}
	m->key[memo_slot(m, key)] = key | can;
	m->n++;
}

static bool can_end(struct projections *p, struct projection *x, struct value val, int depth)
{
	uint64_t key = state_key(p, x, &val);
	bool done = true, can = false;

	if (x->memo.cap) {
		size_t k = memo_slot(&x->memo, key);

		if (x->memo.key[k])
			return x->memo.key[k] & 1;
	}
	if (x->memo.n > STATE_LIMIT || depth > DEPTH_LIMIT) {
		x->off = true;
		return true;
	}
	for (size_t t = 0; t < p->v->t->nthreads && !can; t++) {
		struct lane *l = &x->lanes[t];
		uint32_t k = p->pos[t];
		struct value next = val;

		if (k >= l->steps.n)
			continue;
		done = false;
		if (!do_step(p, x, l->steps.v[k], k + 1 < l->steps.n ? l->steps.v[k + 1].first :
			     p->v->first[t + 1], &next))
			continue;
		p->pos[t]++;
		can = can_end(p, x, next, depth + 1);
		p->pos[t]--;
		if (x->off)
			return true;
	}
	can |= done;
	memo_put(&x->memo, key, can);
	return can;
}

/* Steps the real run has begun count as done: it is asked between sections only. */
static bool locate(struct projections *p, const struct projection *x, const struct order_check *c)
{
	for (size_t t = 0; t < p->v->t->nthreads; t++) {
		const struct lane *l = &x->lanes[t];
		uint32_t lo = 0, hi = l->steps.n;

		while (lo < hi) {
			uint32_t mid = (lo + hi) / 2;

			if (order_check_executed(c, l->steps.v[mid].first))
				lo = mid + 1;
			else
				hi = mid;
		}
		if (lo && !order_check_executed(c, l->steps.v[lo - 1].last))
			return false;
		p->pos[t] = lo;
	}
	return true;
}

bool project_hopeful(struct projections *p, const struct order_check *c)
{
	for (size_t i = 0; i < p->list.n; i++) {
		struct projection *x = &p->list.v[i];

		if (x->off || !locate(p, x, c))
			continue;
		if (!can_end(p, x, (struct value){ order_check_memory(c, x->var), true }, 0))
			return false;
	}
	return true;
}
