/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PCR: an order for an uncovered pattern, the longest and most promising first. */
#include "analyzer/explore/drive.h"

#include <string.h>

#define FIRST_STATES 2000u     /* for one pattern; when that is too few, later, ... */
#define MORE_STATES 10u        /* ... so many times as many, ... */
#define MOST_EFFORT 2u         /* ... so often */
#define SETTLE_STATES 200000u
#define MAX_SETTLED 200000u    /* instances looked at in the end */

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

	const struct xpl_core *core = xpl_cores_find(&d->cores, t, trace, steps, n);

	if (core) {
		d->cores_used++;
		k->reason = (enum xpl_reason)core->reason;
		k->object = core->object;
		return XPL_IMPOSSIBLE;
	}
	d->constraints++;
	enum xpl_found f = xpl_search_pattern(t, steps, n, most, path);
	d->states += path->states;
	if (f == XPL_IMPOSSIBLE) {
		k->reason = reason_of(&path->obstacles);
		k->object = path->obstacles.object != XPL_NONE && path->obstacles.locks ?
				    t->objects.v[path->obstacles.object].address : 0;
		xpl_cores_add(&d->cores, t, trace, steps, n, &path->obstacles, (uint8_t)k->reason, k->object);
	}
	return f;
}

/* ---- one more ---- */

static bool is_better(const struct xpl_known *a, const struct xpl_known *b)
{
	if (a->effort != b->effort)
		return a->effort < b->effort;
	if (a->n != b->n)
		return a->n > b->n;
	return a->score > b->score;
}

static bool is_mine(const struct xpl_drive *d, const struct xpl_known *k)
{
	uint64_t part = k->kind;

	for (unsigned i = 0; i < k->n; i++)
		part = xpl_mix(part, k->places[i] & XPL_IN_PAGE);
	return xpl_is_mine(d, part);
}

static struct xpl_known *best(struct xpl_drive *d)
{
	struct xpl_known *b = NULL;

	for (size_t i = 0; i < d->known.n; i++) {
		struct xpl_known *k = &d->known.v[i];

		if (k->wanted && k->status == XPL_OPEN && k->trace < d->traces.n && (!b || is_better(k, b)) &&
		    is_mine(d, k))
			b = k;
	}
	return b;
}

/* The best that is left, solved; false: no order shows it, or it was given up. */
static bool solve_best(struct xpl_drive *d, struct xpl_known *k, struct xpl_order *o)
{
	struct xpl_path path = { .stop = xpl_drive_stops, .stop_arg = d };
	uint64_t most = FIRST_STATES;

	for (unsigned i = 0; i < k->effort; i++)
		most *= MORE_STATES;
	k->wanted = false; /* until another trace shows it in another way */
	enum xpl_found f = solve(d, k, k->trace, k->steps, k->n, most, &path);
	if (f == XPL_TOO_LARGE && k->effort < MOST_EFFORT) {
		k->effort++;
		k->wanted = true;
	} else if (f == XPL_TOO_LARGE || f == XPL_STOPPED) {
		k->undecided = true;
	}
	if (f == XPL_FOUND) {
		*o = (struct xpl_order){ .key = k->key };
		xpl_steps_of(d->traces.v[k->trace], &path, &o->steps, &o->n);
	}
	xpl_path_free(&path);
	return f == XPL_FOUND;
}

err_t xpl_pcr_step(struct xpl_drive *d, bool *done)
{
	size_t room = xpl_drive_room(d);
	xpl_orders orders = { 0 };
	struct xpl_known *k;

	while (orders.n < room && !xpl_drive_over(d) && (k = best(d))) {
		struct xpl_order o;

		if (solve_best(d, k, &o))
			vec_push(&orders, o);
	}
	*done = !orders.n;
	return xpl_drive_try_all(d, &orders);
}

/* ---- in the end ---- */

struct settling {
	struct xpl_drive *d;
	uint32_t trace;
	uint64_t n;
	xpl_orders orders; /* to execute */
};

/* An instance of a pattern that was never shown: does any order of this trace show it? */
static bool settle_one(void *arg, const struct xpl_pattern *p)
{
	struct settling *s = arg;
	struct xpl_known *k = xpl_known_at(s->d, p->key);
	struct xpl_path path = { .stop = xpl_drive_stops, .stop_arg = s->d };
	struct xpl_order o = { .key = p->key };

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

	for (size_t i = 0; i < s->orders.n;) {
		xpl_orders now = { 0 };

		for (size_t room = xpl_drive_room(s->d); i < s->orders.n && now.n < room; i++) {
			struct xpl_order *o = &s->orders.v[i];

			if (!e && xpl_known_at(s->d, o->key)->status != XPL_COVERED && !xpl_drive_over(s->d))
				vec_push(&now, *o);
			else
				free(o->steps);
		}
		if (now.n)
			e = xpl_drive_try_all(s->d, &now);
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
