/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyzer/order/check_internal.h"

#include <string.h>

#define COPY(dst, src, n) memcpy((dst), (src), (n) * sizeof *(dst))

static void set_initial(struct order_check *c, const uint64_t *init)
{
	const struct sym_trace *t = c->v->t;

	for (size_t i = 0; i < t->nvars; i++) {
		if (t->vars[i].has_init)
			c->mem[i] = expr_memo_eval(c->memo, t->vars[i].init, c->values);
		else
			c->mem[i] = init ? init[i] : 0;
	}
	for (size_t i = 0; i < t->nobjects; i++) {
		const struct sym_object *o = &t->objects[i];
		bool lock = o->kind == SYM_MUTEX || o->kind == SYM_RWLOCK;

		c->object[i] = (struct order_check_object){
			.owner = lock ? o->owner : SYM_NONE,
			.depth = lock && o->owner != SYM_NONE,
			.count = o->kind == SYM_SEM ? o->count : 0,
		};
	}
	/* Nobody in the trace runs the initialiser: it was done before. */
	for (size_t i = 0; i < t->nobjects; i++)
		if (t->objects[i].kind == SYM_ONCE)
			c->object[i].count = 2;
	for (uint32_t i = 0; i < c->v->n; i++)
		if (c->v->ev[i].e->op == SYM_ONCE_BEGIN && c->v->ev[i].e->result == 1)
			c->object[c->v->ev[i].e->target].count = 0;
}

static struct order_check *alloc(const struct order_view *v)
{
	const struct sym_trace *t = v->t;
	struct order_check *c = xcalloc(1, sizeof *c);

	c->v = v;
	c->mem = xcalloc(t->nvars + 1, sizeof *c->mem);
	c->object = xcalloc(t->nobjects + 1, sizeof *c->object);
	c->broadcast = xcalloc(t->nobjects + 1, sizeof *c->broadcast);
	c->waiting = xcalloc(t->nobjects + 1, sizeof *c->waiting);
	c->next = xcalloc(v->nchains + 1, sizeof *c->next);
	c->wait_since = xcalloc(t->nthreads + 1, sizeof *c->wait_since);
	c->round = xcalloc(t->nthreads + 1, sizeof *c->round);
	c->now = 1;
	c->diverge = c->relax = SYM_NONE;
	return c;
}

struct order_check *order_check_new(const struct order_view *v, enum order_end end, const uint64_t *init,
				    const uint64_t *syms)
{
	struct order_check *c = alloc(v);
	size_t nsyms = expr_symbol_count(v->t->pool);

	c->end = end;
	c->owner_of_shared = true;
	c->values = xcalloc(nsyms + 1, sizeof *c->values);
	if (syms)
		COPY(c->values, syms, nsyms);
	c->memo = expr_memo_new(v->t->pool);
	c->logged = xcalloc(v->t->nobjects + 1, sizeof *c->logged);
	for (size_t i = 0; i < v->n; i++)
		if (v->ev[i].pending && v->ev[i].e->op == SYM_WAIT)
			c->logged[v->ev[i].e->target] = true;
	set_initial(c, init);
	return c;
}

void order_check_free(struct order_check *c)
{
	if (!c)
		return;
	if (c->owner_of_shared) {
		free(c->values);
		free(c->logged);
		expr_memo_free(c->memo);
	}
	free(c->mem);
	free(c->object);
	free(c->broadcast);
	free(c->waiting);
	free(c->next);
	free(c->wait_since);
	free(c->round);
	vec_free(&c->shares);
	vec_free(&c->tokens);
	vec_free(&c->log);
	free(c);
}

