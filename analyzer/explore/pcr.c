/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PCR: an order for an uncovered pattern, the longest and most promising first. */
#include "analyzer/explore/drive.h"

#include <string.h>

#define MAX_STATES 200000u     /* for one pattern */
#define SETTLE_STATES 200000u
#define MAX_SETTLED 200000u    /* instances looked at in the end */

/* ---- cores ---- */

/*
 * Of a pattern that no order shows: the steps that were never reached in a row. Another that begins
 * with the same ones, in the same trace, need not be solved.
 */
static uint64_t core_of(uint32_t trace, const uint32_t *steps, unsigned n, const struct xpl_trace *t)
{
	uint64_t h = xpl_mix(trace, n);

	for (unsigned i = 0; i < n; i++)
		h = xpl_mix(h, steps[i]);
	/* Which variables are between two steps there matters as well. */
	for (unsigned i = 0; i < n; i++)
		h = xpl_mix(h, t->events.v[steps[i]].target);
	return h | !h;
}

static uint64_t *core_slot(struct xpl_drive *d, uint64_t h)
{
	if (2 * (d->cores + 1) > d->core_cap) {
		uint64_t *old = d->core_table;
		size_t n = d->core_cap;

		d->core_cap = n ? 2 * n : 1024;
		d->core_table = xcalloc(d->core_cap, sizeof *d->core_table);
		for (size_t i = 0; i < n; i++)
			if (old[i])
				*core_slot(d, old[i]) = old[i];
		free(old);
	}
	size_t k = h & (d->core_cap - 1);
	while (d->core_table[k] && d->core_table[k] != h)
		k = (k + 1) & (d->core_cap - 1);
	return &d->core_table[k];
}

/*
 * The first `reached' + 1 steps cannot come in a row. Between them the same variables must be
 * undisturbed in the other pattern as well, or more; so only what ends there, or has its later steps on
 * other or the same variables in the same way, is compared: whole prefixes with their open variables.
 */
static uint64_t prefix(uint32_t trace, const uint32_t *steps, unsigned n, unsigned all, const struct xpl_trace *t)
{
	uint64_t h = core_of(trace, steps, n, t);

	for (unsigned i = 0; i < n; i++) {
		bool later = false;

		for (unsigned k = n; k < all; k++)
			later |= t->events.v[steps[k]].target == t->events.v[steps[i]].target;
		h = xpl_mix(h, later);
	}
	return h | !h;
}

static bool has_core(struct xpl_drive *d, const struct xpl_trace *t, uint32_t trace, const uint32_t *steps,
		     unsigned n)
{
	for (unsigned i = 2; i <= n && d->cores; i++)
		if (*core_slot(d, prefix(trace, steps, i, n, t)))
			return true;
	return false;
}

static void add_core(struct xpl_drive *d, const struct xpl_trace *t, uint32_t trace, const uint32_t *steps,
		     unsigned n, unsigned reached)
{
	unsigned most = reached + 1 < n ? reached + 1 : n;
	uint64_t h = prefix(trace, steps, most < 2 ? 2 : most, n, t);
	uint64_t *slot = core_slot(d, h);

	d->cores += !*slot;
	*slot = h;
}

static enum xpl_reason reason_of(const struct xpl_obstacles *o)
{
	/* What can be said of all orders comes first. */
	if (o->locks && !o->data)
		return XPL_BY_LOCKS;
	return o->data ? XPL_BY_DATA : o->writes ? XPL_BY_WRITES : XPL_BY_ORDER;
}

static enum xpl_found solve(struct xpl_drive *d, struct xpl_known *k, uint32_t trace, const uint32_t *steps,
			    unsigned n, uint64_t most, struct xpl_path *path)
{
	const struct xpl_trace *t = d->traces.v[trace];

	if (has_core(d, t, trace, steps, n)) {
		d->cores_used++;
		return XPL_IMPOSSIBLE;
	}
	d->constraints++;
	enum xpl_found f = xpl_search_pattern(t, steps, n, most, path);
	d->states += path->states;
	if (f == XPL_IMPOSSIBLE) {
		add_core(d, t, trace, steps, n, path->obstacles.reached);
		k->reason = reason_of(&path->obstacles);
		k->object = path->obstacles.object != XPL_NONE && path->obstacles.locks ?
				    t->objects.v[path->obstacles.object].address : 0;
	}
	return f;
}

/* ---- one more ---- */

