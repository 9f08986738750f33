/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which locks a thread holds. */
#include "analyzer/order/order.h"

/* A semaphore of one, which everybody gives back who has taken it, and nobody else. */
static bool is_used_as_lock(const struct sym_trace *t, uint32_t object)
{
	bool given = false;

	if (t->objects[object].kind != SYM_SEM)
		return true;
	for (uint32_t i = 0; i < t->nthreads; i++) {
		bool has = false;

		for (uint32_t k = 0; k < t->threads[i].nevents; k++) {
			const struct sym_event *e = &t->threads[i].events[k];

			if (e->target != object || (e->op != SYM_SEMWAIT && e->op != SYM_SEMPOST) ||
			    (e->op == SYM_SEMWAIT && e->result != 1))
				continue;
			if (has == (e->op == SYM_SEMWAIT))
				return false;
			has = !has;
			given |= !has;
		}
	}
	return given && t->objects[object].count <= 1;
}

static void drop_counters(const struct sym_trace *t, order_held_locks *held)
{
	size_t n = 0;

	for (size_t i = 0; i < held->n; i++)
		if (is_used_as_lock(t, held->v[i].object))
			held->v[n++] = held->v[i];
	held->n = n;
}

/* Recursive locks stand in the list once per acquisition; the last one goes first. */
static void release(order_held_locks *held, uint32_t object)
{
	for (size_t i = held->n; i-- > 0;) {
		if (held->v[i].object != object)
			continue;
		for (; i + 1 < held->n; i++)
			held->v[i] = held->v[i + 1];
		held->n--;
		return;
	}
}

void order_pass(const struct sym_trace *t, uint32_t thread, uint32_t index, order_held_locks *held)
{
	const struct sym_event *e = &t->threads[thread].events[index];

	if (order_acquires(e))
		vec_push(held, (struct order_held){ e->target, index });
	else if (e->op == SYM_UNLOCK)
		release(held, e->target);
}

void order_locks_held(const struct sym_trace *t, uint32_t thread, uint32_t index, order_held_locks *held)
{
	const struct sym_thread *th = &t->threads[thread];

	held->n = 0;
	for (size_t i = 0; i < t->nobjects; i++)
		if (t->objects[i].owner == thread)
			vec_push(held, (struct order_held){ (uint32_t)i, SYM_NONE });
	for (uint32_t i = 0; i < index && i < th->nevents; i++) {
		const struct sym_event *e = &th->events[i];

		order_pass(t, thread, i, held);
		if (e->op == SYM_SEMWAIT && e->result == 1)
			vec_push(held, (struct order_held){ e->target, i });
		else if (e->op == SYM_SEMPOST)
			release(held, e->target);
	}
	drop_counters(t, held);
}

bool order_is_for_reading(const struct sym_trace *t, uint32_t thread, const struct order_held *held)
{
	const struct sym_event *e = held->since == SYM_NONE ? NULL : &t->threads[thread].events[held->since];

	return e && order_shared(e);
}

void order_sections(const struct sym_trace *t, struct sched_ref r, order_held_locks *held)
{
	held->n = 0;
	for (uint32_t i = 0; i < r.index; i++)
		order_pass(t, r.thread, i, held);
}

uint32_t order_innermost_lock(const struct sym_trace *t, uint32_t thread, uint32_t index)
{
	order_held_locks held = { 0 };
	uint32_t last;

	order_sections(t, (struct sched_ref){ thread, index }, &held);
	last = held.n ? held.v[held.n - 1].since : SYM_NONE;
	vec_free(&held);
	return last;
}

/* The thread that holds the lock at z lets it go, in the order, before the other takes it. */
static bool is_let_go(const struct sym_trace *t, const struct order_places *p, struct sched_ref z, uint32_t lock,
		      struct sched_ref taken)
{
	const struct sym_thread *th = &t->threads[z.thread];

	for (uint32_t i = z.index; i < th->nevents; i++)
		if (th->events[i].target == lock && th->events[i].op == SYM_UNLOCK)
			return order_place(p, (struct sched_ref){ z.thread, i }) < order_place(p, taken);
	return false;
}

bool order_guarded(const struct sym_trace *t, const struct order_places *p, struct sched_ref z, struct sched_ref y)
{
	order_held_locks a = { 0 }, b = { 0 };
	bool guarded = false;

	order_sections(t, z, &a);
	order_sections(t, y, &b);
	for (size_t i = 0; i < a.n; i++)
		for (size_t k = 0; k < b.n && !guarded; k++)
			guarded = a.v[i].object == b.v[k].object &&
				  is_let_go(t, p, z, a.v[i].object, (struct sched_ref){ y.thread, b.v[k].since });
	vec_free(&a);
	vec_free(&b);
	return guarded;
}