static void copy_state(struct order_check *to, const struct order_check *from)
{
	const struct sym_trace *t = from->v->t;

	COPY(to->mem, from->mem, t->nvars);
	COPY(to->object, from->object, t->nobjects);
	COPY(to->broadcast, from->broadcast, t->nobjects);
	COPY(to->waiting, from->waiting, t->nobjects);
	COPY(to->next, from->next, from->v->nchains);
	COPY(to->wait_since, from->wait_since, t->nthreads);
	COPY(to->round, from->round, t->nthreads);
	to->shares.n = to->tokens.n = to->log.n = 0;
	for (size_t i = 0; i < from->shares.n; i++)
		vec_push(&to->shares, from->shares.v[i]);
	for (size_t i = 0; i < from->tokens.n; i++)
		vec_push(&to->tokens, from->tokens.v[i]);
	for (size_t i = 0; i < from->log.n; i++)
		vec_push(&to->log, from->log.v[i]);
	to->now = from->now;
	to->latest = from->latest;
	to->went_on = from->went_on;
	to->end = from->end;
	to->diverge = from->diverge;
	to->relax = from->relax;
}

struct order_check *order_check_save(const struct order_check *c)
{
	struct order_check *s = alloc(c->v);

	copy_state(s, c);
	s->values = c->values;
	s->logged = c->logged;
	s->memo = c->memo;
	return s;
}

void order_check_restore(struct order_check *c, const struct order_check *saved)
{
	copy_state(c, saved);
	expr_memo_reset(c->memo);
}

void order_check_set_diverge(struct order_check *c, uint32_t cond)
{
	c->diverge = cond;
}

void order_check_set_relax(struct order_check *c, uint32_t cond)
{
	c->relax = cond;
}

const struct order_view *order_check_view(const struct order_check *c)
{
	return c->v;
}

uint64_t *order_check_values(struct order_check *c)
{
	return c->values;
}

uint64_t order_check_memory(const struct order_check *c, uint32_t var)
{
	return c->mem[var];
}

bool order_check_executed(const struct order_check *c, uint32_t event)
{
	return c->v->ev[event].pos < c->next[c->v->ev[event].chain];
}

uint64_t order_check_eval(struct order_check *c, expr_id e)
{
	return expr_memo_eval(c->memo, e, c->values);
}

const struct order_view_cond *order_check_broken(const struct order_check *c)
{
	return &c->v->conds[c->broken];
}

const struct order_check_object *order_check_object(const struct order_check *c, uint32_t object)
{
	return &c->object[object];
}

uint32_t order_check_shares(const struct order_check *c, uint32_t object, uint32_t thread)
{
	for (size_t i = 0; i < c->shares.n; i++)
		if (c->shares.v[i].object == object && c->shares.v[i].thread == thread)
			return c->shares.v[i].count;
	return 0;
}

uint32_t order_check_tokens(const struct order_check *c, uint32_t cond, uint32_t thread, bool *all)
{
	uint32_t n = 0;

	*all = c->broadcast[cond] > c->wait_since[thread];
	for (size_t i = 0; i < c->tokens.n; i++)
		n += c->tokens.v[i].cond == cond && c->tokens.v[i].when > c->wait_since[thread];
	return n;
}

int64_t order_check_round(const struct order_check *c, uint32_t thread)
{
	return c->round[thread];
}

/* Program order as the memory model has it, creation, and time bounds. */
static bool is_next(const struct order_check *c, uint32_t i)
{
	const struct order_view *v = c->v;
	const struct order_view_event *x = &v->ev[i];

	if (c->next[x->chain] != x->pos || x->hi < c->latest)
		return false;
	if (x->e->index == 0 && v->forked_by[x->e->thread] != SYM_NONE &&
	    !order_check_executed(c, v->forked_by[x->e->thread]))
		return false;
	if (v->model == SCHED_SC)
		return true;
	/* The thread's other chain: a write follows everything that is no write; what
	 * drains follows every write; a plain read follows neither kind by force. */
	if (x->e->op == SYM_READ)
		return true;
	uint32_t other = x->chain ^ 1, k = c->next[other];

	return k == v->chain_len[other] || v->chain[other][k] > i;
}

/* TSO: the thread's newest write to the variable that is still in its buffer. */
static const struct sym_event *buffered(const struct order_check *c, const struct sym_event *e)
{
	const struct order_view *v = c->v;
	uint32_t chain = e->thread * 2 + 1, self = v->first[e->thread] + e->index;
	const struct sym_event *found = NULL;

	if (v->model != SCHED_TSO)
		return NULL;
	for (uint32_t k = c->next[chain]; k < v->chain_len[chain]; k++) {
		uint32_t w = v->chain[chain][k];

		if (w > self)
			break;
		if (v->ev[w].e->target == e->target)
			found = v->ev[w].e;
	}
	return found;
}

