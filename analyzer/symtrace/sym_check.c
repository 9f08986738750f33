/* Does a trace make structural sense? Whoever reads one may rely on it afterwards. */
#include "analyzer/symtrace/sym_names.h"

#include <stdlib.h>

const char *const sym_object_names[SYM_OBJECT_KINDS] = {
	[SYM_MUTEX] = "mutex", [SYM_RWLOCK] = "rwlock", [SYM_COND] = "cond",
	[SYM_SEM] = "sem", [SYM_BARRIER] = "barrier", [SYM_ONCE] = "once",
};

const char *const sym_failure_names[SYM_FAIL_KINDS] = {
	[SYM_FAIL_ASSERT] = "assert", [SYM_FAIL_ABORT] = "abort", [SYM_FAIL_SIGNAL] = "signal",
	[SYM_FAIL_EXCEPTION] = "exception", [SYM_FAIL_DEADLOCK] = "deadlock",
	[SYM_FAIL_HANG] = "hang", [SYM_FAIL_EXIT] = "exit", [SYM_FAIL_USER] = "user",
};

#define LOCKS (1u << SYM_MUTEX | 1u << SYM_RWLOCK)

const struct sym_op_info sym_ops[SYM_OP_COUNT] = {
	[SYM_READ] = { SYM_ON_VAR, 0 },
	[SYM_WRITE] = { SYM_ON_VAR, 0 },
	[SYM_RMW] = { SYM_ON_VAR, 0 },
	[SYM_LOCK] = { SYM_ON_OBJECT, LOCKS },
	[SYM_RDLOCK] = { SYM_ON_OBJECT, 1u << SYM_RWLOCK },
	[SYM_UNLOCK] = { SYM_ON_OBJECT, LOCKS },
	[SYM_TRYLOCK] = { SYM_ON_OBJECT, LOCKS },
	[SYM_TRYRDLOCK] = { SYM_ON_OBJECT, 1u << SYM_RWLOCK },
	[SYM_WAIT] = { SYM_ON_OBJECT, 1u << SYM_COND },
	[SYM_SIGNAL] = { SYM_ON_OBJECT, 1u << SYM_COND },
	[SYM_BROADCAST] = { SYM_ON_OBJECT, 1u << SYM_COND },
	[SYM_SEMWAIT] = { SYM_ON_OBJECT, 1u << SYM_SEM },
	[SYM_SEMPOST] = { SYM_ON_OBJECT, 1u << SYM_SEM },
	[SYM_BARRIER_ENTER] = { SYM_ON_OBJECT, 1u << SYM_BARRIER },
	[SYM_BARRIER_LEAVE] = { SYM_ON_OBJECT, 1u << SYM_BARRIER },
	[SYM_ONCE_BEGIN] = { SYM_ON_OBJECT, 1u << SYM_ONCE },
	[SYM_ONCE_END] = { SYM_ON_OBJECT, 1u << SYM_ONCE },
	[SYM_FORK] = { SYM_ON_THREAD, 0 },
	[SYM_JOIN] = { SYM_ON_THREAD, 0 },
};

static err_t bad(const struct sym_trace *t, const struct sym_event *e, const char *what)
{
	return err_new(ERR_INPUT, "event %u of thread %s (%s): %s", e->index,
		       t->threads[e->thread].id, sym_op_name(e->op), what);
}

static unsigned width_of(const struct sym_trace *t, expr_id e)
{
	return expr_get(t->pool, e)->width;
}

static bool expr_known(const struct sym_trace *t, expr_id e)
{
	return e && e < expr_count(t->pool);
}

static err_t check_access(const struct sym_trace *t, const struct sym_event *e)
{
	unsigned width = t->vars[e->target].width;

	if (e->op != SYM_WRITE && e->symbol) {
		if (!expr_known(t, e->symbol) || expr_get(t->pool, e->symbol)->op != EX_SYMBOL)
			return bad(t, e, "its symbol is no symbol");
		if (width_of(t, e->symbol) != width)
			return bad(t, e, "symbol and variable differ in width");
	}
	if (e->op == SYM_WRITE && !e->value)
		return bad(t, e, "no value written");
	if (e->op != SYM_READ && e->value) {
		if (!expr_known(t, e->value) || width_of(t, e->value) != width)
			return bad(t, e, "value and variable differ in width");
	}
	if (e->fixed && !e->has_seen)
		return bad(t, e, "fixed without a seen value");
	return NULL;
}

static err_t check_link(const struct sym_trace *t, const struct sym_event *e, enum sym_op want)
{
	const struct sym_thread *th = &t->threads[e->thread];

	if (e->link >= e->index || th->events[e->link].op != want)
		return bad(t, e, want == SYM_UNLOCK ? "link names no earlier unlock" :
			   "link names no earlier barrier-enter");
	if (want == SYM_BARRIER_ENTER && th->events[e->link].target != e->target)
		return bad(t, e, "link names another barrier");
	return NULL;
}