static bool is_better(const struct xpl_known *a, const struct xpl_known *b)
{
	if (a->n != b->n)
		return a->n > b->n;
	return a->score > b->score;
}

static struct xpl_known *best(struct xpl_drive *d)
{
	struct xpl_known *b = NULL;

	for (size_t i = 0; i < d->known.n; i++) {
		struct xpl_known *k = &d->known.v[i];

		if (k->wanted && k->status == XPL_OPEN && k->trace < d->traces.n && (!b || is_better(k, b)))
			b = k;
	}
	return b;
}

err_t xpl_pcr_step(struct xpl_drive *d, bool *done)
{
	struct xpl_known *k;

	while (!xpl_drive_over(d) && (k = best(d))) {
		struct xpl_path path = { .stop = xpl_drive_stops, .stop_arg = d };
		uint32_t trace = k->trace, steps[4], number;
		uint64_t key = k->key;
		enum xpl_found f;
		err_t e = NULL;

		memcpy(steps, k->steps, sizeof steps);
		k->wanted = false; /* until another trace shows it in another way */
		f = solve(d, k, trace, steps, k->n, MAX_STATES, &path);
		if (f == XPL_TOO_LARGE || f == XPL_STOPPED)
			k->undecided = true;
		if (f == XPL_FOUND) {
			struct mach_step *order;
			size_t n;

			xpl_steps_of(d->traces.v[trace], &path, &order, &n);
			e = xpl_drive_try(d, order, n, &number);
			free(order);
			if (!e && xpl_known_at(d, key)->status != XPL_COVERED)
				d->not_enforced++;
		}
		xpl_path_free(&path);
		if (e || f == XPL_FOUND)
			return e;
	}
	*done = true;
	return NULL;
}

/* ---- in the end ---- */

struct order {
	uint64_t key;
	struct mach_step *steps;
	size_t n;
};

struct settling {
	struct xpl_drive *d;
	uint32_t trace;
	uint64_t n;
	VEC(struct order) orders; /* to execute */
};

/* An instance of a pattern that was never shown: does any order of this trace show it? */
static bool settle_one(void *arg, const struct xpl_pattern *p)
{
	struct settling *s = arg;
	struct xpl_known *k = xpl_known_at(s->d, p->key);
	struct xpl_path path = { .stop = xpl_drive_stops, .stop_arg = s->d };
	struct order o = { .key = p->key };

	if (k->status == XPL_COVERED || k->undecided)
		return false;
	if (++s->n > MAX_SETTLED || xpl_drive_stops(s->d)) {
		k->undecided = true;
		return false;
	}
	switch (solve(s->d, k, s->trace, p->steps, p->n, SETTLE_STATES, &path)) {
	case XPL_FOUND:
		k->undecided = true; /* until it is executed */
		xpl_steps_of(s->d->traces.v[s->trace], &path, &o.steps, &o.n);
		vec_push(&s->orders, o);
		break;
	case XPL_TOO_LARGE:
	case XPL_STOPPED:
		k->undecided = true;
		break;
	default:
		break;
	}
	xpl_path_free(&path);
	return false;
}

/* Such orders give what another gave; they are executed because nothing else shows that they can be. */
static err_t execute_found(struct settling *s)
{
	err_t e = NULL;
	uint32_t number;

	for (size_t i = 0; i < s->orders.n; i++) {
		struct order *o = &s->orders.v[i];

		if (!e && xpl_known_at(s->d, o->key)->status != XPL_COVERED && !xpl_drive_over(s->d))
			e = xpl_drive_try(s->d, o->steps, o->n, &number);
		free(o->steps);
	}
	vec_free(&s->orders);
	return e;
}

err_t xpl_pcr_settle(struct xpl_drive *d)
{
	struct settling s = { .d = d };
	uint64_t none[XPL_RULES];

	for (uint32_t i = 0; i < d->traces.n && !d->late; i++) {
		s.trace = i;
		memset(none, 0, sizeof none);
		xpl_patterns(d->traces.v[i], settle_one, &s, none);
	}
	TRY(execute_found(&s));
	for (size_t i = 0; i < d->known.n; i++)
		if (d->known.v[i].status == XPL_OPEN && d->known.v[i].met && !d->known.v[i].undecided && !d->late &&
		    !d->too_large && !d->missed && !d->cut && !d->unknown_left)
			d->known.v[i].status = XPL_INFEASIBLE;
	return NULL;
}