struct unread {
	const struct order_check *c;
	bool some;
};

static void find_unread(void *arg, uint64_t symbol)
{
	struct unread *u = arg;
	uint32_t r = u->c->v->reader[symbol];

	u->some |= r != SYM_NONE && !order_check_executed(u->c, r);
}

/* A value made of other threads' reads exists only once they have read. */
static bool value_known(const struct order_check *c, uint32_t i)
{
	struct unread u = { c, false };
	const struct order_view_event *x = &c->v->ev[i];

	if (x->foreign)
		expr_symbols(c->v->t->pool, x->e->value, find_unread, &u);
	return !u.some;
}

static bool access_step(struct order_check *c, const struct sym_event *e)
{
	if (order_reads(e)) {
		const struct sym_event *own = buffered(c, e);
		uint64_t value = own ? order_check_eval(c, own->value) : c->mem[e->target];

		if (e->symbol)
			c->values[expr_get(c->v->t->pool, e->symbol)->value] = value;
		if (e->fixed && value != e->seen)
			return false;
	}
	if (order_writes(e))
		c->mem[e->target] = order_check_eval(c, e->value);
	return true;
}

/* Behind the branch that goes elsewhere nothing is known of the thread's path. */
static bool cond_counts(const struct order_check *c, uint32_t k)
{
	if (c->relax != SYM_NONE && !order_still_binds(c->v, k, c->relax))
		return false;
	return c->diverge == SYM_NONE || order_still_binds(c->v, k, c->diverge);
}

static enum order_status path_step(struct order_check *c, uint32_t first, uint32_t n)
{
	for (uint32_t k = first; k < first + n; k++) {
		if (cond_counts(c, k) && !order_check_eval(c, c->v->conds[k].cond)) {
			c->broken = k;
			return ORDER_PATH;
		}
	}
	return ORDER_OK;
}

static bool is_end(const struct order_check *c, uint32_t i)
{
	return order_goes_on(c->v, i) ||
	       (c->diverge != SYM_NONE && c->v->conds[c->diverge].after == i);
}

enum order_status order_check_step(struct order_check *c, uint32_t i)
{
	const struct order_view_event *x = &c->v->ev[i];

	if (!is_next(c, i) || !value_known(c, i))
		return ORDER_NOT_NEXT;
	if (!order_sync_step(c, i))
		return ORDER_BLOCKED;
	if (x->e->target != SYM_NONE && !access_step(c, x->e))
		return ORDER_VALUE;
	c->next[x->chain]++;
	c->now++;
	if (x->lo > c->latest)
		c->latest = x->lo;
	if (x->pending)
		c->went_on++;
	if (c->end == ORDER_ONWARD && is_end(c, i))
		order_release_all(c, x->e->thread);
	return path_step(c, x->cond, x->ncond);
}