static err_t check_event(const struct sym_trace *t, const struct sym_thread *th, size_t i)
{
	const struct sym_event *e = &th->events[i];

	if (e->op >= SYM_OP_COUNT)
		return err_new(ERR_INPUT, "event %zu of thread %s: unknown operation", i, th->id);
	if (e->thread != (uint32_t)(th - t->threads) || e->index != i)
		return err_new(ERR_INPUT, "event %zu of thread %s: wrong place", i, th->id);
	switch (sym_ops[e->op].on) {
	case SYM_ON_VAR:
		if (e->target >= t->nvars)
			return bad(t, e, "no such variable");
		TRY(check_access(t, e));
		break;
	case SYM_ON_OBJECT:
		if (e->target >= t->nobjects)
			return bad(t, e, "no such object");
		if (!(sym_ops[e->op].kinds >> t->objects[e->target].kind & 1))
			return bad(t, e, "object of the wrong kind");
		break;
	case SYM_ON_THREAD:
		if (e->peer >= t->nthreads || e->peer == e->thread)
			return bad(t, e, "no such other thread");
		break;
	case SYM_ON_NOTHING:
		break;
	}
	if (e->op == SYM_WAIT)
		TRY(check_link(t, e, SYM_UNLOCK));
	if (e->op == SYM_BARRIER_LEAVE)
		TRY(check_link(t, e, SYM_BARRIER_ENTER));
	if (e->op == SYM_START && i != 0)
		return bad(t, e, "not the first of its thread");
	if ((e->op == SYM_EXIT || e->op == SYM_FAIL) && i + 1 != th->nevents)
		return bad(t, e, "not the last of its thread");
	if (e->stack != SYM_NONE && e->stack >= t->nstacks)
		return bad(t, e, "no such stack");
	if (e->variable != SYM_NONE && e->variable >= t->nvars)
		return bad(t, e, "no such operand");
	if (e->time_lo > e->time_hi)
		return bad(t, e, "its earliest time lies behind its latest");
	return NULL;
}

static err_t check_thread(const struct sym_trace *t, const struct sym_thread *th)
{
	for (size_t i = 0; i < th->nevents; i++)
		TRY(check_event(t, th, i));
	for (size_t i = 0; i < th->nconds; i++) {
		const struct sym_cond *c = &th->conds[i];

		if (c->after != SYM_NONE && c->after >= th->nevents)
			return err_new(ERR_INPUT, "condition %zu of thread %s: after no event", i,
				       th->id);
		if (!expr_known(t, c->cond) || width_of(t, c->cond) != EXPR_BOOL)
			return err_new(ERR_INPUT, "condition %zu of thread %s is no condition", i,
				       th->id);
		if (c->stack != SYM_NONE && c->stack >= t->nstacks)
			return err_new(ERR_INPUT, "condition %zu of thread %s: no such stack", i,
				       th->id);
	}
	return NULL;
}

/* A symbol stands for one read: two readers of one symbol would have to agree. */
static err_t check_symbols_single(const struct sym_trace *t)
{
	size_t n = expr_symbol_count(t->pool);
	bool *used = n ? calloc(n, 1) : NULL;
	err_t err = NULL;

	for (size_t k = 0; used && k < t->nthreads && !err; k++) {
		for (size_t i = 0; i < t->threads[k].nevents && !err; i++) {
			const struct sym_event *e = &t->threads[k].events[i];

			if ((e->op != SYM_READ && e->op != SYM_RMW) || !e->symbol)
				continue;
			uint64_t s = expr_get(t->pool, e->symbol)->value;
			if (used[s])
				err = bad(t, e, "its symbol belongs to another read");
			used[s] = true;
		}
	}
	free(used);
	return err;
}

static err_t check_failure(const struct sym_trace *t)
{
	const struct sym_failure *f = &t->failure;

	if (f->kind >= SYM_FAIL_KINDS)
		return err_new(ERR_INPUT, "unknown kind of failure");
	if (f->thread != SYM_NONE && f->thread >= t->nthreads)
		return err_new(ERR_INPUT, "the failure names no thread");
	if (f->condition && (!expr_known(t, f->condition) ||
			     width_of(t, f->condition) != EXPR_BOOL))
		return err_new(ERR_INPUT, "the failure's condition is no condition");
	for (size_t i = 0; i < f->nblocked; i++) {
		const struct sym_blocked *b = &f->blocked[i];

		if (b->thread >= t->nthreads || !t->threads[b->thread].nevents ||
		    b->event + 1 != t->threads[b->thread].nevents)
			return err_new(ERR_INPUT, "blocked %zu is not the last event of a thread", i);
		for (size_t k = 0; k < i; k++)
			if (f->blocked[k].thread == b->thread)
				return err_new(ERR_INPUT, "blocked %zu repeats its thread", i);
	}
	return NULL;
}

err_t sym_check(const struct sym_trace *t)
{
	for (size_t i = 0; i < t->nvars; i++) {
		const struct sym_var *v = &t->vars[i];

		if (v->width == EXPR_BOOL || (v->width > 64 && v->width != EXPR_INT))
			return err_new(ERR_INPUT, "variable %s: impossible width", v->name);
		if (v->has_init && (!expr_known(t, v->init) || width_of(t, v->init) != v->width))
			return err_new(ERR_INPUT, "variable %s: initial value of another width",
				       v->name);
	}
	for (size_t i = 0; i < t->nobjects; i++) {
		const struct sym_object *o = &t->objects[i];

		if (o->kind >= SYM_OBJECT_KINDS)
			return err_new(ERR_INPUT, "object %s: unknown kind", o->name);
		if (o->owner != SYM_NONE && o->owner >= t->nthreads)
			return err_new(ERR_INPUT, "object %s: no such owner", o->name);
		if ((o->kind == SYM_BARRIER && o->count < 1) || o->count < 0)
			return err_new(ERR_INPUT, "object %s: impossible count", o->name);
	}
	for (size_t i = 0; i < t->nthreads; i++)
		TRY(check_thread(t, &t->threads[i]));
	TRY(check_symbols_single(t));
	return check_failure(t);
}