enum order_status order_check_ready(struct order_check *c, uint32_t i)
{
	if (!is_next(c, i))
		return ORDER_NOT_NEXT;
	return order_sync_ready(c, i) ? ORDER_OK : ORDER_BLOCKED;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

uint64_t order_check_hash(const struct order_check *c)
{
	const struct sym_trace *t = c->v->t;
	uint64_t h = 1, bag = 0;

	for (uint32_t i = 0; i < c->v->nchains; i++)
		h = mix(h, c->next[i]);
	for (size_t i = 0; i < t->nvars; i++)
		h = mix(h, c->mem[i]);
	for (size_t i = 0; i < t->nobjects; i++)
		h = mix(mix(h, (uint64_t)c->object[i].owner << 32 | c->object[i].depth),
			(uint64_t)c->object[i].count << 8 | c->waiting[i]);
	/* Whom a broadcast has woken, and in which round of a barrier each arrived. */
	for (size_t i = 0; i < t->nobjects; i++)
		for (size_t k = 0; c->broadcast[i] && k < t->nthreads; k++)
			h = mix(h, c->broadcast[i] > c->wait_since[k]);
	for (size_t k = 0; k < t->nthreads; k++)
		h = mix(h, (uint64_t)c->round[k]);
	/* Tokens and shares are sets; who may take which token matters, when it came does not. */
	for (size_t i = 0; i < c->tokens.n; i++)
		for (size_t k = 0; k < t->nthreads; k++)
			bag += mix(c->tokens.v[i].cond, k) *
			       (c->tokens.v[i].when > c->wait_since[k]);
	for (size_t i = 0; i < c->shares.n; i++)
		bag += mix(mix(c->shares.v[i].object, c->shares.v[i].thread),
			   c->shares.v[i].count);
	return mix(h, bag);
}

uint32_t order_check_next(const struct order_check *c, uint32_t chain)
{
	return c->next[chain] < c->v->chain_len[chain] ? c->v->chain[chain][c->next[chain]] :
		SYM_NONE;
}

enum order_status order_check_peek(struct order_check *c, uint32_t i)
{
	const struct order_view_event *x = &c->v->ev[i];

	if (!is_next(c, i))
		return ORDER_NOT_NEXT;
	if (!order_reads(x->e) || !x->e->symbol)
		return ORDER_OK;
	const struct sym_event *own = buffered(c, x->e);
	uint64_t value = own ? order_check_eval(c, own->value) : c->mem[x->e->target];

	if (x->e->fixed && value != x->e->seen)
		return ORDER_VALUE;
	c->values[expr_get(c->v->t->pool, x->e->symbol)->value] = value;
	for (uint32_t k = x->cond; k < x->cond + x->ncond; k++)
		if (!expr_eval(c->v->t->pool, c->v->conds[k].cond, c->values))
			return ORDER_PATH;
	return ORDER_OK;
}

enum order_status order_check_late(struct order_check *c)
{
	if (c->diverge != SYM_NONE)
		return ORDER_OK;
	return path_step(c, c->v->first_late, c->v->nconds - c->v->first_late);
}

bool order_check_fails(struct order_check *c)
{
	const struct sym_failure *f = &c->v->t->failure;

	if (!c->v->deadlock) {
		if (c->v->fail != SYM_NONE && !order_check_executed(c, c->v->fail))
			return false;
		return !f->condition || order_check_eval(c, f->condition);
	}
	if (c->went_on)
		return false;
	for (size_t i = 0; i < f->nblocked; i++) {
		uint32_t k = c->v->first[f->blocked[i].thread] + f->blocked[i].event;

		/* That the writer itself cannot go on is seen when its turn comes. */
		if (!order_behind_writer(c->v, c->v->ev[k].e) && order_sync_ready(c, k))
			return false;
	}
	return true;
}

bool order_check_avoids(struct order_check *c)
{
	const struct sym_failure *f = &c->v->t->failure;

	for (uint32_t k = 0; c->diverge != SYM_NONE && k < c->v->nconds; k++)
		if (order_same_branch(c->v, k, c->diverge) && !order_check_eval(c, c->v->conds[k].cond))
			return true;
	if (c->diverge != SYM_NONE)
		return false;
	if (c->v->deadlock)
		return c->went_on > 0;
	return f->condition && !order_check_eval(c, f->condition);
}

/* A run that leaves the recorded path is exact up to there, and there it ends. */
static bool is_complete(const struct order_check *c)
{
	if (c->diverge != SYM_NONE)
		return order_check_executed(c, c->v->conds[c->diverge].after);
	for (uint32_t i = 0; i < c->v->n; i++)
		if (!c->v->ev[i].pending && !order_check_executed(c, i))
			return false;
	return true;
}

enum order_status order_check_run(struct order_check *c, const uint32_t *order, size_t n, size_t *at)
{
	for (*at = 0; *at < n; ++*at) {
		enum order_status s = order_check_step(c, order[*at]);

		if (s != ORDER_OK)
			return s;
	}
	return is_complete(c) ? order_check_late(c) : ORDER_NOT_NEXT;
}
